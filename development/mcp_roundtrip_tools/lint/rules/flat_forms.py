"""MRT012: forms that no client can show, because a field holds objects or free lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.definitions import ClassDefinition, bases_of, class_named
from mcp_roundtrip_tools.lint.source import Source

_FIELD_BASES: Final = frozenset(
    {"pydantic.BaseModel", "typing.TypedDict", "typing_extensions.TypedDict", "typing.NamedTuple"}
)
_DATACLASSES: Final = frozenset({"dataclasses.dataclass", "pydantic.dataclasses.dataclass"})
_LISTS: Final = frozenset(
    f"{module}{name}"
    for module in ("", "typing.", "collections.abc.")
    for name in ("list", "set", "frozenset", "tuple", "List", "Set", "Tuple", "Sequence", "Iterable")
)
_DICTS: Final = frozenset({"dict", "typing.Dict", "collections.abc.Mapping", "typing.Mapping"})
_TRANSPARENT: Final = frozenset({"typing.Optional", "typing.Annotated", "typing_extensions.Annotated"})
_FREE: Final = frozenset(
    {"str", "int", "float", "bool", "datetime.date", "datetime.datetime", "decimal.Decimal"}
)

_OBJECT: Final = "is a nested object, and a form is flat: put its fields into the model itself"
_LIST_OF_OBJECTS: Final = "is a list of objects, and a form is flat: ask for one after the other"
_FREE_LIST: Final = "is a list of free values, and a form needs choices: write list[Literal[…]]"
_DICT: Final = "is a dict, and a form has fixed fields: write a field of the model for each entry"


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find the models of questions whose fields a form cannot hold."""
    for node in ast.walk(module.source.tree):
        if isinstance(node, ast.Call) and (model := _model_of(module, node)) is not None:
            definition = class_named(module.source, model)
            if definition is None or not _has_fields(definition, set()):
                reason = _problem(module.source, model)
                if reason is not None:
                    yield model, f"the answer {reason}"
                continue
            for name, reason in _problems(definition, set()):
                yield model, f"field {name!r} of {definition.node.name} {reason}"


def _model_of(module: Module, call: ast.Call) -> ast.expr | None:
    """Return the type of a form's answer: the third argument of `ctx.elicit` and `Elicit`."""
    is_question = module.source.dotted(call.func) in ("mcp_roundtrip.Elicit", "Elicit") or any(
        each.node is call and each.method == "elicit"
        for function in module.functions
        for each in function.calls
    )
    if not is_question:
        return None
    by_name = (each.value for each in call.keywords if each.arg == "model")
    return call.args[2] if len(call.args) > 2 else next(by_name, None)


def _has_fields(definition: ClassDefinition, seen: set[ast.ClassDef]) -> bool:
    """Return whether a class is a pydantic model, a dataclass or a TypedDict."""
    if definition.node in seen:
        return False
    seen.add(definition.node)
    source = definition.source
    decorators = (
        each.func if isinstance(each, ast.Call) else each for each in definition.node.decorator_list
    )
    return (
        any(source.dotted(each) in _DATACLASSES for each in decorators)
        or any(source.dotted(each) in _FIELD_BASES for each in definition.node.bases)
        or any(_has_fields(each, seen) for each in bases_of(definition))
    )


def _problems(definition: ClassDefinition, seen: set[ast.ClassDef]) -> Iterator[tuple[str, str]]:
    """Yield the fields that a form cannot hold, those of the bases, too, each with the reason."""
    if definition.node in seen:
        return
    seen.add(definition.node)
    for base in bases_of(definition):
        yield from _problems(base, seen)
    for node in definition.node.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            reason = _problem(definition.source, node.annotation)
            if reason is not None:
                yield node.target.id, reason


def _problem(source: Source, annotation: ast.expr) -> str | None:
    annotation = _inner(source, annotation)
    if isinstance(annotation, ast.Subscript):
        name = source.dotted(annotation.value)
        if name in _LISTS:
            first = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
            item = _inner(source, first)
            if _is_object(source, item):
                return _LIST_OF_OBJECTS
            return _FREE_LIST if source.dotted(item) in _FREE else None
        return _DICT if name in _DICTS else None
    return _OBJECT if _is_object(source, annotation) else None


def _is_object(source: Source, annotation: ast.expr) -> bool:
    definition = class_named(source, annotation)
    return definition is not None and _has_fields(definition, set())


def _inner(source: Source, annotation: ast.expr) -> ast.expr:
    """Return the type inside quotes, `Annotated[…]` and `… | None`."""
    match annotation:
        case ast.Constant(value=str(text)):
            try:
                return _inner(source, ast.parse(text, mode="eval").body)
            except SyntaxError:
                return annotation
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return _inner(source, left)
        case ast.BinOp(left=ast.Constant(value=None), op=ast.BitOr(), right=right):
            return _inner(source, right)
        case ast.Subscript(value=outer, slice=inner) if source.dotted(outer) in _TRANSPARENT:
            return _inner(source, inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
    return annotation
