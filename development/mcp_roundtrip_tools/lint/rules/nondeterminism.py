"""MRT001: values that differ in every round, such as the time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import ContextFunction, Module
from mcp_roundtrip_tools.lint.definitions import Definition, called_function
from mcp_roundtrip_tools.lint.reachability import runs_again
from mcp_roundtrip_tools.lint.source import FunctionNode, Source, own_nodes, parameters

_TIME: Final = 'write `ctx.now("…")`, which is recorded'
_UUID: Final = 'write `ctx.uuid("…")`, which is recorded'
_RANDOM: Final = 'write `ctx.random("…")`, which is recorded, or use it in a step'
_HASH: Final = "use hashlib, because each process has another seed for the hashes of texts"

_CALLS: Final = {
    **dict.fromkeys(["time.time", "time.time_ns", "time.ctime", "time.localtime", "time.gmtime"], _TIME),
    **dict.fromkeys(["time.asctime", "time.strftime"], _TIME),
    **dict.fromkeys([f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")], _TIME),
    "datetime.date.today": _TIME,
    **dict.fromkeys(["uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7"], _UUID),
    "os.urandom": _RANDOM,
}
_RANDOM_MODULES: Final = ("random.", "secrets.", "numpy.random.")
_SEEDABLE: Final = frozenset(
    {"random.Random", "numpy.random.default_rng", *(_SEEDS := ("random.seed", "numpy.random.seed"))}
)
_GENERATORS: Final = frozenset({"random.Random", "random.SystemRandom", "numpy.random.default_rng"})
_COMPARES: Final = "secrets.compare_digest"
_GIVEN_TIME: Final = {
    "time.ctime": 0,
    "time.localtime": 0,
    "time.gmtime": 0,
    "time.asctime": 0,
    "time.strftime": 1,
}
"""Functions that take a time, and its place among the arguments."""

CONVERSIONS: Final = frozenset({"round", "int", "float", "str", "abs"})
_KEEPING: Final = CONVERSIONS | {
    *("repr", "list", "tuple", "dict", "datetime.datetime.fromtimestamp", "datetime.date.fromtimestamp")
}
"""Functions whose value differs if an argument differs."""


def changing_call(source: Source, call: ast.Call) -> str | None:
    """Return the remedy if a call returns another value in every round."""
    name = source.dotted(call.func)
    if name is None:
        return None
    if name == "hash":
        return _HASH if call.args and _is_text(source, call.args[0]) else None
    if isinstance(call.func, ast.Attribute) and _is_generator_of_module(source, call.func.value):
        return _RANDOM
    if name.partition(".")[0] not in _roots(source):
        return None
    if name in _CALLS:
        return None if len(call.args) > _GIVEN_TIME.get(name, len(call.args)) else _CALLS[name]
    if name == _COMPARES or (name in _SEEDABLE and (call.args or call.keywords)):
        return None
    is_random = name.startswith(_RANDOM_MODULES) and not _is_seeded(source, call, name)
    return _RANDOM if is_random else None


def _roots(source: Source) -> set[str]:
    return {name.partition(".")[0] for name in source.imports.values()}


def _is_generator_of_module(source: Source, node: ast.expr) -> bool:
    """Return whether a variable of the module holds a generator, whose state no round resets."""
    if not isinstance(node, ast.Name) or source.dotted(node) != node.id:
        return False
    return any(
        isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
        and isinstance(each.value, ast.Call)
        and source.dotted(each.value.func) in _GENERATORS
        for each in source.tree.body
    )


def _is_seeded(source: Source, call: ast.Call, name: str) -> bool:
    """Return whether the function around the call sets the seed itself."""
    seed = f"{name.rpartition('.')[0]}.seed"
    function = next((each for each in source.ancestors(call) if isinstance(each, FunctionNode)), None)
    return function is not None and any(
        isinstance(node, ast.Call) and node.args and source.dotted(node.func) == seed
        for node in own_nodes(function)
    )


def _is_text(source: Source, node: ast.expr) -> bool:
    """Return whether a value is certainly a text, whose hash has a random seed in each process."""
    if isinstance(node, ast.Name):
        function = next((each for each in source.ancestors(node) if isinstance(each, FunctionNode)), None)
        annotations = (
            [each.annotation for each in parameters(function) if each.arg == node.id] if function else []
        )
        return any(isinstance(each, ast.Name) and each.id == "str" for each in annotations)
    is_str = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str"
    return (
        is_str
        or isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
    )


def remedy_for(source: Source, call: ast.Call) -> str | None:
    """Return the remedy if a call, or the function that it runs, returns another value in every round."""
    return changing_call(source, call) or _returned_by(source, call, set())


def _returned_by(source: Source, call: ast.Call, seen: set[ast.AST]) -> str | None:
    called = called_function(source, call)
    if called is None:
        return None
    returned = [node.value for node in own_nodes(called.node) if isinstance(node, ast.Return) and node.value]
    return _first(called, returned, seen)


def _first(function: Definition, nodes: list[ast.expr], seen: set[ast.AST]) -> str | None:
    return next((remedy for each in nodes if (remedy := _carried(function, each, seen))), None)


def _carried(function: Definition, node: ast.expr, seen: set[ast.AST]) -> str | None:
    """Return the remedy if such a value is the value of an expression, or a part of it.

    `seen`: the expressions that are followed, because functions may call each other.
    """
    if node in seen:
        return None
    seen.add(node)
    if isinstance(node, ast.Call):
        remedy = changing_call(function.source, node) or _returned_by(function.source, node, seen)
        return remedy or _first(function, _carrying(function.source, node), seen)
    if isinstance(node, ast.Name):
        return _first(function, _only_value(function.node, node.id), seen)
    return _first(function, _parts(node), seen)


def _carrying(source: Source, call: ast.Call) -> list[ast.expr]:
    """Return the parts of a call that its value contains, as in `datetime.now().isoformat()`."""
    if isinstance(call.func, ast.Attribute):
        if isinstance(call.func.value, ast.Constant):  # "…".join(…), "…".format(…)
            return [*call.args, *(each.value for each in call.keywords)]
        if (
            isinstance(call.func.value, ast.Call | ast.Attribute | ast.Name)
            and source.dotted(call.func) is None
        ):
            return [call.func.value]
    if source.dotted(call.func) in _KEEPING:
        return [*call.args, *(each.value for each in call.keywords)]
    return []


def _only_value(function: FunctionNode, name: str) -> list[ast.expr]:
    """Return what a variable of the function is assigned, if that is one expression without the variable."""
    stores = [
        node
        for node in own_nodes(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    values = [
        node.value
        for node in own_nodes(function)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None
        if stores and stores[0] in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    is_used_in_itself = any(
        isinstance(each, ast.Name) and each.id == name for value in values for each in ast.walk(value)
    )
    return values if len(stores) == 1 and not is_used_in_itself else []


def _parts(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.JoinedStr(values=values) | ast.BoolOp(values=values):
            return values
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return elements
        case ast.Dict(keys=keys, values=values):
            return [*(each for each in keys if each is not None), *values]
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return [left, right]
        case ast.UnaryOp(operand=value) | ast.FormattedValue(value=value) | ast.Await(value=value):
            return [value]
        case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Starred(value=value):
            return [value]
        case ast.ListComp(elt=value) | ast.SetComp(elt=value) | ast.GeneratorExp(elt=value):
            return [value]
    return []


_SORTING: Final = frozenset({"sorted", "min", "max"})
"""Functions that call their `key` at once."""

_LOG_METHODS: Final = frozenset(
    {"debug", "info", "warning", "error", "exception", "critical", "log", "append_keys", "add_metric"}
)


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls whose value another round would not repeat."""
    for function in module.functions:
        for node in _nodes_of(function):
            if not isinstance(node, ast.Call):
                continue
            remedy, shown = remedy_for(module.source, node), ast.unparse(node.func)
            if remedy is None or _is_only_logged(module.source, function, node):
                continue
            if runs_again(module, function, node):
                remedy = remedy.replace("ctx", next(iter(function.names)))
                yield node, f"{shown}() has another value in every round: {remedy}"


