"""MRT010: variables of the module that a tool changes. The next round may run in another environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.source import FunctionNode, Source, own_nodes, parameters

_CHANGING: Final = frozenset(
    {"append", "extend", "insert", "add", "update", "pop", "popitem", "remove", "discard", "clear"}
)
_CONTAINERS: Final = frozenset(
    {"list", "dict", "set", "collections.defaultdict", "collections.deque", "collections.OrderedDict"}
)


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find assignments to global variables, and changes of lists, dicts and sets of the module."""
    containers = {
        name for name, value in module.source.top_level.items() if _is_container(module.source, value)
    }
    for function in module.functions:
        nodes = [*own_nodes(function.node)]
        assigned = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        own |= {each.arg for each in parameters(function.node)}
        for node in nodes:
            name = _changed(node, assigned, containers - (own - assigned))
            if name is not None and not _is_cache(module.source, function.node, node, name):
                message = (
                    f"{name} is a variable of the module: another round may run in another environment, "
                    "which has its own. Keep the value in a step's result, or in a store"
                )
                yield node, message


def _is_container(source: Source, value: ast.AST) -> bool:
    is_call = isinstance(value, ast.Call) and source.dotted(value.func) in _CONTAINERS
    return is_call or isinstance(value, ast.List | ast.Dict | ast.Set)


def _changed(node: ast.AST, assigned: set[str], containers: set[str]) -> str | None:
    """Return the variable of the module that a statement or a call changes."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return name if name in assigned else None
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name if name in containers else None
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGING:
            return name if name in containers else None
    return None


def _is_cache(source: Source, function: FunctionNode, node: ast.AST, name: str) -> bool:
    """Return whether the change fills a cache: it depends on what the variable holds, or is named so."""
    if "cache" in name.lower():
        return True
    for outer in source.ancestors(node):
        if outer is function:
            return False
        tests: list[ast.AST] = [outer.test] if isinstance(outer, ast.If) else []
        if isinstance(outer, ast.ExceptHandler):
            tried = source.parents[outer]
            tests = list(tried.body) if isinstance(tried, ast.Try) else []
        if any(isinstance(each, ast.Name) and each.id == name for test in tests for each in ast.walk(test)):
            return True
    return False
