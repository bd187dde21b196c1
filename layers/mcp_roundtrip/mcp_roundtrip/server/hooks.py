"""Hooks: an author's code around every pass over a function of the server (`Server.around`).

A hook is a generator that yields once. It takes no context and gets neither the answers nor the result, so
it cannot change what the journal replays. A pass without hooks does not load this module.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import Context, copy_context
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.arguments.signature import call_parameters, check_callable, function_name, unwrap_function
from mcp_roundtrip.engine.outcome import Failed, Outcome
from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.server.hook_call import Call, end_call

if TYPE_CHECKING:
    from mcp_roundtrip.engine.run import Run
    from mcp_roundtrip.server.model import FeatureCall

_ENDED: Final = object()

Hook = Callable[[Call], Iterator[None] | AsyncIterator[None]]
"""A function that yields once: the pass runs at its `yield`."""


def check_hook(hook: Any) -> str:
    """Return the name of a hook. Raises DefinitionError for a function that is none."""
    check_callable("@server.around", hook)
    name, target = function_name(hook), unwrap_function(hook)
    if not (inspect.isroutine(target) or inspect.isfunction(target)):
        target = type(target).__call__
    if not (inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target)):
        raise DefinitionError(
            f"@server.around: {name} has no `yield`; write one where the tool runs, as in "
            f"`def {name}(call: Call) -> Iterator[None]: yield`"
        )
    required = [each for each in call_parameters(hook) if each.default is each.empty]
    if len(required) != 1 or required[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise DefinitionError(f"@server.around: {name} takes one argument; write `def {name}(call: Call)`")
    return name


def run_with_hooks(
    call: FeatureCall, run: Run, run_function: Callable[[FeatureCall, Run], Outcome]
) -> Outcome:
    """Run the pass inside the hooks of the server, the first registered outermost.

    An exception before a `yield` is the outcome of the pass, as if the function had raised it. One after it
    is logged and changes nothing, because the function has had its effects. Raises what `run_function` does.

    Hooks and function share one context, so the function sees the context variables that a hook sets, and the
    next pass does not.
    """
    view, context = Call(call, run), copy_context()
    begun: list[tuple[Hook, Any]] = []
    try:
        for hook in call.options.hooks:
            if (error := _begin(hook, view, context, begun)) is not None:
                outcome: Outcome = Failed(error)
                break
        else:
            outcome = context.run(run_function, call, run)
        end_call(view, outcome)
        return outcome
    except Exception as refused:
        end_call(view, Failed(refused))
        raise
    finally:
        for hook, generator in reversed(begun):
            _end(hook, generator, call, context)


def _begin(hook: Hook, view: Call, context: Context, begun: list[tuple[Hook, Any]]) -> BaseException | None:
    """Run a hook up to its `yield`; return what it raised."""
    try:
        generator = hook(view)
        if _advance(generator, context):
            begun.append((hook, generator))
            return None
        name = function_name(hook)
        return UsageError(f"the hook {name} returned before its `yield`; raise ToolError to refuse a call")
    except BaseException as error:  # SystemExit would end the Lambda environment
        return error


def _end(hook: Hook, generator: Any, call: FeatureCall, context: Context) -> None:
    """Run the rest of a hook, and log what it raises."""
    try:
        if _advance(generator, context):
            raise UsageError(f"the hook {function_name(hook)} yields twice; remove the second `yield`")
    except BaseException as error:  # as above
        observer = call.context.ports.observer
        observer.record_failure("hook_failed", error, **call.log_identity, hook=function_name(hook))


def _advance(generator: Any, context: Context) -> bool:
    """Run a hook to its next `yield`; return False if it ended."""
    if isinstance(generator, GeneratorType):
        return context.run(next, generator, _ENDED) is not _ENDED
    from mcp_roundtrip.server.async_pass import advance_hook  # asyncio takes 40 ms

    return advance_hook(generator, context)
