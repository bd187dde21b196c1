"""MRT003 and MRT004: calls of an `AsyncContext` without `await`, and awaited calls of a `Context`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mcp_roundtrip_tools.lint.contexts import (
    AWAITABLE,
    ENDING,
    HELPER,
    NOTIFICATIONS,
    ContextFunction,
    Module,
)
from mcp_roundtrip_tools.lint.source import Source, own_nodes

_NEEDS_VALUE = frozenset(
    {"str", "int", "float", "bool", "len", "list", "tuple", "sorted", "print", "repr", "next"}
)
_VALUES = frozenset({"str", "int", "float", "bool", "list", "tuple", "dict", "set"})
_TAKES_VALUES = (ENDING | NOTIFICATIONS) - {"gather"}


def check_missing(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls that have to be awaited and whose result is used, or dropped, instead."""
    for function in module.functions:
        for call in function.calls:
            if (
                call.is_async
                and call.method in AWAITABLE | {HELPER}
                and _is_misused(module.source, function, call.node)
            ):
                yield call.node, f"{call.shown}(…) is not awaited: write `await {call.shown}(…)`"


def _is_misused(source: Source, function: ContextFunction, node: ast.Call) -> bool:
    parent = source.parents[node]
    if isinstance(parent, ast.Call) and source.dotted(parent.func) == "asyncio.gather":
        is_dropped = isinstance(source.parents[parent], ast.Expr)  # its tasks run nevertheless
        return not is_dropped and _is_misused(source, function, parent)
    if _needs_value(source, node) or _is_result(source, function, node) or _is_passed(function, parent):
        return True
    if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if not isinstance(parent, ast.NamedExpr) and any(
            isinstance(each, ast.Tuple | ast.List) for each in targets
        ):
            return True
        names = {each.id for each in targets if isinstance(each, ast.Name)}
        return len(names) == len(targets) and _is_misused_name(source, function, names)
    return False


def _is_passed(function: ContextFunction, outer: ast.AST) -> bool:
    """Return whether the call is an argument of another call of the context, which needs its value."""
    return any(each.node is outer and each.method in _TAKES_VALUES for each in function.calls)


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
    return len(stores) == 1 and all(
        _needs_value(source, node)
        or _is_result(source, function, node)
        or _is_passed(function, source.parents[node])
        for node in uses
    )


def _is_result(source: Source, function: ContextFunction, node: ast.AST) -> bool:
    """Return whether the call is the result of a function, or in it, that has to return the value.

    Another function may return the call to be awaited.
    """
    if not isinstance(function.node, ast.AsyncFunctionDef):
        return False
    if not function.is_feature and not _returns_value(source, function.node):
        return False
    outer = source.parents[node]
    # A helper may return a list of calls.
    around = ast.Dict | ast.List | ast.Tuple | ast.IfExp if function.is_feature else ast.IfExp
    while isinstance(outer, around):
        outer = source.parents[outer]
    return isinstance(outer, ast.Return)


def _returns_value(source: Source, function: ast.AsyncFunctionDef) -> bool:
    """Return whether the annotation of the result is a type to which no awaitable belongs."""
    returned = function.returns
    if isinstance(returned, ast.Subscript):
        returned = returned.value
    return returned is not None and source.dotted(returned) in _VALUES


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
        case ast.AugAssign(value=value):
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
