"""MRT005: a step's function that calls the context."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mcp_roundtrip_lint.contexts import RECORDED, ContextCall, ContextFunction, Module
from mcp_roundtrip_lint.source import FunctionNode, own_nodes, parameters


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find functions of steps, and `done=` functions, that ask or begin steps themselves."""
    for function in module.functions:
        for call in function.calls:
            for argument in _functions_given(call):
                used = _call_inside(module, function, argument)
                if used is not None:
                    what = "the function of a step" if call.method == "step" else "done="
                    message = (
                        f"{ast.unparse(used.func)}(…) runs inside {what}, where the context cannot be used: "
                        "call it before, and pass what it returns"
                    )
                    yield used, message
            yield from _passed_context(module, function, call)


def _functions_given(call: ContextCall) -> list[ast.expr]:
    if call.method == "step":
        return call.node.args[1:2]
    return [each.value for each in call.node.keywords if each.arg == "done"]


def _call_inside(module: Module, function: ContextFunction, argument: ast.expr) -> ast.Call | None:
    """Return the first call of the context inside a lambda, or inside an inner function of this name."""
    body: ast.AST | None = argument if isinstance(argument, ast.Lambda) else None
    if isinstance(argument, ast.Name):
        body = next((each for each in _inner_functions(function) if each.name == argument.id), None)
    if not isinstance(body, FunctionNode | ast.Lambda):
        return None
    names = {n: a for n, a in function.names.items() if n not in {each.arg for each in parameters(body)}}
    return _first_recorded(module, body, names)


def _inner_functions(function: ContextFunction) -> Iterator[FunctionNode]:
    return (
        each
        for each in ast.walk(function.node)
        if isinstance(each, FunctionNode) and each is not function.node
    )


def _first_recorded(module: Module, body: ast.AST, names: dict[str, bool]) -> ast.Call | None:
    for node in own_nodes(body):
        if isinstance(node, ast.Call):
            call = module.context_call(node, names)
            if call is not None and isinstance(node.func, ast.Attribute) and call.method in RECORDED:
                return node
    return None


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
