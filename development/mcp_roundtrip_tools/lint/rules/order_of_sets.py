"""MRT002: the order of a set or of a folder's files, which differs between processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import QUESTIONS, ContextCall, ContextFunction, Module
from mcp_roundtrip_tools.lint.definitions import called_function
from mcp_roundtrip_tools.lint.rules.known_effects import PATH, origin_of
from mcp_roundtrip_tools.lint.source import Comprehension, FunctionNode, Source, own_nodes, parameters

_SETS: Final = frozenset({"set", "frozenset"})
_FILES: Final = frozenset({"os.listdir", "os.scandir", "glob.glob", "glob.iglob", "os.walk"})
_PATH_METHODS: Final = frozenset({"iterdir", "rglob"})
_SET_METHODS: Final = frozenset({"union", "intersection", "difference", "symmetric_difference"})
_KEEPS_ORDER: Final = frozenset(
    {
        *("list", "tuple", "iter", "next", "enumerate", "map", "filter", "str", "repr", "zip"),
        *("reversed"),
    }
)
"""Functions whose value depends on the order of what they get."""

_IGNORES_ORDER: Final = frozenset({"sorted", "len", "sum", "min", "max", "any", "all", *_SETS})


class Values:
    """Which expressions of a function have an order that another process does not repeat."""

    def __init__(self, source: Source, function: FunctionNode) -> None:
        self._source = source
        self._function = function
        self._names: set[str] = set()
        self._names = self._set_parameters() | self._module_sets()
        self._names |= self._assigned()

    def is_unordered(self, node: ast.AST) -> bool:
        """Return whether iterating over the value depends on that order."""
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(id=name):
                return name in self._names
            case ast.BinOp(left=left, right=right, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
                return self._is_set(left) or self._is_set(right)
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                return any(self.is_unordered(each.iter) for each in node.generators)
            case ast.JoinedStr(values=values):
                return any(isinstance(v, ast.FormattedValue) and self.is_unordered(v.value) for v in values)
            case ast.Starred(value=value):
                return self.is_unordered(value)
            case ast.Call():
                return self._is_unordered_call(node)
        return False

    def _is_set(self, node: ast.AST) -> bool:
        return self.is_unordered(node) and not isinstance(node, ast.JoinedStr)

    def _is_unordered_call(self, call: ast.Call) -> bool:
        name = self._source.dotted(call.func) or ""
        if name in _SETS or name in _FILES:
            return True
        if name in _KEEPS_ORDER:
            return any(map(self.is_unordered, call.args))
        called = called_function(self._source, call)
        if called is not None:
            return _is_set_annotation(called.node.returns)
        if isinstance(call.func, ast.Attribute):
            method, receiver = call.func.attr, call.func.value
            if method in _PATH_METHODS or (method == "glob" and self._is_path(receiver)):
                return True
            if method == "fromkeys" and self._source.dotted(receiver) == "dict":
                return any(map(self.is_unordered, call.args[:1]))
            if method in _SET_METHODS:
                return self.is_unordered(receiver)
            if method == "join":
                return any(map(self.is_unordered, call.args))
            if method in ("pop", "copy", "keys", "values", "items"):
                return self.is_unordered(receiver) and (method != "pop" or not call.args)
        return False

    def _is_path(self, node: ast.expr) -> bool:
        """Return whether an object is a `pathlib.Path`. Other objects may sort what their `glob` returns."""
        annotations = [
            each.annotation
            for each in parameters(self._function)
            if isinstance(node, ast.Name) and each.arg == node.id and each.annotation is not None
        ]
        is_annotated = any(self._source.dotted(each) == PATH for each in annotations)
        return is_annotated or origin_of(self._source, node) == PATH

    def unordered_source(self, node: ast.AST) -> ast.AST:
        """Return the innermost expression without an order, which an author has to sort."""
        match node:
            case ast.Call(func=ast.Attribute(value=value), args=arguments):
                inner = [*arguments, value]
            case ast.Call(args=arguments) if self._source.dotted(node.func) in _KEEPS_ORDER:
                inner = list(arguments)
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                inner = [each.iter for each in node.generators]
            case _:
                inner = []
        found = next((each for each in inner if self.is_unordered(each)), None)
        return node if found is None else self.unordered_source(found)

    def unordered_parts(self, node: ast.AST) -> Iterator[ast.AST]:
        """The outermost unordered expressions whose order an argument shows."""
        if isinstance(node, ast.Call) and self._ignores_order(node):
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.Compare):  # membership, equality
            yield from self.unordered_parts(node.left) if not self.is_unordered(node.left) else ()
            return
        if isinstance(node, Comprehension | ast.Name | ast.Set | ast.BinOp | ast.Call) and self.is_unordered(
            node
        ):
            yield node
            return
        for child in ast.iter_child_nodes(node):
            yield from self.unordered_parts(child)

    def _ignores_order(self, call: ast.Call) -> bool:
        return isinstance(call.func, ast.Name) and call.func.id in _IGNORES_ORDER - _SETS

    def _set_parameters(self) -> set[str]:
        return {
            each.arg for each in parameters(self._function) if _is_set_annotation(each.annotation)
        } - self._stored()

    def _stored(self) -> set[str]:
        nodes = own_nodes(self._function)
        return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}

    def _module_sets(self) -> set[str]:
        return {
            target.id
            for node in self._source.tree.body
            if isinstance(node, ast.Assign) and self.is_unordered(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        } - self._stored()

    def _assigned(self) -> set[str]:
        """Return the variables that hold nothing but unordered values, and are not sorted in place."""
        found: set[str] = set()
        ordered = self._sorted_in_place() | self._loop_variables()
        known = self._names
        for node in own_nodes(self._function):
            self._names = known | (found - ordered)
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                if self._waits(node.value):
                    found.update(each.id for each in ast.walk(targets[0]) if isinstance(each, ast.Name))
                elif self.is_unordered(node.value):
                    found.update(names)
                elif not _is_empty(node.value):
                    ordered.update(names)
            elif isinstance(node, ast.For) and self.is_unordered(node.iter) and not _can_break(node):
                found.update(self._collected_in(node))
        self._names = known
        return found - ordered

    def _waits(self, node: ast.expr) -> bool:
        """Return whether a value is `await asyncio.wait(…)`: two sets of tasks."""
        match node:
            case ast.Await(value=ast.Call(func=function)):
                return self._source.dotted(function) == "asyncio.wait"
        return False

    def _sorted_in_place(self) -> set[str]:
        return {
            node.func.value.id
            for node in own_nodes(self._function)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "sort"
            and isinstance(node.func.value, ast.Name)
        }

    def _loop_variables(self) -> set[str]:
        targets = (
            each.target
            for each in own_nodes(self._function)
            if isinstance(each, ast.For | ast.AsyncFor | ast.comprehension)
        )
        return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}

    def _collected_in(self, loop: ast.For) -> set[str]:
        """Return the lists and texts of the function that begin empty and grow in a loop."""
        begun = {
            target.id
            for node in own_nodes(self._function)
            if isinstance(node, ast.Assign) and _is_empty(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        found = set()
        for node in own_nodes(loop):
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"))):
                    found.add(name)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
                    found.add(name)
        return found & begun


def _can_break(loop: ast.For) -> bool:
    """Return whether a loop may look for one value, as in `if name == wanted: …; break`."""
    return any(isinstance(each, ast.Break) for each in own_nodes(loop))


def _is_empty(node: ast.expr) -> bool:
    """Return whether a value is an empty list or text."""
    is_text = isinstance(node, ast.Constant) and node.value == ""
    return is_text or (isinstance(node, ast.List) and not node.elts)


def _is_set_annotation(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in {*_SETS, "AbstractSet", "Set"}


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls of the context whose key, text or order of calls depends on such an order."""
    for function in module.functions:
        values = Values(module.source, function.node)
        for loop in own_nodes(function.node):
            iterable = _iterable(loop)
            if iterable is None or not values.is_unordered(iterable) or not _is_called_inside(function, loop):
                continue
            source = values.unordered_source(iterable)
            message = (
                f"the order of {_shown(source)} differs between rounds, and so does the order of the "
                f"calls in this loop: write `sorted({_shown(source)}{_key(module, source)})`"
            )
            yield iterable, message
        for call in function.calls:
            yield from _in_arguments(values, call)


