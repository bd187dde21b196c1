"""A parsed module: the parents of its nodes, the names that it imports and binds."""

from __future__ import annotations

import ast
import builtins
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Scope = FunctionNode | ast.Lambda | ast.ClassDef
Loop = ast.For | ast.AsyncFor | ast.While
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_TypeAlias: Any = getattr(ast, "TypeAlias", ast.NamedExpr)  # from Python 3.12

Node = TypeVar("Node", bound=ast.AST)

_MAX_NAMES = 20
"""Variables that are followed from one to the next. They may refer to each other."""


class Variables(dict[ast.AST, dict[str, ast.AST | None]]):
    """What the module, functions and classes bind; None for a variable without one certain value."""

    def __missing__(self, scope: ast.AST) -> dict[str, ast.AST | None]:
        self[scope] = found = _variables_of(scope)
        return found


@dataclass(frozen=True, eq=False)
class Source:
    """A parsed module of an author."""

    path: Path
    tree: ast.Module
    loaded: dict[Path, Source | None] = field(default_factory=dict, repr=False)
    """The modules that this one and those import from the same folder, read when a rule follows a call."""

    followed: dict[ast.AST, Definition[ast.AST] | None] = field(
        default_factory=dict, repr=False, compare=False
    )
    """What names mean, by `name_resolution.definition_of`."""

    variables: Variables = field(default_factory=Variables, repr=False)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def imports(self) -> dict[str, str]:
        """The dotted name of each imported name, wherever in the module it is imported."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    root = each.name.partition(".")[0]
                    found[each.asname or root] = each.name if each.asname else root
            elif isinstance(node, ast.ImportFrom):
                origin = "." * node.level + (f"{node.module}." if node.module else "")
                found |= {each.asname or each.name: f"{origin}{each.name}" for each in node.names}
        return found

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that contain this one, the innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def dotted(self, node: ast.AST) -> str | None:
        """Return the full name that an expression, or its variable, stands for; None also for parameters."""
        parts: list[str] = []
        found: ast.AST | None = node
        for _ in range(_MAX_NAMES):
            if isinstance(found, ast.Attribute):
                parts.append(found.attr)
                found = found.value
            elif isinstance(found, ast.Name) and (scope := self.scope_of(found)) is not None:
                found = self.variables[scope][found.id]
        if not isinstance(found, ast.Name):
            return None
        is_known = found.id in self.imports or hasattr(builtins, found.id)
        is_name = is_known or not parts  # an unknown name has no known attributes
        return ".".join([self.imports.get(found.id, found.id), *reversed(parts)]) if is_name else None

    def scope_of(self, name: ast.Name) -> ast.AST | None:
        """Return the innermost function that binds a name, or the module; None for an import or a builtin."""
        for outer in self.ancestors(name):
            if isinstance(outer, FunctionNode | ast.Lambda) and name.id in self.variables[outer]:
                return outer
        return self.tree if name.id in self.top_level and name.id not in self.imports else None

    @property
    def top_level(self) -> dict[str, ast.AST | None]:
        return self.variables[self.tree]

    def load(self, file: Path) -> Source | None:
        """Return another module of the folder; None if it cannot be read."""
        if file not in self.loaded:
            self.loaded[file] = None
            # The error is reported where the file is checked itself.
            with suppress(*UNREADABLE):
                self.loaded[file] = Source(file, ast.parse(read_module(file)), self.loaded)
        return self.loaded[file]


class Definition(NamedTuple, Generic[Node]):
    """A function, a class or an expression, and the module that contains it."""

    source: Source
    node: Node


def _variables_of(scope: ast.AST) -> dict[str, ast.AST | None]:
    found: dict[str, ast.AST | None] = {}
    for name, value in _bindings(scope):
        # Of several functions of a name, such as overloads, the last one counts.
        found[name] = value if name not in found or isinstance(value, FunctionNode) else None
    of_module = {name for each in own_nodes(scope) if isinstance(each, ast.Global) for name in each.names}
    return {name: value for name, value in found.items() if name not in of_module}


def _bindings(scope: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Yield the names that a scope binds, with their values; `self.x` for an attribute of the object."""
    if isinstance(scope, FunctionNode | ast.Lambda):
        yield from ((each.arg, each) for each in parameters(scope))
    values: dict[ast.AST, ast.AST] = {}
    for node in own_nodes(scope):
        values.update(assignments(node))
        match node:
            case ast.AnnAssign(target=target, annotation=annotation) if isinstance(scope, ast.ClassDef):
                values[target] = ast.arg(ast.unparse(target), annotation)  # a field, like a parameter
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, values.get(node)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name, None
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name, None
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield f"self.{name}", values.get(node)


