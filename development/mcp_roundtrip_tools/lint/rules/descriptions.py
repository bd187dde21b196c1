"""MRT013: tools that the model knows only by their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.definitions import imported_value
from mcp_roundtrip_tools.lint.source import FunctionNode, Source


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find tools without a docstring and without `description=`."""
    for node in ast.walk(module.source.tree):
        if isinstance(node, FunctionNode) and not (ast.get_docstring(node) or "").strip():
            for decorator in node.decorator_list:
                if registers_tool(module.source, decorator) and not _is_described(decorator):
                    yield node, f"{node.name} has no docstring, by which the model selects a tool: write one"


def registers_tool(source: Source, decorator: ast.expr) -> bool:
    """Return whether a decorator is `tool` of a server of this package."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if not isinstance(called, ast.Attribute) or called.attr != "tool":
        return False
    if any(name.startswith("mcp_roundtrip.") for name in source.imports.values()):
        return True
    imported = imported_value(source, source.dotted(called.value) or "")
    if imported is None or not isinstance(imported[1], ast.Call):
        return False
    return imported[0].dotted(imported[1].func) == "mcp_roundtrip.Server"


def _is_described(decorator: ast.expr) -> bool:
    """Return whether the decorator has a description, or arguments that this rule cannot read."""
    given = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(each.arg in ("description", None) for each in given)
