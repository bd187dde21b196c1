"""MRT010: variables of the module that a tool changes, and variables of the tool that a step changes.

The next round may run in another environment, and does not call the function of a step again.
"""

import ast
from collections.abc import Iterator, Set
from typing import Final

from mcp_roundtrip_tools.lint.contexts import ContextFunction, Module
from mcp_roundtrip_tools.lint.name_resolution import definition_of
from mcp_roundtrip_tools.lint.parsed_module import (
    Definition,
    FunctionNode,
    Source,
    argument,
    assignments,
    names_in,
    own_nodes,
)

_CHANGING: Final = frozenset(
    {
        *("append", "appendleft", "extend", "insert", "add", "update"),
        *("pop", "popitem", "remove", "discard", "clear"),
    }
)
_CONTAINERS: Final = frozenset(
    {
        *("list", "dict", "set", "collections.defaultdict", "collections.deque", "collections.OrderedDict"),
        "collections.Counter",
    }
)
_LITERALS: Final = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find assignments to global variables, and changes of lists, dicts and sets of a module."""
    for function in module.functions:
        asked = {call.node for call in function.calls}
        for node in own_nodes(function.node):
            changed = _changed(node)
            if changed is None or not _is_of_module(module.source, changed):
                continue
            name = ast.unparse(changed)
            if not _is_cache(module.source, function.node, node, name, asked):
                message = (
                    f"{name} is a variable of the module: another round may run in another environment, "
                    "which has its own. Keep the value in a step's result, or in a store"
                )
                yield node, message
        yield from _changes_in_steps(module.source, function)


def _changes_in_steps(source: Source, function: ContextFunction) -> Iterator[tuple[ast.AST, str]]:
    """Find variables of a tool that a step's function changes, and that the tool reads outside of steps."""
    steps = {call.node: argument(call.node, 1) for call in function.calls if call.method == "step"}
    given = {call: (each, definition_of(source, each).node) for call, each in steps.items() if each}
    inside = {node for pair in given.values() for node in pair} - {function.node}
    reads = (each for each in ast.walk(function.node) if inside.isdisjoint(source.ancestors(each)))
    read = {each.id for each in reads if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    for call, (argument_node, called) in given.items():
        for name in _changed_by_step(source, function.node, argument_node, called):
            if name in read - _assigned(function.node, call):
                message = (
                    f"{name} is a variable outside of the step's function, which changes it: later rounds do "
                    "not call the function, so the change is lost. Return the value from the step"
                )
                yield call, message


def _changed_by_step(
    source: Source, function: FunctionNode, given: ast.expr, called: ast.AST
) -> Iterator[str]:
    """Yield the variables of a function that a step's function assigns, or whose container it changes."""
    is_body = isinstance(called, FunctionNode | ast.Lambda) and called is not function
    # A method such as `found.append` has no body: its call is looked at.
    nodes = [*own_nodes(called)] if is_body else [ast.Call(given, [], [])]
    nonlocals = {name for each in nodes if isinstance(each, ast.Nonlocal) for name in each.names}
    for node in nodes:
        changed = _changed(node)
        if not isinstance(changed, ast.Name) or _is_cache(source, called, node, changed.id, frozenset()):
            continue
        is_assigned = not isinstance(changed.ctx, ast.Load)
        is_of_function = source.scope_of(changed) is function and _is_container(
            definition_of(source, changed)
        )
        if changed.id in nonlocals if is_assigned else is_of_function:
            yield changed.id


def _assigned(function: FunctionNode, call: ast.Call) -> frozenset[str]:
    """Return the variables that the result of a call is assigned to."""
    pairs = (pair for each in own_nodes(function) for pair in assignments(each))
    targets = (names_in(target) for target, value in pairs if call in ast.walk(value))
    return frozenset().union(*targets)


def _changed(node: ast.AST) -> ast.expr | None:
    """Return the variable that a statement assigns, or whose list, dict or set it changes."""
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            return node
        case ast.Subscript(value=changed, ctx=ast.Store() | ast.Del()):
            return _outermost(changed)
        case ast.Call(func=ast.Attribute(value=changed, attr=method)) if method in _CHANGING:
            return _outermost(changed)
    return None


def _outermost(container: ast.expr) -> ast.expr:
    match container:
        case ast.Subscript(value=outer) | ast.Call(func=ast.Attribute(value=outer, attr="setdefault")):
            return _outermost(outer)
    return container


def _is_of_module(source: Source, changed: ast.expr) -> bool:
    """Return whether a variable is declared `global`, or has a container that a module makes."""
    if isinstance(changed, ast.Name) and not isinstance(changed.ctx, ast.Load):
        return source.scope_of(changed) is source.tree
    made = definition_of(source, changed)
    return _is_container(made) and made.node in made.source.top_level.values()


def _is_container(made: Definition[ast.AST]) -> bool:
    """Return whether an expression makes a list, a dict or a set."""
    is_call = isinstance(made.node, ast.Call) and made.source.dotted(made.node.func) in _CONTAINERS
    return is_call or isinstance(made.node, _LITERALS)


def _is_cache(source: Source, function: ast.AST, node: ast.AST, name: str, asked: Set[ast.AST]) -> bool:
    """Return whether the change fills a cache: it depends on what the variable holds, or is named so.

    An answer to one of the calls in `asked` does not depend on what the question names.
    """
    if "cache" in name.lower():
        return True
    for outer in source.ancestors(node):
        if outer is function:
            return False
        tests: list[ast.AST] = [outer.test] if isinstance(outer, ast.If) else []
        if isinstance(outer, ast.ExceptHandler):
            tried = source.parents[outer]
            tests = list(tried.body) if isinstance(tried, ast.Try) else []
        read = frozenset().union(*(_names_outside(asked, test) for test in tests))
        pairs = (pair for each in own_nodes(function) for pair in assignments(each))
        values = (value for target, value in pairs if not read.isdisjoint(names_in(target)))
        if name in read or any(name in _names_outside(asked, value) for value in values):
            return True
    return False


def _names_outside(calls: Set[ast.AST], node: ast.AST) -> frozenset[str]:
    """Return the names that an expression reads outside of these calls."""
    if node in calls:
        return frozenset()
    inner = (_names_outside(calls, each) for each in ast.iter_child_nodes(node))
    return frozenset({node.id} if isinstance(node, ast.Name) else ()).union(*inner)
