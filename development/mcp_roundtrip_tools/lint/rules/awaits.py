"""MRT003 and MRT004: calls of an `AsyncContext` without `await`, and awaited calls that return the value."""

import ast
from collections.abc import Iterator

from mcp_roundtrip_tools.lint.contexts import AWAITABLE, HELPER, ContextFunction, Module
from mcp_roundtrip_tools.lint.parsed_module import Source, assignments

_NEEDS_VALUE = frozenset(
    {"str", "int", "float", "bool", "len", "list", "tuple", "sorted", "print", "repr", "next"}
)
_TASKS = frozenset({"asyncio.create_task", "asyncio.ensure_future", "asyncio.gather"})
_TAKES_VALUES = AWAITABLE - {"gather"}
_SYNCHRONOUS = frozenset({"branch", "supports", "idempotency_key", "reference"})


def check_missing(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls that have to be awaited and whose result is used, or dropped, instead."""
    for function in module.functions:
        for call in function.calls:
            if not call.is_async or call.method not in AWAITABLE | {HELPER}:
                continue
            shown = ast.unparse(call.node.func)
            if _is_misused(module.source, function, call.node):
                yield call.node, f"{shown}(…) is not awaited: write `await {shown}(…)`"
            elif call.ends_round and (started := _starts_dropped_task(module.source, call.node)):
                yield call.node, f"{started}({shown}(…)) is not awaited: keep what it returns, and await that"


def _is_misused(source: Source, function: ContextFunction, node: ast.Call) -> bool:
    parent = source.parents[node]
    if isinstance(parent, ast.Call) and source.dotted(parent.func) == "asyncio.gather":
        is_dropped = isinstance(source.parents[parent], ast.Expr)  # its tasks run nevertheless
        return not is_dropped and _is_misused(source, function, parent)
    if _needs_value(source, function, node):
        return True
    targets = [target for target, _ in assignments(parent)]
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    is_unpacked = any(isinstance(each, ast.Tuple | ast.List) for each in targets)
    return is_unpacked or any(_is_misused_name(source, function, name) for name in names)


def _starts_dropped_task(source: Source, call: ast.Call) -> str | None:
    """Return the function that starts a task for a call, in a statement that keeps nothing to await."""
    outer = source.parents[call]
    if not isinstance(outer, ast.Call) or not isinstance(source.parents[outer], ast.Expr):
        return None
    return ast.unparse(outer.func) if source.dotted(outer.func) in _TASKS else None


def _is_misused_name(source: Source, function: ContextFunction, name: str) -> bool:
    names = (each for each in ast.walk(function.node) if isinstance(each, ast.Name) and each.id == name)
    uses = [each for each in names if isinstance(each.ctx, ast.Load)]
    is_certain = source.variables[function.node].get(name) is not None
    return is_certain and all(_needs_value(source, function, each) for each in uses)


def _needs_value(source: Source, function: ContextFunction, node: ast.expr) -> bool:
    """Return whether the place uses the value that only `await` returns, or drops the call."""
    parent = source.parents[node]
    match parent:
        case ast.Expr() | ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.BinOp() | ast.FormattedValue():
            return True
        case ast.If(test=used) | ast.While(test=used) | ast.IfExp(test=used) | ast.Assert(test=used):
            return used is node or _is_result(source, function, node)
        case ast.For(iter=used) | ast.comprehension(iter=used) | ast.Match(subject=used):
            return used is node
        case ast.Subscript(value=used) | ast.AugAssign(value=used):
            return used is node
        case ast.Attribute(attr=attr):
            return attr not in ("close", "send", "throw", "__await__")
        case ast.Call(func=ast.Name(id=name)) if name in _NEEDS_VALUE:
            return True
        case ast.Call():  # another call of the context
            return any(each.node is parent and each.method in _TAKES_VALUES for each in function.calls)
    return _is_result(source, function, node)


def _is_result(source: Source, function: ContextFunction, node: ast.AST) -> bool:
    """Return whether the call is the result of a tool, or in it. A helper may return it to be awaited."""
    outer = source.parents[node]
    while isinstance(outer, ast.Dict | ast.List | ast.Tuple | ast.IfExp):
        outer = source.parents[outer]
    is_async = isinstance(function.node, ast.AsyncFunctionDef)
    return function.is_feature and is_async and isinstance(outer, ast.Return)


def check_needless(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find awaited calls that return the value itself: all of a `Context`, and some of an `AsyncContext`."""
    for function in module.functions:
        for call in function.calls:
            if not isinstance(module.source.parents[call.node], ast.Await):
                continue
            message = f"{ast.unparse(call.node.func)}(…) returns the value itself: leave out `await`"
            if call.method in _SYNCHRONOUS:
                yield call.node, message
            elif call.is_async is False and call.method in AWAITABLE:
                yield call.node, f"{message}, or annotate the context as AsyncContext"
