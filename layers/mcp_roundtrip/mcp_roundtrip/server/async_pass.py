"""One pass of an `async def` feature, on an event loop that outlives the request.

The loop is kept because authors keep clients in module globals, and those belong to the loop they were
first used on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.engine.async_context import AsyncContext
from mcp_roundtrip.engine.async_replay import Branches, async_replay
from mcp_roundtrip.engine.context_base import CallInfo
from mcp_roundtrip.engine.outcome import Failed, Outcome
from mcp_roundtrip.engine.run import Run

if TYPE_CHECKING:
    from mcp_roundtrip.server.feature import Feature


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def async_pass(feature: Feature, arguments: Mapping[str, Any], run: Run, info: CallInfo) -> Outcome:
    """Run the feature's coroutine to the end of the pass."""

    def body(branches: Branches) -> Coroutine[Any, Any, Any]:
        context = feature.parameters.context_parameter
        given = {} if context is None else {context: AsyncContext(run, info, branches)}
        coroutine: Coroutine[Any, Any, Any] = feature.function(**arguments, **given)
        return coroutine

    try:
        return _runner().run(async_replay(body, run))
    except (SystemExit, KeyboardInterrupt) as error:  # from a task of the tool's own: the loop is half dead
        _runner().close()
        _runner.cache_clear()
        return Failed(error)