def _nodes_of(function: ContextFunction) -> Iterator[ast.AST]:
    """The nodes of a function, with those of lambdas that run at once: `sorted(names, key=lambda …)`."""
    for node in own_nodes(function.node):
        yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SORTING:
            for keyword in node.keywords:
                yield from own_nodes(keyword.value) if isinstance(keyword.value, ast.Lambda) else ()


def _is_only_logged(source: Source, function: ContextFunction, node: ast.expr) -> bool:
    """Return whether the value reaches nothing but a log line, also by way of variables."""
    pending, seen = [node], {node}
    while pending:
        used = pending.pop()
        if _is_in_log_line(source, function.node, used):
            continue
        names = _variables_of(source, used)
        if not names:
            return False
        uses = {
            each
            for each in ast.walk(function.node)
            if isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load)
        }
        pending += uses - seen
        seen |= uses
    return True


def _variables_of(source: Source, node: ast.expr) -> set[str]:
    """Return the variables to which a statement assigns the value, or what it computes from the value."""
    outer = source.parents[node]
    while isinstance(outer, ast.BinOp | ast.UnaryOp | ast.JoinedStr | ast.FormattedValue) or _converts(outer):
        outer = source.parents[outer]
    targets = outer.targets if isinstance(outer, ast.Assign) else [getattr(outer, "target", None)]
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    is_assignment = isinstance(outer, ast.Assign | ast.AnnAssign | ast.NamedExpr)
    return names if is_assignment and len(names) == len(targets) else set()


def _converts(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CONVERSIONS


def _is_in_log_line(source: Source, function: FunctionNode, node: ast.AST) -> bool:
    for outer in source.ancestors(node):
        if outer is function or isinstance(outer, ast.stmt):
            return isinstance(outer, ast.Expr) and isinstance(outer.value, ast.Call) and _logs(outer.value)
    return False


def _logs(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _LOG_METHODS
    return isinstance(call.func, ast.Name) and call.func.id == "print"
