"""MRT008 and MRT009: keys that a run uses twice, which ends in `DuplicateKey`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

from mcp_roundtrip_tools.lint.contexts import QUESTION_CLASSES, ContextCall, ContextFunction, Module
from mcp_roundtrip_tools.lint.reachability import leaves
from mcp_roundtrip_tools.lint.source import Comprehension, Loop, Source, names_in

_LEAVES_LOOP = (ast.Return, ast.Raise, ast.Break)


@dataclass(frozen=True, slots=True)
class _Use:
    """A key that a call uses; `receiver` is the context or branch, because a branch has its own keys."""

    node: ast.AST
    key: ast.expr
    receiver: str
    is_in_branch: bool


def check_loops(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find keys inside loops that do not name the item."""
    for function in module.functions:
        for use in _uses(function):
            if use.is_in_branch:
                continue
            loop = _loop_that_repeats(module.source, function, use)
            if loop is not None and _is_constant_in(use.key, loop):
                message = (
                    f"the key {ast.unparse(use.key)} is the same in every turn of the loop, and the second "
                    'turn raises DuplicateKey: put the item into the key, as in f"confirm {item.id}"'
                )
                yield use.key, message


def check_twice(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find a literal key that two calls on one path use."""
    for function in module.functions:
        seen: list[_Use] = []
        for use in _uses(function):
            if not isinstance(use.key, ast.Constant):
                continue
            before = next((each for each in seen if _are_both_reached(module.source, each, use)), None)
            if before is not None:
                line = getattr(before.node, "lineno", 0)
                message = (
                    f"the key {ast.unparse(use.key)} is already used in line {line}, and the second use "
                    "raises DuplicateKey: give each call a key of its own"
                )
                yield use.key, message
            seen.append(use)


def _uses(function: ContextFunction) -> Iterator[_Use]:
    for call in function.calls:
        if call.key is not None and isinstance(call.node.func, ast.Attribute):
            yield _Use(call.node, call.key, ast.unparse(call.node.func.value), call.is_branch)
        elif call.method == "ask" and isinstance(call.node.func, ast.Attribute):
            yield from _questions(call)


def _questions(call: ContextCall) -> Iterator[_Use]:
    receiver = ast.unparse(call.node.func.value) if isinstance(call.node.func, ast.Attribute) else ""
    for node in call.node.args:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in QUESTION_CLASSES
        ):
            keys = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "key")]
            if keys and node.func.id != "ListRoots":
                yield _Use(node, keys[0], receiver, call.is_branch)


def _loop_that_repeats(source: Source, function: ContextFunction, use: _Use) -> ast.AST | None:
    """Return the innermost loop that can make the call again."""
    child = use.node
    for outer in source.ancestors(use.node):
        if outer is function.node:
            return None
        if isinstance(outer, Comprehension):
            return outer if child is not outer.generators[0] else None
        if isinstance(outer, Loop) and (child in outer.body or child is getattr(outer, "test", None)):
            return None if _ends(outer.body, child) else outer
        if isinstance(child, ast.stmt) and any(
            child in block and _ends(block, child) for block in _blocks(outer)
        ):
            return None
        child = outer
    return None


def _ends(block: list[ast.stmt], child: ast.AST) -> bool:
    return leaves(block, after=child, kinds=_LEAVES_LOOP)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    found = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    return [each for each in found if isinstance(each, list)]


def _is_constant_in(key: ast.expr, loop: ast.AST) -> bool:
    if isinstance(key, ast.Constant):
        return True
    if not isinstance(key, ast.JoinedStr) or any(isinstance(each, ast.Call) for each in ast.walk(key)):
        return False
    bound = {
        node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return not names_in(key) & bound


def _are_both_reached(source: Source, first: _Use, second: _Use) -> bool:
    if first.receiver != second.receiver or ast.dump(first.key) != ast.dump(second.key):
        return False
    path = [first.node, *source.ancestors(first.node)]
    outer = next(each for each in [second.node, *source.ancestors(second.node)] if each in path)
    excludes = isinstance(outer, ast.If | ast.IfExp | ast.Match | ast.Try | ast.TryStar | ast.BoolOp)
    if excludes and _part(source, outer, first.node) != _part(source, outer, second.node):
        return False
    if _is_conditional(source, first, outer) and _is_conditional(source, second, outer):
        return False  # the conditions may exclude each other
    below = path[: path.index(outer)]
    for child, parent in pairwise(below):
        if isinstance(child, ast.stmt) and any(
            child in block and leaves(block, after=child, kinds=(*_LEAVES_LOOP, ast.Continue))
            for block in _blocks(parent)
        ):
            return False
    return True


def _is_conditional(source: Source, use: _Use, outer: ast.AST) -> bool:
    """Return whether there is a branch inside `outer` around the call."""
    between = takewhile(lambda each: each is not outer, source.ancestors(use.node))
    return any(isinstance(each, ast.If | ast.IfExp | ast.match_case | ast.BoolOp) for each in between)


def _part(source: Source, outer: ast.AST, node: ast.AST) -> str:
    """Return which part of a statement holds the node: each branch has a name."""
    child = node
    for parent in source.ancestors(node):
        if parent is outer:
            break
        child = parent
    for name, value in ast.iter_fields(outer):
        if value is child:
            return name
        if isinstance(value, list) and child in value:
            # The branches of a match statement and the handlers of a try statement exclude each other.
            return f"{name} {value.index(child)}" if name in ("cases", "handlers", "values") else name
    return ""
