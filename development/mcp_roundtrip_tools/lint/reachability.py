"""Whether a call of the context can run after a line, by the structure of the statements.

What runs after a helper is what runs after its calls in the same module.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from mcp_roundtrip_tools.lint.contexts import ContextFunction, Module
from mcp_roundtrip_tools.lint.definitions import called_function
from mcp_roundtrip_tools.lint.source import FunctionNode, Loop, Source, is_within, own_nodes

Kinds = tuple[type[ast.AST], ...]

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def runs_again(module: Module, function: ContextFunction, node: ast.AST) -> bool:
    """Return whether a call that can end the round can run after this expression or statement."""
    found = _runs_again_in(module.source, function, node)
    return _runs_again_in_callers(module, function) if found is None else found


def _runs_again_in_callers(module: Module, helper: ContextFunction) -> bool:
    pending = [helper]
    for called in pending:  # it grows
        for function in module.functions:
            for node in own_nodes(function.node):
                found = _calls(module.source, node, called) and _runs_again_in(module.source, function, node)
                if found:
                    return True
                if found is None and function not in pending:
                    pending.append(function)
    return False


def _calls(source: Source, node: ast.AST, function: ContextFunction) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name == function.node.name:
            called = called_function(source, node)
            return called is not None and called.node is function.node
    return False


def _runs_again_in(source: Source, function: ContextFunction, node: ast.AST) -> bool | None:
    """Return whether the function itself makes such a call; None if its callers decide."""
    ending = {call.node for call in function.calls if call.ends_round}
    if any(_is_evaluated_after(source, call, node) for call in ending):
        return True
    child, leaves_loop = node, False
    for parent in source.ancestors(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            block = block_of(parent, child)
            if _contains(_later_in_parent(parent, child), ending):
                return True
            if leaves(block, after=child):
                raises = leaves(block, after=child, kinds=(ast.Raise,))
                return False if raises or function.is_feature else None
            leaves_loop = leaves_loop or leaves(block, after=child, kinds=(ast.Break,))
            if isinstance(parent, Loop):
                if not leaves_loop and _contains([parent], ending):
                    return True
                leaves_loop = False
        elif isinstance(parent, ast.stmt) and any(_contains(each, ending) for each in _blocks(parent)):
            return True  # the expression is the test of an `if`, or the iterable of a loop
        if parent is function.node:
            break
        child = parent
    return False if function.is_feature else None


def _is_evaluated_after(source: Source, call: ast.AST, node: ast.AST) -> bool:
    """Return whether a call in the same statement is evaluated after the node."""
    if call is node or _statement(source, call) is not _statement(source, node):
        return False
    return is_within(source, node, call) or (_end(call) > _end(node) and not is_within(source, call, node))


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def _statement(source: Source, node: ast.AST) -> ast.AST:
    return next(each for each in [node, *source.ancestors(node)] if isinstance(each, ast.stmt))


def _blocks(parent: ast.AST) -> list[list[ast.AST]]:
    found = [getattr(parent, name, []) for name in _BLOCKS]
    return [each for each in found if isinstance(each, list)]


def block_of(parent: ast.AST, child: ast.AST) -> list[ast.AST]:
    """Return the block of the parent that has the child as a statement; an empty list if none has it."""
    return next((block for block in _blocks(parent) if child in block), [])


def _later_in_parent(parent: ast.AST, child: ast.AST) -> list[ast.AST]:
    """Return the statements inside the parent that can run after this one of its blocks."""
    block = block_of(parent, child)
    later = block[block.index(child) + 1 :] if child in block and not isinstance(parent, ast.Match) else []
    if isinstance(parent, ast.Try | ast.TryStar):
        if block is parent.body:
            later = [*later, *parent.orelse]
        if block is parent.handlers:
            later = []
        later = [*later, *parent.finalbody]
    return later


def _contains(statements: Sequence[ast.AST], calls: Collection[ast.AST]) -> bool:
    return any(node in calls for each in statements for node in _reached(each))


def _reached(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, FunctionNode | ast.Lambda | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            yield from _reached(child)


def leaves(
    block: Sequence[ast.AST], *, after: ast.AST | None = None, kinds: Kinds = (ast.Return, ast.Raise)
) -> bool:
    """Return whether a block, or its rest from a statement on, always ends in one of these ways."""
    statements = block[block.index(after) :] if after is not None and after in block else block
    return any(_leaves(each, kinds) for each in statements)


def _leaves(node: ast.AST, kinds: Kinds) -> bool:
    if isinstance(node, kinds):
        return True
    if isinstance(node, ast.If):
        return all(any(_leaves(each, kinds) for each in block) for block in (node.body, node.orelse))
    if isinstance(node, ast.With | ast.AsyncWith):
        return any(_leaves(each, kinds) for each in node.body)
    if isinstance(node, ast.Try | ast.TryStar):
        blocks = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
        return all(any(_leaves(each, kinds) for each in block) for block in blocks)
    return False
