"""MRT002: the order of a set or of a folder's files, which differs between processes."""

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import QUESTIONS, ContextCall, ContextFunction, Module
from mcp_roundtrip_tools.lint.name_resolution import called_function, definition_of, unwrapped
from mcp_roundtrip_tools.lint.parsed_module import Comprehension, Source, own_nodes
from mcp_roundtrip_tools.lint.rules.effects import PATH, origin_of

_SETS: Final = frozenset({"set", "frozenset"})
_SET_OPERATIONS: Final = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_FILES: Final = frozenset({"os.listdir", "os.scandir", "glob.glob", "glob.iglob", "os.walk"})
_FILE_METHODS: Final = frozenset({"iterdir", "rglob"})
_SET_METHODS: Final = frozenset(
    {"union", "intersection", "difference", "symmetric_difference", "copy", "keys", "values", "items"}
)
_KEEPS_ORDER: Final = frozenset(
    {
        *("list", "tuple", "iter", "next", "enumerate", "map", "filter", "str", "repr", "zip", "reversed"),
        "dict.fromkeys",
    }
)
"""Functions whose value depends on the order of what they get."""

_IGNORES_ORDER: Final = frozenset({"sorted", "len", "sum", "min", "max", "any", "all"})


def is_unordered(source: Source, node: ast.AST, seen: set[ast.AST]) -> bool:
    """Return whether processes iterate a value in different orders. `seen`: variables may refer to others."""
    if isinstance(node, ast.Name) and _is_sorted_in_place(source, node):
        return False
    grown_from = _grown_from(source, node)
    source, node = definition_of(source, node)
    if node in seen:
        return False
    seen.add(node)
    parts = [*grown_from, *_parts(source, node)]
    return _has_no_order(source, node) or any(is_unordered(source, each, seen) for each in parts)


def _has_no_order(source: Source, node: ast.AST) -> bool:
    """Return whether a value is a set, a difference of a dict's keys, or the files of a folder."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.BinOp(left=ast.Call(func=ast.Attribute(attr="keys" | "items")), op=op):
            return isinstance(op, _SET_OPERATIONS)
        case ast.arg(annotation=annotation):
            return _is_set_type(source, annotation)
        case ast.Call(func=function):
            called = called_function(source, node)
            if called is not None:
                return _is_set_type(called.source, called.node.returns)
            if isinstance(function, ast.Attribute) and function.attr == "glob":
                return origin_of(source, function.value) == PATH  # other objects may sort their files
            is_method = isinstance(function, ast.Attribute) and function.attr in _FILE_METHODS
            return is_method or source.dotted(function) in _SETS | _FILES
    return False


def _parts(source: Source, node: ast.AST) -> list[ast.expr]:
    """Return the expressions whose order the value of an expression has."""
    match node:
        case ast.BinOp(left=left, right=right, op=op) if isinstance(op, _SET_OPERATIONS):
            return [left, right]
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
            return [each.iter for each in node.generators]
        case ast.JoinedStr(values=values):
            return [each.value for each in values if isinstance(each, ast.FormattedValue)]
        case ast.Starred(value=value):
            return [value]
        case ast.Call(func=ast.Attribute(attr="join"), args=arguments):
            return arguments
        case ast.Call(func=function, args=arguments) if (name := source.dotted(function)) in _KEEPS_ORDER:
            return arguments[:1] if name == "dict.fromkeys" else arguments
        case ast.Call(func=ast.Attribute(attr=method, value=receiver), args=arguments):
            is_first = method == "pop" and not arguments
            return [receiver] if is_first or method in _SET_METHODS else []
    return []


def _grown_from(source: Source, node: ast.AST) -> list[ast.expr]:
    """Return what the loops iterate over whose every turn appends to a variable."""
    scope = source.scope_of(node) if isinstance(node, ast.Name) else None
    loops = (each for each in own_nodes(scope) if isinstance(each, ast.For)) if scope else ()
    appends = f"{ast.unparse(node)}.append("
    return [loop.iter for loop in loops if any(ast.unparse(each).startswith(appends) for each in loop.body)]


def _is_sorted_in_place(source: Source, name: ast.Name) -> bool:
    scope = source.scope_of(name)
    nodes = own_nodes(scope) if scope else ()
    return any(isinstance(each, ast.Call) and ast.unparse(each.func) == f"{name.id}.sort" for each in nodes)


def unordered_parts(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    """The outermost unordered expressions whose order an argument shows."""
    match node:
        case ast.Lambda() | ast.Compare():  # membership, equality
            return
        case ast.Call(func=ast.Name(id=name)) if name in _IGNORES_ORDER:
            return
        case ast.JoinedStr():
            pass
        case _ if is_unordered(source, node, set()):
            yield node
            return
    for child in ast.iter_child_nodes(node):
        yield from unordered_parts(source, child)


def _is_set_type(source: Source, annotation: ast.expr | None) -> bool:
    if annotation is None:
        return False
    kind = unwrapped(source, annotation)
    name = source.dotted(kind.value if isinstance(kind, ast.Subscript) else kind) or ""
    return name.rpartition(".")[2] in {*_SETS, "AbstractSet", "Set"}


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find calls of the context whose key, text or order of calls depends on such an order."""
    for function in module.functions:
        for loop in own_nodes(function.node):
            iterable = _iterable(loop)
            if iterable is None or not _is_called_inside(function, loop):
                continue
            if is_unordered(module.source, iterable, set()):
                message = (
                    f"the order of {_shown(iterable)} differs between rounds, and so "
                    "does the order of the calls in this loop: sort the values first, with `sorted(…)`"
                )
                yield iterable, message
        for argument in (each for call in function.calls for each in _shown_arguments(call)):
            for node in unordered_parts(module.source, argument):
                message = (
                    f"the order of {_shown(node)} differs between rounds, so the "
                    "question would change: sort the values first, with `sorted(…)`"
                )
                yield node, message


def _iterable(node: ast.AST) -> ast.expr | None:
    """Return what a loop, or the first loop of a comprehension, iterates over."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter
    return node.generators[0].iter if isinstance(node, Comprehension) else None


def _is_called_inside(function: ContextFunction, loop: ast.AST) -> bool:
    inside = set(ast.walk(loop)) if isinstance(loop, Comprehension) else set(own_nodes(loop))
    return any(call.ends_round and call.node in inside for call in function.calls)


def _shown_arguments(call: ContextCall) -> list[ast.expr]:
    """Return the arguments that a user or a journal sees."""
    if call.method in QUESTIONS:
        return [*call.node.args, *(each.value for each in call.node.keywords if each.arg != "done")]
    return [] if call.key is None else [call.key]


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."
