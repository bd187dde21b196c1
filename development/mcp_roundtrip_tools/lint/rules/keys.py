"""MRT008 and MRT009: keys that a run uses twice, which ends in `DuplicateKey`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from mcp_roundtrip_tools.lint.contexts import QUESTION_CLASSES, ContextFunction, Module
from mcp_roundtrip_tools.lint.reachability import can_follow
from mcp_roundtrip_tools.lint.source import Comprehension, Loop, Source, names_in


@dataclass(frozen=True, slots=True)
class _Use:
    """A key that a call uses; `receiver` is the context or branch, because a branch has its own keys."""

    node: ast.AST
    key: ast.expr
    receiver: str


def check_loops(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find keys inside loops that do not name the item."""
    for function in module.functions:
        for use in _uses(function):
            if use.receiver not in function.given:
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
            before = next(
                (each for each in seen if _are_both_reached(module.source, function, each, use)), None
            )
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
        if not isinstance(call.node.func, ast.Attribute):
            continue
        receiver = ast.unparse(call.node.func.value)
        if call.key is not None:
            yield _Use(call.node, call.key, receiver)
        for node in call.node.args if call.method == "ask" else ():
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in QUESTION_CLASSES and name != "ListRoots":
                    keys = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "key")]
                    yield from (_Use(node, key, receiver) for key in keys[:1])


def _loop_that_repeats(source: Source, function: ContextFunction, use: _Use) -> ast.AST | None:
    """Return the innermost loop that can make the call again."""
    child = use.node
    for outer in source.ancestors(use.node):
        if outer is function.node:
            return None
        if isinstance(outer, Comprehension) and child is not outer.generators[0]:
            return outer
        if isinstance(outer, Loop) and can_follow(source, [outer], [use.node], use.node):
            return outer
        child = outer
    return None


def _is_constant_in(key: ast.expr, loop: ast.AST) -> bool:
    if isinstance(key, ast.Constant):
        return True
    if not isinstance(key, ast.JoinedStr) or any(isinstance(each, ast.Call) for each in ast.walk(key)):
        return False
    bound = {
        node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return not names_in(key) & bound


def _are_both_reached(source: Source, function: ContextFunction, first: _Use, second: _Use) -> bool:
    if first.receiver != second.receiver or ast.dump(first.key) != ast.dump(second.key):
        return False
    around = [second.node, *source.ancestors(second.node)]
    outer = next(each for each in [first.node, *source.ancestors(first.node)] if each in around)
    if isinstance(outer, ast.IfExp | ast.BoolOp):
        return False
    if _is_conditional(source, first, outer) and _is_conditional(source, second, outer):
        return False  # the conditions may exclude each other
    return bool(can_follow(source, function.node.body, [second.node], first.node, repeats=False))


def _is_conditional(source: Source, use: _Use, outer: ast.AST) -> bool:
    """Return whether there is a branch inside `outer` around the call."""
    between = takewhile(lambda each: each is not outer, source.ancestors(use.node))
    return any(isinstance(each, ast.If | ast.IfExp | ast.match_case | ast.BoolOp) for each in between)
