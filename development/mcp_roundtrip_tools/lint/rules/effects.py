"""MRT006: known side effects that every round repeats, because they are in no step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import Module, has_context
from mcp_roundtrip_tools.lint.definitions import called_function
from mcp_roundtrip_tools.lint.reachability import certain_calls, runs_again
from mcp_roundtrip_tools.lint.rules.known_effects import can_read, changed_path, effect_of, is_known_path
from mcp_roundtrip_tools.lint.source import Definition, FunctionNode, Source, own_nodes, parameters

_CHANGING_WORDS: Final = frozenset(
    {
        *("add", "approve", "book", "buy", "cancel", "charge", "create", "delete", "deploy"),
        *("insert", "notify", "order", "pay", "post", "publish", "refund", "register", "remove"),
        *("save", "send", "store", "submit", "transfer", "update", "upload"),
    }
)
"""First words of functions that do more than read."""


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find side effects after which a call of the context can end the round."""
    for function, node in module.calls():
        effect, shown = effect_of(module.source, node), ast.unparse(node.func)
        inner = None if effect else _effect_inside(module.source, node, set())
        if (effect or inner) and runs_again(module, function, node):
            reason = f"{shown}(…) calls {inner}(…) and" if inner else f"{effect}(…)"
            step = f'{function.given[0]}.step("…", {effect or shown}, …)'
            message = (
                f"{reason} runs in every round, because a later call ends the round: move it into a step, "
                f"as in `{step}`, or behind the last call of the context"
            )
            yield node, message


def _effect_inside(source: Source, call: ast.Call, seen: set[ast.AST]) -> str | None:
    """Return the effect that the called function certainly has. `seen`: the functions that are followed."""
    called = called_function(source, call)
    if called is None or called.node in seen or not _runs_plainly(source, call, called):
        return None
    seen.add(called.node)
    given = frozenset(each.arg for each in parameters(called.node))
    for node in certain_calls(called.source, called.node):
        path, effect = changed_path(called.source, node), effect_of(called.source, node)
        if path is not None and not is_known_path(called.source, path, given):
            continue  # the caller may pass a path in the scratch folder
        if effect is None or _only_reads(called, node):
            effect = _effect_inside(called.source, node, seen)
        if effect is not None:
            return effect
    return None


def _runs_plainly(source: Source, call: ast.Call, called: Definition[FunctionNode]) -> bool:
    """Return whether the call runs the function's body now, without a context, a cache or a generator."""
    if has_context(called.source, called.node):
        return False  # checked by itself
    if any("cache" in ast.unparse(each).lower() for each in called.node.decorator_list):
        return False
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(called.node)):
        return False
    outer = source.parents[call]
    is_scheduled = isinstance(outer, ast.Call) and (source.dotted(outer.func) or "").startswith("asyncio.")
    return isinstance(called.node, ast.FunctionDef) or isinstance(outer, ast.Await) or is_scheduled


def _only_reads(function: Definition[FunctionNode], call: ast.Call) -> bool:
    """Return whether the effect may be none: its result is used, and the function's name tells no change."""
    outer = function.source.parents[call]
    if isinstance(outer, ast.Await):
        outer = function.source.parents[outer]
    word = function.node.name.strip("_").partition("_")[0]
    return can_read(function.source, call) and not isinstance(outer, ast.Expr) and word not in _CHANGING_WORDS
