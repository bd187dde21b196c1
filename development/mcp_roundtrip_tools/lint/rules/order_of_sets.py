"""MRT002: the order of a set or of a folder's files, which differs between processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mcp_roundtrip_tools.lint.contexts import QUESTIONS, ContextCall, ContextFunction, Module
from mcp_roundtrip_tools.lint.rules.unordered_values import Values
from mcp_roundtrip_tools.lint.source import Comprehension, own_nodes


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
