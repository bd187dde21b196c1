"""The function, class or variable that a name means: in the module, or one of the same folder or package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcp_roundtrip_tools.lint.source import FunctionNode, Source, own_nodes, parameters, read_module

_MAX_DEPTH = 5
"""Packages around a module in which an imported module is looked for."""


@dataclass(frozen=True)
class Definition:
    """A function, and the module that contains it."""

    source: Source
    node: FunctionNode


@dataclass(frozen=True)
class ClassDefinition:
    """A class, and the module that contains it."""

    source: Source
    node: ast.ClassDef


def called_function(source: Source, call: ast.Call) -> Definition | None:
    """Return the function or method that a call runs; None for a class, and code outside of the folder."""
    if isinstance(call.func, ast.Name):
        inner = _inner_function(source, call, call.func.id)
        if inner is not None:
            return Definition(source, inner)
    name = source.dotted(call.func)
    if name is not None:
        if name in source.functions:
            return Definition(source, source.functions[name])
        module, _, function = name.rpartition(".")
        imported = _module(source, module)
        if imported is not None and function in imported.functions:
            return Definition(imported, imported.functions[function])
    if isinstance(call.func, ast.Attribute):
        receiver = _class_of(source, call.func.value) or class_named(source, call.func.value)
        return None if receiver is None else _method(receiver, call.func.attr, set())
    return None


def class_named(source: Source, node: ast.expr) -> ClassDefinition | None:
    """Return the class of the folder that an expression names, such as `orders.Basket`."""
    name = source.dotted(node)
    if name is None:
        return None
    if name in source.classes:
        return ClassDefinition(source, source.classes[name])
    module, _, own_name = name.rpartition(".")
    imported = _module(source, module)
    if imported is None or own_name not in imported.classes:
        return None
    return ClassDefinition(imported, imported.classes[own_name])


def bases_of(definition: ClassDefinition) -> Iterator[ClassDefinition]:
    """Yield the base classes that the folder defines."""
    found = (class_named(definition.source, base) for base in definition.node.bases)
    yield from (each for each in found if each is not None)


def _method(definition: ClassDefinition, name: str, seen: set[ast.ClassDef]) -> Definition | None:
    """Return a method of a class or of its bases. `seen`: classes may inherit from each other by mistake."""
    if definition.node in seen:
        return None
    seen.add(definition.node)
    own = [node for node in definition.node.body if isinstance(node, FunctionNode) and node.name == name]
    if own:
        return Definition(definition.source, own[-1])
    inherited = (_method(base, name, seen) for base in bases_of(definition))
    return next((each for each in inherited if each is not None), None)


def _class_of(source: Source, node: ast.expr) -> ClassDefinition | None:
    """Return the class of an object: of `self`, of a parameter, or of what a variable is assigned."""
    made: tuple[Source, ast.expr] | None = (source, node)
    if isinstance(node, ast.Name):
        function = _with_parameter(source, node)
        if function is not None:
            return _class_of_parameter(source, function, node.id)
        value = only_value(source, node, node.id)
        made = None if value is None else (source, value)
    if made is None or isinstance(node, ast.Attribute):
        made = imported_value(source, source.dotted(node) or "")
    if made is None or not isinstance(made[1], ast.Call):
        return None
    return class_named(made[0], made[1].func)


def _with_parameter(source: Source, node: ast.Name) -> FunctionNode | None:
    """Return the innermost function around a name that has it as a parameter."""
    functions = (each for each in source.ancestors(node) if isinstance(each, FunctionNode))
    return next((f for f in functions if any(each.arg == node.id for each in parameters(f))), None)


def _class_of_parameter(source: Source, function: FunctionNode, name: str) -> ClassDefinition | None:
    given = {each.arg: each.annotation for each in parameters(function)}
    annotation, outer = given[name], source.parents[function]
    if annotation is not None:
        return class_named(source, annotation)
    is_bound = isinstance(outer, ast.ClassDef) and name == next(iter(given)) and not _is_static(function)
    return ClassDefinition(source, outer) if is_bound and isinstance(outer, ast.ClassDef) else None


def _is_static(function: FunctionNode) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)


def only_value(source: Source, use: ast.AST, name: str) -> ast.expr | None:
    """Return what a variable of the function or of the module is assigned, if that is one expression."""
    for scope in source.ancestors(use):
        if not isinstance(scope, FunctionNode | ast.Module):
            continue
        values = [value for node in own_nodes(scope) for value in assigned_values(node, name)]
        if values:
            return values[0] if len(values) == 1 and use not in ast.walk(values[0]) else None
    return None


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
