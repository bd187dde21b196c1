"""Run one pass of an `async def` feature. A module of its own because importing asyncio takes 40 ms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextvars import Context, copy_context
from functools import cache
from typing import Any

from mcp_roundtrip.engine.async_context import AsyncContext
from mcp_roundtrip.engine.async_replay import Branches, async_replay
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.replay import Failed, Outcome
from mcp_roundtrip.engine.run import Run


@cache
def _runner() -> asyncio.Runner:
    """Return the event loop of the process.

    It outlives the request, because authors keep clients in module globals, and a client belongs to the loop
    on which it was first used.
    """
    return asyncio.Runner()


def run_async_pass(
    function: Callable[..., Coroutine[Any, Any, Any]],
    arguments: Mapping[str, Any],
    context_parameter: str | None,
    run: Run,
    info: CallInfo,
) -> Outcome:
    """Run the function of a feature to the end of the pass."""

    def body(branches: Branches) -> Coroutine[Any, Any, Any]:
        if context_parameter is None:
            return function(**arguments)
        return function(**arguments, **{context_parameter: AsyncContext(run, info, branches)})

    try:
        # Without a context, all passes would have the context variables of the first one.
        return _runner().run(async_replay(body, run), context=copy_context())
    except (SystemExit, KeyboardInterrupt) as error:  # from an asyncio task of the tool: the loop is unusable
        _runner().close()
        _runner.cache_clear()
        return Failed(error)


def advance_hook(generator: AsyncIterator[None], context: Context) -> bool:
    """Run an `async def` hook to its next `yield`; return False if it ended. Raises what it raises."""
    ended = _runner().run(_advance(generator), context=context)
    if isinstance(ended, BaseException):
        raise ended
    return ended


async def _advance(generator: AsyncIterator[None]) -> bool | BaseException:
    try:
        await anext(generator)
    except StopAsyncIteration:
        return False
    except BaseException as error:  # SystemExit would end the event loop
        return error
    return True
