"""MRT001: values that differ in every round, such as the time."""

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import ContextFunction, Module
from mcp_roundtrip_tools.lint.control_flow import runs_again
from mcp_roundtrip_tools.lint.name_resolution import called_function, definition_of
from mcp_roundtrip_tools.lint.parsed_module import Source, arguments, assignments, own_nodes, returned
from mcp_roundtrip_tools.lint.rules.effects import GENERATORS, origin_of

_TIME: Final = 'write `ctx.now("…")`, which is recorded'
_UUID: Final = 'write `ctx.uuid("…")`, which is recorded'
_RANDOM: Final = 'write `ctx.random("…")`, which is recorded, or use it in a step'
_KEY: Final = 'write `ctx.idempotency_key("…")`, which is the same in every round'

_CALLS: Final = {
    **dict.fromkeys(["time.time", "time.time_ns", "datetime.date.today"], _TIME),
    **dict.fromkeys([f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")], _TIME),
    **dict.fromkeys(["uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7"], _UUID),
    "os.urandom": _RANDOM,
}
_GIVEN_TIME: Final = {
    **dict.fromkeys(["time.ctime", "time.localtime", "time.gmtime", "time.asctime"], 0),
    "time.strftime": 1,
}
"""Functions that may get a time, and its place among the arguments."""

_RANDOM_MODULES: Final = ("random.", "secrets.", "numpy.random.")
_SEEDED: Final = frozenset({"random.Random", "random.seed", "numpy.random.default_rng", "numpy.random.seed"})
_CONVERSIONS: Final = frozenset({"round", "int", "float", "str", "abs"})
_KEEPING: Final = _CONVERSIONS | {
    *("repr", "list", "tuple", "dict", "datetime.datetime.fromtimestamp", "datetime.date.fromtimestamp")
}
"""Functions whose value differs if an argument differs."""

_LOG_METHODS: Final = frozenset(
    {
        *("debug", "info", "warning", "error", "exception", "critical", "log", "append_keys"),
        *("add_metric", "add_metadata", "put_annotation", "put_metadata", "set_attribute"),
    }
)


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find expressions whose value another round would not repeat."""
    for function in module.functions:
        for node in own_nodes(function.node):
            if not isinstance(node, ast.Call | ast.Attribute):
                continue
            remedy = _changing(module.source, node) or _returned_by(module.source, node, set())
            if remedy is None or _is_only_logged(module.source, function, node):
                continue
            if runs_again(module, function, node):
                remedy = remedy.replace("ctx", function.given[0])
                shown = f"{ast.unparse(node.func)}()" if isinstance(node, ast.Call) else ast.unparse(node)
                yield node, f"{shown} has another value in every round: {remedy}"


def _changing(source: Source, node: ast.expr) -> str | None:
    """Return the remedy if an expression has another value in every round."""
    if isinstance(node, ast.Attribute) and node.attr == "aws_request_id":
        return _KEY
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and origin_of(source, node.func.value) in GENERATORS:
        is_of_module = isinstance(node.func.value, ast.Name) and node.func.value.id in source.top_level
        return _RANDOM if is_of_module else None  # no round resets its state
    name = source.dotted(node.func) or ""
    if name in _GIVEN_TIME:
        return None if len(node.args) > _GIVEN_TIME[name] else _TIME
    is_given = name in _SEEDED and (node.args or node.keywords)
    is_random = name.startswith(_RANDOM_MODULES) and not is_given and name != "secrets.compare_digest"
    return _RANDOM if is_random else _CALLS.get(name)


def _returned_by(source: Source, node: ast.expr, seen: set[ast.AST]) -> str | None:
    """Return the remedy if an expression calls a function of the folder that returns such a value."""
    called = called_function(source, node) if isinstance(node, ast.Call) else None
    if called is None:
        return None
    values = returned(called.node)
    return next((remedy for each in values if (remedy := _carried(called.source, each, seen))), None)


def _carried(source: Source, node: ast.AST, seen: set[ast.AST]) -> str | None:
    """Return the remedy if an expression has such a value. `seen`: functions may call each other."""
    source, node = definition_of(source, node)
    if node in seen or not isinstance(node, ast.expr):
        return None
    seen.add(node)
    remedy = _changing(source, node) or _returned_by(source, node, seen)
    parts = (_carried(source, each, seen) for each in _parts(source, node))
    return remedy or next(filter(None, parts), None)


def _parts(source: Source, node: ast.expr) -> list[ast.expr]:
    """Return the expressions whose values the value of an expression contains."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as receiver)):  # datetime.now().isoformat()
            return [receiver]
        case ast.Call(func=function):
            is_text_method = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Constant)
            keeps = is_text_method or source.dotted(function) in _KEEPING
            return arguments(node) if keeps else []
        case ast.Compare() | ast.Lambda():
            return []
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Subscript(value=value):
            return [value]
    return [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]


def _is_only_logged(source: Source, function: ContextFunction, node: ast.expr) -> bool:
    """Return whether the value reaches nothing but a log line, also by way of variables."""
    pending: list[ast.expr] = [node]
    for used in pending:  # it grows
        if _is_in_log_line(source, used):
            continue
        name = _variable_of(source, used)
        if name is None:
            return False
        names = (each for each in ast.walk(function.node) if isinstance(each, ast.Name) and each.id == name)
        pending += [each for each in names if isinstance(each.ctx, ast.Load) and each not in pending]
    return True


def _variable_of(source: Source, node: ast.AST) -> str | None:
    """Return the variable to which a statement assigns the value, or what it computes from the value."""
    outer = source.parents[node]
    is_converted = isinstance(outer, ast.Call) and source.dotted(outer.func) in _CONVERSIONS
    if is_converted or isinstance(outer, ast.BinOp | ast.UnaryOp | ast.JoinedStr | ast.FormattedValue):
        return _variable_of(source, outer)
    return next((target.id for target, _ in assignments(outer) if isinstance(target, ast.Name)), None)


def _is_in_log_line(source: Source, node: ast.AST) -> bool:
    statement = next(each for each in source.ancestors(node) if isinstance(each, ast.stmt))
    call = statement.value if isinstance(statement, ast.Expr) else None
    match call.value if isinstance(call, ast.Await) else call:
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _LOG_METHODS
        case ast.Call(func=ast.Name(id="print")):
            return True
    return False
