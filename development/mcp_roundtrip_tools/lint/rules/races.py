"""MRT011: races of coroutines, and time limits, which end differently in another round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import ContextFunction, Module
from mcp_roundtrip_tools.lint.reachability import runs_again
from mcp_roundtrip_tools.lint.source import Source, is_within, own_nodes

_LIMITS: Final = frozenset({"asyncio.wait_for", "asyncio.timeout", "asyncio.timeout_at"})
_ORDER: Final = (
    "completes in another order in every round: write `gather`, which returns the results in the order of "
    "its arguments, or race inside a step"
)
_TIME: Final = "ends a call of the context at another time in every round: limit the time inside a step"


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find races whose end decides what the tool does next, and time limits for calls of the context."""
    for function in module.functions:
        for node in own_nodes(function.node):
            if not isinstance(node, ast.Call):
                continue
            shown = ast.unparse(node.func)
            if _is_race(module.source, node):
                if _runs_calls(module.source, function) or runs_again(module, function, node):
                    yield node, f"{shown}() {_ORDER}"
            elif module.source.dotted(node.func) in _LIMITS and _limits_call(module.source, function, node):
                yield node, f"{shown}() {_TIME}"


def _is_race(source: Source, call: ast.Call) -> bool:
    name = source.dotted(call.func)
    if name == "asyncio.as_completed":
        return True
    if name != "asyncio.wait":
        return False
    given = {each.arg: each.value for each in call.keywords}
    when = given.get("return_when")
    waits_for_all = when is None or (source.dotted(when) or "").endswith("ALL_COMPLETED")
    return not waits_for_all or "timeout" in given


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
    return any(call.ends_round and is_within(source, call.node, outer) for call in function.calls)
