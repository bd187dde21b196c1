"""What a name means: a function, a class or a value, of the module or of its folder or package."""

import ast
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.lint.parsed_module import Definition, FunctionNode, Source

_MAX_NAMES: Final = 20
"""Names that are followed from one to the next. They may refer to each other."""

_TRANSPARENT: Final = frozenset({"typing.Optional", "typing.Annotated", "typing_extensions.Annotated"})


def definition_of(source: Source, node: ast.AST) -> Definition[ast.AST]:
    """Follow a name such as `clients.queue` to what it means. What is outside of the folder stays a name."""
    found = Definition(source, node)
    for _ in range(_MAX_NAMES):
        known = found.source.followed
        if found.node not in known:
            known[found.node] = None  # while it is followed: attributes may refer to each other
            known[found.node] = _next_of(found.source, found.node)
        following = known[found.node]
        if following is None:
            break
        found = following
    return found


def _next_of(source: Source, node: ast.AST) -> Definition[ast.AST] | None:
    if isinstance(node, ast.Name) and (scope := source.scope_of(node)) is not None:
        value = source.variables[scope][node.id]
        return None if value is None else Definition(source, value)
    if not isinstance(node, ast.Name | ast.Attribute):
        return None
    module, _, name = (source.dotted(node) or "").rpartition(".")
    imported = _module(source, module)
    if imported is not None and (name in imported.top_level or name in imported.imports):
        return Definition(imported, ast.Name(name, ast.Load()))
    return _member(source, node) if isinstance(node, ast.Attribute) else None


def class_named(source: Source, node: ast.AST) -> Definition[ast.ClassDef] | None:
    """Return the class of the folder that an expression names, such as `orders.Basket`."""
    source, found = definition_of(source, node)
    return Definition(source, found) if isinstance(found, ast.ClassDef) else None


def called_function(source: Source, call: ast.Call) -> Definition[FunctionNode] | None:
    """Return the function or method that a call runs; None for a class, and code outside of the folder."""
    source, found = definition_of(source, call.func)
    return Definition(source, found) if isinstance(found, FunctionNode) else None


def lineage(definition: Definition[ast.ClassDef]) -> list[Definition[ast.ClassDef]]:
    """Return a class and its base classes in the folder, each once: they may inherit from each other."""
    found = [definition]
    for each in found:
        bases = (class_named(each.source, base) for base in each.node.bases)
        found += [base for base in bases if base and all(base.node is not known.node for known in found)]
    return found


def _member(source: Source, node: ast.Attribute) -> Definition[ast.AST] | None:
    """Return the method of an object, or the only value that the class assigns to an attribute."""
    owner = _class_of(source, node.value)
    for each in [] if owner is None else lineage(owner):
        variables = each.source.variables
        methods = [scope for scope in ast.walk(each.node) if isinstance(scope, FunctionNode)]
        name = f"self.{node.attr}"
        found = [variables[method][name] for method in methods if name in variables[method]]
        found = found or [variables[each.node].get(node.attr)]
        if len(found) == 1 and found[0] is not None:
            return Definition(each.source, found[0])
    return None


def _class_of(source: Source, node: ast.expr) -> Definition[ast.ClassDef] | None:
    """Return a class, or that of an object: of `self`, of a parameter, or of what a variable is assigned."""
    source, made = definition_of(source, node)
    match made:
        case ast.ClassDef():
            return Definition(source, made)
        case ast.Call(func=function):
            return class_named(source, function)
        case ast.arg(arg="self" | "cls"):
            outer = (each for each in source.ancestors(made) if isinstance(each, ast.ClassDef))
            return next((Definition(source, each) for each in outer), None)
        case ast.arg(annotation=ast.expr() as annotation):
            return class_named(source, unwrapped(source, annotation))
    return None


def unwrapped(source: Source, annotation: ast.expr) -> ast.expr:
    """Return the type inside quotes, `Annotated[…]` and `… | None`."""
    match annotation:
        case ast.Constant(value=str(text)):
            try:
                return unwrapped(source, ast.parse(text, mode="eval").body)
            except SyntaxError:
                return annotation
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return unwrapped(source, left)
        case ast.BinOp(left=ast.Constant(value=None), op=ast.BitOr(), right=right):
            return unwrapped(source, right)
        case ast.Subscript(value=outer, slice=inner) if source.dotted(outer) in _TRANSPARENT:
            return unwrapped(source, inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
    return annotation


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
    while (folders[-1] / "__init__.py").is_file():
        folders.append(folders[-1].parent)
    return folders
