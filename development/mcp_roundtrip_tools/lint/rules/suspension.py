"""MRT005, MRT007 and MRT011: steps that ask, handlers that catch the end of a round, and races."""

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import RECORDED, ContextFunction, Module, kind_of
from mcp_roundtrip_tools.lint.control_flow import runs_again
from mcp_roundtrip_tools.lint.name_resolution import called_function, definition_of
from mcp_roundtrip_tools.lint.parsed_module import FunctionNode, Source, argument, own_nodes, walk


def check_steps(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find functions of steps, and `done=` functions, that ask or begin steps themselves."""
    for call in (call for function in module.functions for call in function.calls):
        is_step = call.method == "step"
        called = argument(call.node, 1) if is_step else argument(call.node, None, "done")
        used = None if called is None else _use_inside(module, called)
        if called is not None and used is not None:
            place = "the function of a step" if is_step else "done="
            message = (
                f"{ast.unparse(used)}(…) runs inside {place}, where the context cannot be used: call it "
                "before, and pass what it returns"
            )
            yield called, message


def _use_inside(module: Module, called: ast.expr) -> ast.expr | None:
    """Return the first function that uses the context in a function, a lambda or a partial."""
    match called:
        case ast.Attribute(value=receiver, attr=method) if kind_of(module.source, receiver) is not None:
            return called if method in RECORDED else None  # ctx.step("size", ctx.elicit, …)
        case ast.Call(func=outer, args=[first, *_]) if module.source.dotted(outer) == "functools.partial":
            return _use_inside(module, first)
    source, body = definition_of(module.source, called)
    if source is not module.source or not isinstance(body, FunctionNode | ast.Lambda):
        return None
    calls = (each for each in own_nodes(body) if isinstance(each, ast.Call))
    return next((each.func for each in calls if _asks(module, each)), None)


def _asks(module: Module, node: ast.Call) -> bool:
    """Return whether a call uses the context, itself or by a function of the module or of the tool."""
    call = module.context_call(node)
    if call is not None:
        return call.method in RECORDED or module.can_end_round(call.helper)
    called = called_function(module.source, node)
    return called is not None and module.can_end_round(called.node)


_SWALLOWED = frozenset(
    {"BaseException", "builtins.BaseException", "mcp_roundtrip.Suspend", "asyncio.CancelledError"}
)
"""What ends a round, in an async tool by a cancellation."""


def check_handlers(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find handlers, `suppress` and `finally` blocks that do not let the end of a round through."""
    for function in module.functions:
        ending = {call.node for call in function.calls if call.ends_round}
        for node in own_nodes(function.node):
            if isinstance(node, ast.Try | ast.TryStar) and _contains(node.body, ending):
                yield from _handlers(module, node)
                yield from _final_jumps(node)
            elif isinstance(node, ast.With | ast.AsyncWith) and _contains(node.body, ending):
                yield from _suppressed(module, node)


def _contains(statements: list[ast.stmt], calls: set[ast.Call]) -> bool:
    return any(each in calls for statement in statements for each in ast.walk(statement))


def _handlers(module: Module, node: ast.Try | ast.TryStar) -> Iterator[tuple[ast.AST, str]]:
    handler = next((each for each in node.handlers if _catches_suspend(module, each.type)), None)
    if handler is not None and not any(isinstance(each, ast.Raise) for each in own_nodes(handler)):
        shown = "except:" if handler.type is None else f"except {ast.unparse(handler.type)}"
        yield handler, f"`{shown}` catches the end of the round: write `except Exception`, or raise again"


def _catches_suspend(module: Module, kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any((module.source.dotted(each) or "") in _SWALLOWED for each in kinds)


def _final_jumps(node: ast.Try | ast.TryStar) -> Iterator[tuple[ast.AST, str]]:
    for each in [each for statement in node.finalbody for each in walk(statement)]:
        is_jump = isinstance(each, ast.Break | ast.Continue) and each in node.finalbody
        if is_jump or isinstance(each, ast.Return):
            word = type(each).__name__.lower()
            yield each, f"`{word}` in a finally block drops the end of the round: move it behind the block"


def _suppressed(module: Module, node: ast.With | ast.AsyncWith) -> Iterator[tuple[ast.AST, str]]:
    for item in node.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or module.source.dotted(call.func) != "contextlib.suppress":
            continue
        if any(_catches_suspend(module, each) for each in call.args):
            yield call, f"{ast.unparse(call)} catches the end of the round: write `suppress(Exception)`"


_LIMITS: Final = frozenset(
    {
        *("asyncio.wait_for", "asyncio.timeout", "asyncio.timeout_at"),
        *("anyio.fail_after", "anyio.move_on_after"),
    }
)
_ORDER: Final = (
    "completes in another order in every round: write `gather`, which returns the results in the order of "
    "its arguments, or race inside a step"
)
_TIME: Final = "ends a call of the context at another time in every round: limit the time inside a step"


def check_races(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find races whose end decides what the tool does next, and time limits for calls of the context."""
    for function, node in module.calls():
        if _is_race(module.source, node):
            if _runs_calls(module.source, function) or runs_again(module, function, node):
                yield node, f"{ast.unparse(node.func)}() {_ORDER}"
        elif module.source.dotted(node.func) in _LIMITS and _limits_call(module.source, function, node):
            yield node, f"{ast.unparse(node.func)}() {_TIME}"


def _is_race(source: Source, call: ast.Call) -> bool:
    name = source.dotted(call.func)
    if name == "asyncio.as_completed":
        return True
    if name != "asyncio.wait":
        return False
    when = argument(call, None, "return_when")
    waits_for_all = when is None or (source.dotted(when) or "").endswith("ALL_COMPLETED")
    return not waits_for_all or argument(call, None, "timeout") is not None


def _runs_calls(source: Source, function: ContextFunction) -> bool:
    """Return whether the function hands calls that can end the round to tasks, in place of awaiting them."""
    return any(
        call.ends_round and not isinstance(source.parents[call.node], ast.Await) for call in function.calls
    )


def _limits_call(source: Source, function: ContextFunction, limit: ast.Call) -> bool:
    """Return whether a call of the context is an argument, or in the block, of a time limit."""
    outer: ast.AST = limit
    if isinstance(source.parents[limit], ast.withitem):
        outer = source.parents[source.parents[limit]]
    return any(
        call.ends_round and outer in [call.node, *source.ancestors(call.node)] for call in function.calls
    )