def _iterable(node: ast.AST) -> ast.expr | None:
    """Return what a loop, or the first loop of a comprehension, iterates over."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter
    return node.generators[0].iter if isinstance(node, Comprehension) else None


def _key(module: Module, source: ast.AST) -> str:
    """Return the argument that sorting needs, because the entries of `os.scandir` cannot be compared."""
    is_scan = isinstance(source, ast.Call) and module.source.dotted(source.func) == "os.scandir"
    return ", key=lambda entry: entry.name" if is_scan else ""


def _is_called_inside(function: ContextFunction, loop: ast.AST) -> bool:
    inside = set(ast.walk(loop)) if isinstance(loop, Comprehension) else set(own_nodes(loop))
    return any(call.ends_round and call.node in inside for call in function.calls)


def _in_arguments(values: Values, call: ContextCall) -> Iterator[tuple[ast.AST, str]]:
    arguments: list[ast.expr] = []
    if call.method in QUESTIONS:
        arguments = [*call.node.args, *(each.value for each in call.node.keywords if each.arg != "done")]
    elif call.key is not None:
        arguments = [call.key]
    for argument in arguments:
        for node in values.unordered_parts(argument):
            source = values.unordered_source(node)
            message = (
                f"the order of {_shown(source)} differs between rounds, so the question would change: "
                f"sort the values first, with `sorted(…)`"
            )
            yield node, message


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."
