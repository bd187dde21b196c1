"""MRT007: code that catches `Suspend`, by which a round ends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.source import own_nodes

_SWALLOWED = frozenset({"BaseException", "builtins.BaseException", "mcp_roundtrip.Suspend"})


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
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
    for handler in node.handlers:
        if _catches_suspend(module, handler.type) and not _raises_again(handler):
            shown = "except:" if handler.type is None else f"except {ast.unparse(handler.type)}"
            yield handler, f"`{shown}` catches the end of the round: write `except Exception`, or raise again"
            return
        if _catches_suspend(module, handler.type):
            return


def _catches_suspend(module: Module, kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any((module.source.dotted(each) or "") in _SWALLOWED for each in kinds)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(each, ast.Raise) for each in own_nodes(handler))


def _final_jumps(node: ast.Try | ast.TryStar) -> Iterator[tuple[ast.AST, str]]:
    for statement in node.finalbody:
        if isinstance(statement, ast.Return | ast.Break | ast.Continue):
            word = type(statement).__name__.lower()
            yield (
                statement,
                f"`{word}` in a finally block drops the end of the round: move it behind the block",
            )


def _suppressed(module: Module, node: ast.With | ast.AsyncWith) -> Iterator[tuple[ast.AST, str]]:
    for item in node.items:
        call = item.context_expr
        if not isinstance(call, ast.Call) or module.source.dotted(call.func) != "contextlib.suppress":
            continue
        if any(_catches_suspend(module, each) for each in call.args):
            yield call, f"{ast.unparse(call)} catches the end of the round: write `suppress(Exception)`"
