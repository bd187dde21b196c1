"""A parsed module: its text, the parents of its nodes, the names that it imports."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Scope = FunctionNode | ast.Lambda | ast.ClassDef
Loop = ast.For | ast.AsyncFor | ast.While
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Source:
    """A module of an author. Raises SyntaxError where `parse` does."""

    path: Path
    text: str
    tree: ast.Module
    loaded: dict[Path, Source | None] = field(default_factory=dict, repr=False, compare=False)
    """The modules that this one and those import from the same folder, read when a rule follows a call."""

    @classmethod
    def parse(cls, path: Path, text: str) -> Source:
        return cls(path, text, ast.parse(text, str(path)))

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
        """Return the full name of an expression such as `datetime.now`; None for other expressions.

        A name that a function binds again, as a parameter or a variable, is no import there.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or self._is_bound_in_function(node):
            return None
        root = self.imports.get(node.id, node.id)
        return ".".join([root, *reversed(parts)])

    def _is_bound_in_function(self, name: ast.Name) -> bool:
        functions = (each for each in self.ancestors(name) if isinstance(each, FunctionNode | ast.Lambda))
        return any(name.id in self._bound[function] for function in functions)

    @cached_property
    def _bound(self) -> dict[ast.AST, frozenset[str]]:
        functions = (node for node in ast.walk(self.tree) if isinstance(node, FunctionNode | ast.Lambda))
        return {function: frozenset(_bound_names(function)) for function in functions}

    @cached_property
    def top_level(self) -> dict[str, ast.AST]:
        """The functions and classes of the module by name, and the values of variables assigned once."""
        found: dict[str, ast.AST] = {}
        values: dict[str, list[ast.expr]] = {}
        for node in self.tree.body:
            if isinstance(node, FunctionNode | ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and node.value is not None:
                        values.setdefault(target.id, []).append(node.value)
        return found | {name: each[0] for name, each in values.items() if len(each) == 1}

    def load(self, file: Path) -> Source | None:
        """Return another module of the folder; None if it cannot be read."""
        if file not in self.loaded:
            self.loaded[file] = None
            # The error is reported where the file is checked itself.
            with suppress(*UNREADABLE):
                text = read_module(file)
                self.loaded[file] = Source(file, text, ast.parse(text), self.loaded)
        return self.loaded[file]


def _bound_names(function: FunctionNode | ast.Lambda) -> Iterator[str]:
    for parameter in parameters(function):
        yield parameter.arg
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, FunctionNode):
            yield node.name


def parameters(function: FunctionNode | ast.Lambda) -> list[ast.arg]:
    """Return all parameters of a function."""
    arguments = function.args
    more = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function in the order of the text, without those inside inner functions and classes."""
    for child in body_of(scope):
        yield from _walk(child)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, Scope):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


def body_of(scope: ast.AST) -> list[ast.AST]:
    """Return the statements of a function, or the expression of a lambda."""
    body = getattr(scope, "body", [])
    return list(body) if isinstance(body, list) else [body]


def is_stored(node: ast.AST, name: str) -> bool:
    """Return whether a node assigns a variable."""
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def assigned_values(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what one statement, or one item of a `with`, assigns to a variable."""
    match node:
        case ast.Assign(targets=targets, value=value) if any(is_stored(each, name) for each in targets):
            yield value
        case ast.AnnAssign(target=target, value=ast.expr() as value) if is_stored(target, name):
            yield value
        case ast.NamedExpr(target=target, value=value) if is_stored(target, name):
            yield value
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target) if is_stored(target, name):
            yield value


def names_in(node: ast.AST) -> frozenset[str]:
    """Return the names that an expression reads."""
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def is_within(source: Source, node: ast.AST, outer: ast.AST) -> bool:
    """Return whether `outer` is the node or contains it."""
    return node is outer or any(each is outer for each in source.ancestors(node))


class ModuleError(Exception):
    """A module cannot be read or parsed. Its text names the file, the line and the reason."""


def modules_in(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the modules of these files and folders, and a message for each folder without one.

    Hidden folders and virtual environments are left out.
    """
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
