"""MRT010: variables of the module that a tool changes. The next round may run in another environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import ContextFunction, Module
from mcp_roundtrip_tools.lint.source import FunctionNode, Source, own_nodes, parameters

_CHANGING: Final = frozenset(
    {"append", "extend", "insert", "add", "update", "pop", "popitem", "remove", "discard", "clear"}
)
_CONTAINERS: Final = frozenset(
    {"list", "dict", "set", "collections.defaultdict", "collections.deque", "collections.OrderedDict"}
)


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find assignments to global variables, and changes of lists, dicts and sets of the module."""
    containers = _containers(module.source)
    for function in module.functions:
        assigned = {
            name for node in own_nodes(function.node) if isinstance(node, ast.Global) for name in node.names
        }
        changeable = containers - _own_names(function) | (containers & assigned)
        for node in own_nodes(function.node):
            name = _changed(node, assigned, changeable)
            if name is not None and not _is_cache(module.source, function.node, node, name):
                message = (
                    f"{name} is a variable of the module: another round may run in another environment, "
                    "which has its own. Keep the value in a step's result, or in a store"
                )
                yield node, message


def _containers(source: Source) -> set[str]:
    found = set()
    for node in source.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        is_container = isinstance(value, ast.List | ast.Dict | ast.Set) or (
            isinstance(value, ast.Call) and source.dotted(value.func) in _CONTAINERS
        )
        found |= {each.id for each in targets if isinstance(each, ast.Name) and is_container}
    return found


def _own_names(function: ContextFunction) -> set[str]:
    stored = {
        node.id
        for node in own_nodes(function.node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return stored | {each.arg for each in parameters(function.node)}


def _changed(node: ast.AST, assigned: set[str], containers: set[str]) -> str | None:
    """Return the variable of the module that a statement or a call changes."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        return node.id if node.id in assigned else None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return node.value.id if isinstance(node.value, ast.Name) and node.value.id in containers else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
        receiver = node.func.value
        return receiver.id if isinstance(receiver, ast.Name) and receiver.id in containers else None
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
