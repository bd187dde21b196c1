"""MRT003 and MRT004: calls of an `AsyncContext` without `await`, and awaited calls of a `Context`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mcp_roundtrip_lint.contexts import AWAITABLE, HELPER, ContextCall, ContextFunction, Module
from mcp_roundtrip_lint.source import Source, own_nodes

_NEEDS_VALUE = frozenset(
    {"str", "int", "float", "bool", "len", "list", "tuple", "sorted", "print", "repr", "next"}
)


def check_missing(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls that have to be awaited and whose result is used, or dropped, instead."""
    for function in module.functions:
        for call in function.calls:
            if call.is_async and call.method in AWAITABLE | {HELPER} and _is_misused(module, function, call):
                yield call.node, f"{call.shown}(…) is not awaited: write `await {call.shown}(…)`"


def _is_misused(module: Module, function: ContextFunction, call: ContextCall) -> bool:
    source = module.source
    if _needs_value(source, call.node):
        return True
    parent = source.parents[call.node]
    if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if not isinstance(parent, ast.NamedExpr) and any(
            isinstance(each, ast.Tuple | ast.List) for each in targets
        ):
            return True
        names = {each.id for each in targets if isinstance(each, ast.Name)}
        return len(names) == len(targets) and _is_misused_name(source, function, names)
    return False


def _is_misused_name(source: Source, function: ContextFunction, names: set[str]) -> bool:
    uses = [
        node
        for node in ast.walk(function.node)
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
    ]
    stores = [
        node
        for node in own_nodes(function.node)
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Store)
    ]
    return len(stores) == 1 and all(_needs_value(source, node) for node in uses)


def _needs_value(source: Source, node: ast.AST) -> bool:
    """Return whether the place uses the value that only `await` returns, or drops the call."""
    match source.parents[node]:
        case ast.Expr() | ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.BinOp() | ast.FormattedValue():
            return True
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return test is node
        case ast.Attribute(attr=attr):
            return attr not in ("close", "send", "throw", "__await__")
        case ast.Subscript(value=value):
            return value is node
        case ast.For(iter=iterable) | ast.comprehension(iter=iterable):
            return iterable is node
        case ast.Match(subject=subject):
            return subject is node
        case ast.Call(func=ast.Name(id=name)):
            return name in _NEEDS_VALUE
    return False


def check_needless(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find awaited calls of a `Context`, whose methods return the value itself."""
    for function in module.functions:
        for call in function.calls:
            is_awaited = isinstance(module.source.parents[call.node], ast.Await)
            if is_awaited and call.is_async is False and call.method in AWAITABLE:
                message = (
                    f"{call.shown}(…) of a Context returns the value itself: leave out `await`, or "
                    "annotate the context as AsyncContext"
                )
                yield call.node, message
