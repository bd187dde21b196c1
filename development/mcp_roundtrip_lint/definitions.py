"""The function or variable that a name means: in the module, or in a module of the same folder or package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcp_roundtrip_lint.reading import read_module
from mcp_roundtrip_lint.source import FunctionNode, Source, own_nodes

_MAX_DEPTH = 5
"""Packages around a module in which an imported module is looked for."""


@dataclass(frozen=True)
class Definition:
    """A function, and the module that contains it."""

    source: Source
    node: FunctionNode


def called_function(source: Source, call: ast.Call) -> Definition | None:
    """Return the function that a call runs; None for a method, a class, and code outside of the folder."""
    if isinstance(call.func, ast.Name):
        inner = _inner_function(source, call, call.func.id)
        if inner is not None:
            return Definition(source, inner)
    name = source.dotted(call.func)
    if name is None:
        return None
    if name in source.functions:
        return Definition(source, source.functions[name])
    module, _, function = name.rpartition(".")
    imported = _module(source, module)
    if imported is None or function not in imported.functions:
        return None
    return Definition(imported, imported.functions[function])


def _inner_function(source: Source, call: ast.Call, name: str) -> FunctionNode | None:
    for outer in source.ancestors(call):
        if isinstance(outer, FunctionNode):
            found = [
                node for node in own_nodes(outer) if isinstance(node, FunctionNode) and node.name == name
            ]
            if found:
                return found[0] if len(found) == 1 else None
    return None


def imported_value(source: Source, name: str) -> tuple[Source, ast.expr] | None:
    """Return what a module of the folder assigns to a variable, by its full name such as `clients.queue`."""
    module, _, variable = name.rpartition(".")
    imported = _module(source, module)
    if imported is None:
        return None
    values = [value for node in imported.tree.body for value in assigned_values(node, variable)]
    return (imported, values[0]) if len(values) == 1 else None


def assigned_values(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what one statement, or one item of a `with`, assigns to a variable."""
    if isinstance(node, ast.Assign):
        if any(isinstance(each, ast.Name) and each.id == name for each in node.targets):
            yield node.value
    elif isinstance(node, ast.AnnAssign):
        if isinstance(node.target, ast.Name) and node.target.id == name and node.value is not None:
            yield node.value
    elif isinstance(node, ast.withitem):
        variable = node.optional_vars
        if isinstance(variable, ast.Name) and variable.id == name:
            yield node.context_expr


def _module(source: Source, name: str) -> Source | None:
    """Return an imported module of the folder, or of a package around it."""
    parts = name.lstrip(".")
    if not parts:
        return None
    for folder in _folders(source.path.parent, level=len(name) - len(parts)):
        path = folder.joinpath(*parts.split("."))
        for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if file.is_file() and file != source.path:
                return _load(source, file)
    return None


def _folders(folder: Path, *, level: int) -> list[Path]:
    """Return the folders to which an import of this level is relative: 0 for an absolute import."""
    if level:
        return (
            [folder if level == 1 else folder.parents[level - 2]] if level - 2 < len(folder.parents) else []
        )
    folders = [folder]
    while (folders[-1] / "__init__.py").is_file() and len(folders) < _MAX_DEPTH:
        folders.append(folders[-1].parent)
    return folders


def _load(source: Source, file: Path) -> Source | None:
    if file not in source.loaded:
        source.loaded[file] = None
        try:
            text = read_module(file)
            source.loaded[file] = Source(file, text, ast.parse(text), source.loaded)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            pass  # reported where the file is checked itself
    return source.loaded[file]
