"""MRT002: the order of a set or of a folder's files, which differs between processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_lint.contexts import QUESTIONS, ContextCall, ContextFunction, Module
from mcp_roundtrip_lint.source import Comprehension, FunctionNode, Loop, Source, own_nodes, parameters

_SETS: Final = frozenset({"set", "frozenset"})
_FILES: Final = frozenset({"os.listdir", "os.scandir", "glob.glob", "glob.iglob"})
_PATH_METHODS: Final = frozenset({"iterdir", "rglob"})
_SET_METHODS: Final = frozenset({"union", "intersection", "difference", "symmetric_difference"})
_KEEPS_ORDER: Final = frozenset(
    {"list", "tuple", "iter", "next", "enumerate", "map", "filter", "str", "repr", "zip"}
)
"""Functions whose value depends on the order of what they get."""

_IGNORES_ORDER: Final = frozenset({"sorted", "len", "sum", "min", "max", "any", "all", *_SETS})


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls of the context whose key, text or order of calls depends on such an order."""
    for function in module.functions:
        values = _Values(module.source, function.node)
        for loop in own_nodes(function.node):
            if not isinstance(loop, ast.For | ast.AsyncFor) or not values.is_unordered(loop.iter):
                continue
            if _is_called_inside(function, loop):
                message = (
                    f"the order of {_shown(loop.iter)} differs between rounds, and so does the order of the "
                    f"calls in this loop: write `sorted({_shown(loop.iter)})`"
                )
                yield loop.iter, message
        for call in function.calls:
            yield from _in_arguments(values, call)


def _is_called_inside(function: ContextFunction, loop: Loop) -> bool:
    inside = set(own_nodes(loop))
    return any(call.ends_round and call.node in inside for call in function.calls)


def _in_arguments(values: _Values, call: ContextCall) -> Iterator[tuple[ast.AST, str]]:
    arguments: list[ast.expr] = []
    if call.method in QUESTIONS:
        arguments = [*call.node.args, *(each.value for each in call.node.keywords if each.arg != "done")]
    elif call.key is not None:
        arguments = [call.key]
    for argument in arguments:
        for node in values.unordered_parts(argument):
            message = (
                f"the order of {_shown(node)} differs between rounds, so the question would change: "
                f"write `sorted(…)` around it"
            )
            yield node, message


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."


class _Values:
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
            return bool(call.args) or name not in _SETS
        if name in _KEEPS_ORDER:
            return any(map(self.is_unordered, call.args))
        if isinstance(call.func, ast.Attribute):
            method, receiver = call.func.attr, call.func.value
            if method in _PATH_METHODS:
                return True
            if method in _SET_METHODS:
                return self.is_unordered(receiver)
            if method == "join":
                return any(map(self.is_unordered, call.args))
            if method in ("pop", "copy", "keys", "values", "items"):
                return self.is_unordered(receiver) and (method != "pop" or not call.args)
        return False

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
        ordered = {
            node.func.value.id
            for node in own_nodes(self._function)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "sort"
            and isinstance(node.func.value, ast.Name)
        }
        known = self._names
        for node in own_nodes(self._function):
            self._names = known | (found - ordered)
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                is_unordered = self.is_unordered(node.value)
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                found.update(names if is_unordered else ())
                ordered.update(() if is_unordered else names)
        self._names = known
        return found - ordered


def _is_set_annotation(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in {*_SETS, "AbstractSet", "Set"}
