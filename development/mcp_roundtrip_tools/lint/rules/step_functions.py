"""MRT005: a step's function that calls the context."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mcp_roundtrip_tools.lint.contexts import RECORDED, ContextCall, ContextFunction, Module
from mcp_roundtrip_tools.lint.source import FunctionNode, own_nodes, parameters


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find functions of steps, and `done=` functions, that ask or begin steps themselves."""
    for function in module.functions:
        for call in function.calls:
            for argument in _functions_given(call):
                used = _call_inside(module, function, argument)
                if used is not None:
                    what = "the function of a step" if call.method == "step" else "done="
                    message = (
                        f"{_shown(used)} runs inside {what}, where the context cannot be used: "
                        "call it before, and pass what it returns"
                    )
                    yield used, message
            yield from _passed_context(module, function, call)


def _shown(node: ast.AST) -> str:
    return f"{ast.unparse(node.func)}(…)" if isinstance(node, ast.Call) else ast.unparse(node)


def _functions_given(call: ContextCall) -> list[ast.expr]:
    if call.method == "step":
        return call.node.args[1:2]
    return [each.value for each in call.node.keywords if each.arg == "done"]


def _call_inside(module: Module, function: ContextFunction, argument: ast.expr) -> ast.AST | None:
    """Return the first use of the context inside a lambda, an inner function, or a partial."""
    match argument:
        case ast.Attribute(value=ast.Name(id=name), attr=method):  # ctx.step("size", ctx.elicit, …)
            return argument if name in function.names and method in RECORDED else None
        case ast.Call(func=called, args=[first, *_]):
            is_partial = module.source.dotted(called) == "functools.partial"
            as_call = ast.Call(func=first, args=argument.args[1:], keywords=argument.keywords)
            return (
                argument if is_partial and _asks(module, function, as_call, function.names, set()) else None
            )
        case ast.Name(id=name):
            inner = _inner_function(function, name)
            return None if inner is None else _first_recorded(module, function, inner, set())
        case ast.Lambda():
            return _first_recorded(module, function, argument, set())
    return None


def _inner_function(function: ContextFunction, name: str) -> FunctionNode | None:
    return next(
        (
            each
            for each in ast.walk(function.node)
            if isinstance(each, FunctionNode) and each is not function.node and each.name == name
        ),
        None,
    )


def _first_recorded(
    module: Module, function: ContextFunction, body: FunctionNode | ast.Lambda, seen: set[ast.AST]
) -> ast.AST | None:
    seen.add(body)
    names = {n: a for n, a in function.names.items() if n not in {each.arg for each in parameters(body)}}
    calls = (each for each in own_nodes(body) if isinstance(each, ast.Call))
    return next((each for each in calls if _asks(module, function, each, names, seen)), None)


def _asks(
    module: Module, function: ContextFunction, node: ast.Call, names: dict[str, bool], seen: set[ast.AST]
) -> bool:
    """Return whether a call uses the context, itself or by a function of the module or of the tool."""
    call = module.context_call(node, names)
    if call is not None and call.method in RECORDED:
        return True
    if not isinstance(node.func, ast.Name):
        return False
    if call is not None:
        return node.func.id in module.source.functions and module.can_end_round(node.func.id)
    inner = _inner_function(function, node.func.id)
    if inner is None or inner in seen:
        return False
    return _first_recorded(module, function, inner, seen) is not None


def _passed_context(
    module: Module, function: ContextFunction, call: ContextCall
) -> Iterator[tuple[ast.AST, str]]:
    """Find a context among the arguments of a step whose function asks: one of this module."""
    if call.method != "step" or len(call.node.args) < 2:
        return
    called = call.node.args[1]
    given = [*call.node.args[2:], *(each.value for each in call.node.keywords)]
    contexts = [each for each in given if isinstance(each, ast.Name) and each.id in function.names]
    name = called.id if isinstance(called, ast.Name) else ""
    if contexts and name in module.source.functions and module.can_end_round(name):
        message = (
            f"{name} calls the context, and a step's function cannot: call {name}({contexts[0].id}, …) "
            "directly, with steps for its side effects"
        )
        yield contexts[0], message
