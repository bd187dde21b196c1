"""MRT002: the order of a set or of a folder's files, which differs between processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import QUESTIONS, ContextCall, ContextFunction, Module
from mcp_roundtrip_tools.lint.definitions import called_function, only_value
from mcp_roundtrip_tools.lint.rules.known_effects import PATH, origin_of
from mcp_roundtrip_tools.lint.source import (
    Comprehension,
    FunctionNode,
    Source,
    is_stored,
    own_nodes,
    parameters,
)

_SETS: Final = frozenset({"set", "frozenset"})
_FILES: Final = frozenset({"os.listdir", "os.scandir", "glob.glob", "glob.iglob", "os.walk"})
_FILE_METHODS: Final = frozenset({"iterdir", "rglob"})
_SET_METHODS: Final = frozenset(
    {"union", "intersection", "difference", "symmetric_difference", "copy", "keys", "values", "items"}
)
_KEEPS_ORDER: Final = frozenset(
    {
        *("list", "tuple", "iter", "next", "enumerate", "map", "filter", "str", "repr", "zip", "reversed"),
        "dict.fromkeys",
    }
)
"""Functions whose value depends on the order of what they get."""

_IGNORES_ORDER: Final = frozenset({"sorted", "len", "sum", "min", "max", "any", "all"})


class Values:
    """Which expressions of a function have an order that another process does not repeat."""

    def __init__(self, source: Source, function: FunctionNode) -> None:
        self._source = source
        self._function = function
        self._seen: set[ast.AST] = set()

    def is_unordered(self, node: ast.AST) -> bool:
        """Return whether iterating over the value depends on that order."""
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name():
                return self._is_unordered_name(node)
            case ast.BinOp(left=left, right=right, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
                return self.is_unordered(left) or self.is_unordered(right)
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                return any(self.is_unordered(each.iter) for each in node.generators)
            case ast.JoinedStr(values=values):
                return any(isinstance(v, ast.FormattedValue) and self.is_unordered(v.value) for v in values)
            case ast.Starred(value=value):
                return self.is_unordered(value)
            case ast.Call():
                return self._is_unordered_call(node)
        return False

    def _is_unordered_name(self, name: ast.Name) -> bool:
        value = only_value(self._source, name)
        if value is not None:
            if value in self._seen or self._is_sorted_in_place(name.id):
                return False
            self._seen.add(value)
            found = self.is_unordered(value)
            self._seen.discard(value)
            return found
        annotations = [each.annotation for each in parameters(self._function) if each.arg == name.id]
        is_stored_again = any(is_stored(node, name.id) for node in own_nodes(self._function))
        return any(map(_is_set_annotation, annotations)) and not is_stored_again

    def _is_sorted_in_place(self, name: str) -> bool:
        for node in own_nodes(self._function):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=sorted_name), attr="sort")):
                    if sorted_name == name:
                        return True
        return False

    def _is_unordered_call(self, call: ast.Call) -> bool:
        name = self._source.dotted(call.func) or ""
        if name in _SETS or name in _FILES:
            return True
        if name in _KEEPS_ORDER:
            return any(map(self.is_unordered, call.args[:1] if name == "dict.fromkeys" else call.args))
        called = called_function(self._source, call)
        if called is not None:
            return _is_set_annotation(called.node.returns)
        match call.func:
            case ast.Attribute(attr=method) if method in _FILE_METHODS:
                return True
            case ast.Attribute(attr="glob", value=receiver):
                return self._is_path(receiver)  # other objects may sort what their `glob` returns
            case ast.Attribute(attr="join"):
                return any(map(self.is_unordered, call.args))
            case ast.Attribute(attr=method, value=receiver):
                is_first = method == "pop" and not call.args
                return (is_first or method in _SET_METHODS) and self.is_unordered(receiver)
        return False

    def _is_path(self, node: ast.expr) -> bool:
        annotations = [
            each.annotation
            for each in parameters(self._function)
            if isinstance(node, ast.Name) and each.arg == node.id and each.annotation is not None
        ]
        is_annotated = any(self._source.dotted(each) == PATH for each in annotations)
        return is_annotated or origin_of(self._source, node) == PATH

    def unordered_parts(self, node: ast.AST) -> Iterator[ast.AST]:
        """The outermost unordered expressions whose order an argument shows."""
        match node:
            case ast.Lambda() | ast.Compare():  # membership, equality
                return
            case ast.Call(func=ast.Name(id=name)) if name in _IGNORES_ORDER:
                return
            case ast.JoinedStr():
                pass
            case _ if self.is_unordered(node):
                yield node
                return
        for child in ast.iter_child_nodes(node):
            yield from self.unordered_parts(child)


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
            message = (
                f"the order of {_shown(iterable)} differs between rounds, and so "
                "does the order of the calls in this loop: sort the values first, with `sorted(…)`"
            )
            yield iterable, message
        for call in function.calls:
            for node in (part for each in _shown_arguments(call) for part in values.unordered_parts(each)):
                message = (
                    f"the order of {_shown(node)} differs between rounds, so the "
                    "question would change: sort the values first, with `sorted(…)`"
                )
                yield node, message


def _iterable(node: ast.AST) -> ast.expr | None:
    """Return what a loop, or the first loop of a comprehension, iterates over."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter
    return node.generators[0].iter if isinstance(node, Comprehension) else None


def _is_called_inside(function: ContextFunction, loop: ast.AST) -> bool:
    inside = set(ast.walk(loop)) if isinstance(loop, Comprehension) else set(own_nodes(loop))
    return any(call.ends_round and call.node in inside for call in function.calls)


def _shown_arguments(call: ContextCall) -> list[ast.expr]:
    """Return the arguments that a user or a journal sees."""
    if call.method in QUESTIONS:
        return [*call.node.args, *(each.value for each in call.node.keywords if each.arg != "done")]
    return [] if call.key is None else [call.key]


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."
