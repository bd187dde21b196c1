"""The function, class or value that a name means: in the module, or in one of the same folder or package."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from mcp_roundtrip_tools.lint.source import (
    FunctionNode,
    Source,
    assigned_values,
    is_stored,
    own_nodes,
    parameters,
)

_MAX_DEPTH = 5
"""Packages around a module in which an imported module is looked for."""

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Definition(Generic[Node]):
    """A function, a class or a value, and the module that contains it."""

    source: Source
    node: Node


def definition_of(source: Source, node: ast.AST) -> Definition[ast.AST] | None:
    """Return what an expression such as `clients.queue` means on the top level of a module."""
    name = source.dotted(node)
    if name is None:
        return None
    if name in source.top_level:
        return Definition(source, source.top_level[name])
    module, _, own_name = name.rpartition(".")
    imported = _module(source, module)
    found = None if imported is None else imported.top_level.get(own_name)
    return None if imported is None or found is None else Definition(imported, found)


def class_named(source: Source, node: ast.AST) -> Definition[ast.ClassDef] | None:
    """Return the class of the folder that an expression names, such as `orders.Basket`."""
    found = definition_of(source, node)
    return Definition(found.source, found.node) if found and isinstance(found.node, ast.ClassDef) else None


def lineage(definition: Definition[ast.ClassDef]) -> list[Definition[ast.ClassDef]]:
    """Return a class and its base classes in the folder, each once: they may inherit from each other."""
    found = [definition]
    for each in found:
        bases = (class_named(each.source, base) for base in each.node.bases)
        found += [base for base in bases if base and all(base.node is not known.node for known in found)]
    return found


def called_function(source: Source, call: ast.Call) -> Definition[FunctionNode] | None:
    """Return the function or method that a call runs; None for a class, and code outside of the folder."""
    if isinstance(call.func, ast.Name) and (inner := _inner_function(source, call.func)) is not None:
        return Definition(source, inner)
    found = definition_of(source, call.func)
    if found is not None and isinstance(found.node, FunctionNode):
        return Definition(found.source, found.node)
    if not isinstance(call.func, ast.Attribute):
        return None
    receiver = _class_of(source, call.func.value) or class_named(source, call.func.value)
    for each in [] if receiver is None else lineage(receiver):
        for node in each.node.body:
            if isinstance(node, FunctionNode) and node.name == call.func.attr:
                return Definition(each.source, node)
    return None


def _inner_function(source: Source, name: ast.Name) -> FunctionNode | None:
    for outer in source.ancestors(name):
        if isinstance(outer, FunctionNode):
            for node in own_nodes(outer):
                if isinstance(node, FunctionNode) and node.name == name.id:
                    return node
    return None


def _class_of(source: Source, node: ast.expr) -> Definition[ast.ClassDef] | None:
    """Return the class of an object: of `self`, of a parameter, or of what a variable is assigned."""
    name = node.id if isinstance(node, ast.Name) else ""
    for function in (each for each in source.ancestors(node) if isinstance(each, FunctionNode)):
        given = {each.arg: each.annotation for each in parameters(function)}
        if name in given:
            annotation, outer = given[name], source.parents[function]
            if annotation is not None:
                return class_named(source, annotation)
            is_bound = isinstance(outer, ast.ClassDef) and name == next(iter(given))
            return Definition(source, outer) if is_bound and isinstance(outer, ast.ClassDef) else None
    made = value_of(source, node)
    return class_named(made.source, made.node.func) if made and isinstance(made.node, ast.Call) else None


def value_of(source: Source, node: ast.expr) -> Definition[ast.expr] | None:
    """Return the expression that makes a value: the node itself, or what the variable is assigned."""
    if isinstance(node, ast.Name) and (value := only_value(source, node)) is not None:
        return Definition(source, value)
    if not isinstance(node, ast.Name | ast.Attribute):
        return Definition(source, node)
    found = definition_of(source, node)
    return Definition(found.source, found.node) if found and isinstance(found.node, ast.expr) else None


def only_value(source: Source, name: ast.Name) -> ast.expr | None:
    """Return what a variable of a function or of the module is assigned, if that is one expression."""
    for scope in source.ancestors(name):
        if not isinstance(scope, FunctionNode | ast.Lambda | ast.Module):
            continue
        given = [] if isinstance(scope, ast.Module) else parameters(scope)
        stores = [node for node in own_nodes(scope) if is_stored(node, name.id)]
        if any(each.arg == name.id for each in given):
            return None
        if stores:
            values = [value for node in own_nodes(scope) for value in assigned_values(node, name.id)]
            is_only = len(stores) == len(values) == 1 and name not in ast.walk(values[0])
            return values[0] if is_only else None
    return None


def _module(source: Source, name: str) -> Source | None:
    """Return an imported module of the folder, or of a package around it."""
    parts = name.lstrip(".")
    if not parts:
        return None
    for folder in _folders(source.path.parent, level=len(name) - len(parts)):
        path = folder.joinpath(*parts.split("."))
        for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if file.is_file() and file != source.path:
                return source.load(file)
    return None


def _folders(folder: Path, *, level: int) -> list[Path]:
    """Return the folders to which an import of this level is relative: 0 for an absolute import."""
    if level:
        return [folder, *folder.parents][level - 1 : level]
    folders = [folder]
    while (folders[-1] / "__init__.py").is_file() and len(folders) < _MAX_DEPTH:
        folders.append(folders[-1].parent)
    return folders
