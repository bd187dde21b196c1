"""MRT001: values that differ in every round, such as the time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import ContextFunction, Module
from mcp_roundtrip_tools.lint.reachability import runs_again
from mcp_roundtrip_tools.lint.rules.changing_values import CONVERSIONS, remedy_for
from mcp_roundtrip_tools.lint.source import FunctionNode, Source, own_nodes

_SORTING: Final = frozenset({"sorted", "min", "max"})
"""Functions that call their `key` at once."""

_LOG_METHODS: Final = frozenset(
    {"debug", "info", "warning", "error", "exception", "critical", "log", "append_keys", "add_metric"}
)


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls whose value another round would not repeat."""
    for function in module.functions:
        for node in _nodes_of(function):
            if not isinstance(node, ast.Call):
                continue
            remedy, shown = remedy_for(module.source, node), ast.unparse(node.func)
            if remedy is None or _is_only_logged(module.source, function, node):
                continue
            if runs_again(module, function, node):
                remedy = remedy.replace("ctx", next(iter(function.names)))
                yield node, f"{shown}() has another value in every round: {remedy}"


def _nodes_of(function: ContextFunction) -> Iterator[ast.AST]:
    """The nodes of a function, with those of lambdas that run at once: `sorted(names, key=lambda …)`."""
    for node in own_nodes(function.node):
        yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SORTING:
            for keyword in node.keywords:
                yield from own_nodes(keyword.value) if isinstance(keyword.value, ast.Lambda) else ()


def _is_only_logged(source: Source, function: ContextFunction, node: ast.expr) -> bool:
    """Return whether the value reaches nothing but a log line, also by way of variables."""
    pending, seen = [node], {node}
    while pending:
        used = pending.pop()
        if _is_in_log_line(source, function.node, used):
            continue
        names = _variables_of(source, used)
        if not names:
            return False
        uses = {
            each
            for each in ast.walk(function.node)
            if isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load)
        }
        pending += uses - seen
        seen |= uses
    return True


def _variables_of(source: Source, node: ast.expr) -> set[str]:
    """Return the variables to which a statement assigns the value, or what it computes from the value."""
    outer = source.parents[node]
    while isinstance(outer, ast.BinOp | ast.UnaryOp | ast.JoinedStr | ast.FormattedValue) or _converts(outer):
        outer = source.parents[outer]
    targets = outer.targets if isinstance(outer, ast.Assign) else [getattr(outer, "target", None)]
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    is_assignment = isinstance(outer, ast.Assign | ast.AnnAssign | ast.NamedExpr)
    return names if is_assignment and len(names) == len(targets) else set()


def _converts(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CONVERSIONS


def _is_in_log_line(source: Source, function: FunctionNode, node: ast.AST) -> bool:
    for outer in source.ancestors(node):
        if outer is function or isinstance(outer, ast.stmt):
            return isinstance(outer, ast.Expr) and isinstance(outer.value, ast.Call) and _logs(outer.value)
    return False


def _logs(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _LOG_METHODS
    return isinstance(call.func, ast.Name) and call.func.id == "print"
