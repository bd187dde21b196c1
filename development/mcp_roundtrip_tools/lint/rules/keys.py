"""MRT008 and MRT009: keys that a run uses twice, which ends in `DuplicateKey`."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from mcp_roundtrip_tools.lint.contexts import QUESTION_CLASSES, ContextFunction, Module
from mcp_roundtrip_tools.lint.control_flow import can_follow, certain_calls, is_conditional
from mcp_roundtrip_tools.lint.name_resolution import definition_of
from mcp_roundtrip_tools.lint.parsed_module import Comprehension, Loop, Source, argument, arguments, names_in


@dataclass(frozen=True, slots=True)
class _Use:
    """A key that a call uses. `place` is where the call names it; `receiver` is the context or the branch."""

    node: ast.Call
    place: ast.expr
    key: ast.AST
    receiver: str


def check_loops(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find keys inside loops that do not name the item."""
    for function in module.functions:
        for use in _uses(module, function):
            if use.receiver not in function.given:
                continue
            loop = _loop_that_repeats(module.source, function, use)
            if loop is not None and _is_constant_in(use.key, loop):
                message = (
                    f"the key {ast.unparse(use.key)} is the same in every turn of the loop, and the second "
                    'turn raises DuplicateKey: put the item into the key, as in f"confirm {item.id}"'
                )
                yield use.place, message


def check_twice(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find a literal key that two calls on one path use."""
    for function in module.functions:
        uses = [each for each in _uses(module, function) if isinstance(each.key, ast.Constant)]
        for index, use in enumerate(uses):
            found = (each for each in uses[:index] if _are_both_reached(module.source, function, each, use))
            if (before := next(found, None)) is not None:
                message = (
                    f"the key {ast.unparse(use.key)} is already used in line {before.node.lineno}, and the "
                    "second use raises DuplicateKey: give each call a key of its own"
                )
                yield use.place, message


def _uses(module: Module, function: ContextFunction) -> list[_Use]:
    """Return the keys that a function uses, and those that its helpers use in each call."""
    found = [*_own_uses(module.source, function)]
    for call in function.calls:
        helper = module.by_node.get(call.helper)
        given = (each.id for each in arguments(call.node) if isinstance(each, ast.Name))
        contexts = [name for name in given if name in function.given]
        if helper is None or not contexts:
            continue
        certain = {*certain_calls(module.source, helper.node)}
        for use in _own_uses(module.source, helper):
            if use.node in certain and use.receiver in helper.given and isinstance(use.key, ast.Constant):
                found.append(_Use(call.node, call.node, use.key, contexts[0]))
    return sorted(found, key=lambda use: (use.node.lineno, use.node.col_offset))


def _own_uses(source: Source, function: ContextFunction) -> Iterator[_Use]:
    for call in function.calls:
        if not isinstance(call.node.func, ast.Attribute):
            continue
        keys = [(call.node, call.key)]
        if call.method == "ask":
            questions = (each for each in ast.walk(call.node) if isinstance(each, ast.Call))
            keys = [(each, _key_of_question(each)) for each in questions]
        for node, key in keys:
            if key is not None:
                yield _Use(node, key, definition_of(source, key).node, ast.unparse(call.node.func.value))


def _key_of_question(node: ast.Call) -> ast.expr | None:
    """Return the key of a question of an `ask`, such as `Elicit`; None for other calls."""
    is_question = ast.unparse(node.func).rpartition(".")[2] in QUESTION_CLASSES
    return argument(node, 0, "key") if is_question else None


def _loop_that_repeats(source: Source, function: ContextFunction, use: _Use) -> ast.AST | None:
    """Return the innermost loop that can make the call again."""
    child: ast.AST = use.node
    for outer in source.ancestors(use.node):
        if outer is function.node:
            return None
        if isinstance(outer, Comprehension) and child is not outer.generators[0]:
            return outer
        if isinstance(outer, Loop) and can_follow(source, [outer], [use.node], use.node):
            return outer
        child = outer
    return None


def _is_constant_in(key: ast.AST, loop: ast.AST) -> bool:
    if isinstance(key, ast.Constant):
        return True
    if not isinstance(key, ast.JoinedStr) or any(isinstance(each, ast.Call) for each in ast.walk(key)):
        return False
    changed = frozenset().union(*map(_changed_names, ast.walk(loop)))
    return not names_in(key) & changed


def _changed_names(node: ast.AST) -> frozenset[str]:
    """Return the variables that a node assigns, or whose objects it may change: `pager.next()`."""
    match node:
        case ast.Name(ctx=ast.Store()):
            return frozenset({node.id})
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            return names_in(node)
        case ast.Call(func=ast.Attribute(value=receiver)):
            return names_in(receiver)
    return frozenset()


def _are_both_reached(source: Source, function: ContextFunction, first: _Use, second: _Use) -> bool:
    if first.receiver != second.receiver or ast.dump(first.key) != ast.dump(second.key):
        return False
    around = [second.node, *source.ancestors(second.node)]
    outer = next(each for each in [first.node, *source.ancestors(first.node)] if each in around)
    if isinstance(outer, ast.IfExp | ast.BoolOp):
        return False
    if is_conditional(source, first.node, outer) and is_conditional(source, second.node, outer):
        return False  # the conditions may exclude each other
    return bool(can_follow(source, function.node.body, [second.node], first.node, repeats=False))