def assignments(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield what a statement, or an item of a `with`, assigns: each target and its value."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if not any(
            isinstance(each, ast.Starred) for each in [*targets, *values]
        ):
            yield from zip(targets, values, strict=False)
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.NamedExpr(target=target, value=value) | _TypeAlias(name=target, value=value):
            yield target, value
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield target, value


def parameters(function: FunctionNode | ast.Lambda) -> list[ast.arg]:
    """Return all parameters of a function."""
    given = function.args
    more = [each for each in (given.vararg, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *more]


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function in the order of the text, without those inside inner functions and classes."""
    body = getattr(scope, "body", [])
    for child in body if isinstance(body, list) else [body]:  # a lambda has an expression
        yield from walk(child)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is inside it, without the content of functions and classes."""
    yield node
    if not isinstance(node, Scope):
        for child in ast.iter_child_nodes(node):
            yield from walk(child)


def argument(call: ast.Call, place: int | None, *names: str) -> ast.expr | None:
    """Return an argument of a call, by its place or one of its names; None if there is none."""
    by_place = [] if place is None else call.args[place : place + 1]
    return next(iter([*by_place, *(each.value for each in call.keywords if each.arg in names)]), None)


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return all arguments of a call."""
    return [*call.args, *(each.value for each in call.keywords)]


def returned(function: FunctionNode) -> list[ast.expr]:
    """Return the expressions that a function returns."""
    return [each.value for each in own_nodes(function) if isinstance(each, ast.Return) and each.value]


def names_in(node: ast.AST) -> frozenset[str]:
    """Return the names that an expression reads."""
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


class ModuleError(Exception):
    """A module cannot be read or parsed. Its text names the file, the line and the reason."""


def modules_in(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the modules of these paths, without hidden ones, and a message for each folder without any."""
    found: dict[Path, None] = {}
    messages = []
    for path in paths:
        modules = _modules_of(path) if path.is_dir() else [path]
        found |= dict.fromkeys(modules)
        if not modules:
            messages.append(f"{path}: this folder has no Python modules")
    return list(found), messages


def _modules_of(folder: Path) -> list[Path]:
    environments = {each.parent for each in folder.rglob("pyvenv.cfg")}
    return [
        each
        for each in sorted(folder.rglob("*.py"))
        if each.is_file()
        and not _is_hidden(each.relative_to(folder))
        and environments.isdisjoint(each.parents)
    ]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part in ("__pycache__", "node_modules") for part in path.parts)


def read_module(path: Path) -> str:
    """Return the text of a module, in the encoding that it declares. Raises what `UNREADABLE` has."""
    return importlib.util.decode_source(path.read_bytes())


UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)
"""What reading and parsing a module can raise: ValueError for an encoding, and for a null character."""


@contextmanager
def reporting_errors(path: Path) -> Iterator[None]:
    """Raise ModuleError for what reading and parsing a module can raise."""
    try:
        yield
    except (RecursionError, MemoryError) as error:
        reason = "is nested too deeply: shorten its longest expression or elif"
        raise ModuleError(f"{path}: {reason}") from error
    except OSError as error:
        raise ModuleError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ModuleError(f"{path}{line}: is not valid Python: {reason}") from error
