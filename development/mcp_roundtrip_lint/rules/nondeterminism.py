"""MRT001: values that differ in every round, such as the time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_lint.contexts import ContextFunction, Module
from mcp_roundtrip_lint.reachability import runs_again
from mcp_roundtrip_lint.source import FunctionNode, Source, own_nodes

_TIME: Final = 'write `ctx.now("…")`, which is recorded'
_UUID: Final = 'write `ctx.uuid("…")`, which is recorded'
_RANDOM: Final = 'write `ctx.random("…")`, which is recorded, or use it in a step'

_CALLS: Final = {
    **dict.fromkeys(["time.time", "time.time_ns", "time.ctime", "time.localtime", "time.gmtime"], _TIME),
    **dict.fromkeys([f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")], _TIME),
    "datetime.date.today": _TIME,
    **dict.fromkeys(["uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7"], _UUID),
    "os.urandom": _RANDOM,
}
_RANDOM_MODULES: Final = ("random.", "secrets.", "numpy.random.")
_SEEDABLE: Final = frozenset(
    {"random.Random", "numpy.random.default_rng", "random.seed", "numpy.random.seed"}
)
_COMPARES: Final = "secrets.compare_digest"
_TAKES_TIME: Final = frozenset({"time.ctime", "time.localtime", "time.gmtime"})

_LOG_METHODS: Final = frozenset(
    {"debug", "info", "warning", "error", "exception", "critical", "log", "append_keys", "add_metric"}
)


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls whose value another round would not repeat."""
    returning = _functions_that_return_one(module.source)
    for function in module.functions:
        for node in own_nodes(function.node):
            if not isinstance(node, ast.Call):
                continue
            remedy, shown = _remedy(module.source, node), ast.unparse(node.func)
            if remedy is None and isinstance(node.func, ast.Name) and node.func.id in returning:
                remedy = returning[node.func.id]
            if remedy is None or _is_only_logged(module.source, function, node):
                continue
            if runs_again(module, function, node):
                remedy = remedy.replace("ctx", next(iter(function.names)))
                yield node, f"{shown}() has another value in every round: {remedy}"


def _remedy(source: Source, call: ast.Call) -> str | None:
    name = source.dotted(call.func)
    if name is None or name.partition(".")[0] not in _roots(source):
        return None
    if name in _CALLS:
        return None if name in _TAKES_TIME and call.args else _CALLS[name]
    if name == _COMPARES or (name in _SEEDABLE and (call.args or call.keywords)):
        return None
    return _RANDOM if name.startswith(_RANDOM_MODULES) else None


def _roots(source: Source) -> set[str]:
    return {name.partition(".")[0] for name in source.imports.values()}


def _functions_that_return_one(source: Source) -> dict[str, str]:
    """Return the functions of the module that return such a value: their name and the remedy."""
    found: dict[str, str] = {}
    for name, function in source.functions.items():
        for node in own_nodes(function):
            if isinstance(node, ast.Return) and node.value is not None:
                remedies = [
                    remedy
                    for each in ast.walk(node.value)
                    if isinstance(each, ast.Call) and (remedy := _remedy(source, each))
                ]
                found |= dict.fromkeys([name] if remedies else [], next(iter(remedies), ""))
    return found


def _is_only_logged(source: Source, function: ContextFunction, node: ast.Call) -> bool:
    """Return whether the value reaches nothing but a log line."""
    if _is_in_log_line(source, function.node, node):
        return True
    parent = source.parents[node]
    if not isinstance(parent, ast.Assign) or not all(isinstance(each, ast.Name) for each in parent.targets):
        return False
    names = {each.id for each in parent.targets if isinstance(each, ast.Name)}
    uses = [
        each
        for each in ast.walk(function.node)
        if isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load)
    ]
    return all(_is_in_log_line(source, function.node, each) for each in uses)


def _is_in_log_line(source: Source, function: FunctionNode, node: ast.AST) -> bool:
    for outer in source.ancestors(node):
        if outer is function or isinstance(outer, ast.stmt):
            return isinstance(outer, ast.Expr) and isinstance(outer.value, ast.Call) and _logs(outer.value)
    return False


def _logs(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _LOG_METHODS
    return isinstance(call.func, ast.Name) and call.func.id == "print"
