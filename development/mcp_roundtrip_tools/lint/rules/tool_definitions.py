"""MRT012 to MRT014: forms that are not flat, tools without a description, and tools that models refuse."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mcp_roundtrip.server.definition_lint import exceeded_limits
from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.definitions import Definition, class_named, definition_of, lineage, value_of
from mcp_roundtrip_tools.lint.source import FunctionNode, Source, parameters

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


def check_forms(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find the models of questions whose fields a form cannot hold."""
    for node in ast.walk(module.source.tree):
        if isinstance(node, ast.Call) and (model := _model_of(module, node)) is not None:
            definition = class_named(module.source, model)
            if definition is None or not _has_fields(definition):
                reason = _problem(module.source, model)
                if reason is not None:
                    yield model, f"the answer {reason}"
                continue
            for source, field in _fields_of(definition):
                reason = _problem(source, field.annotation)
                if reason is not None:
                    yield model, f"field {ast.unparse(field.target)!r} of {definition.node.name} {reason}"


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


def _has_fields(definition: Definition[ast.ClassDef]) -> bool:
    """Return whether a class is a pydantic model, a dataclass or a TypedDict."""
    for each in lineage(definition):
        decorators = (node.func if isinstance(node, ast.Call) else node for node in each.node.decorator_list)
        if any(each.source.dotted(node) in _DATACLASSES for node in decorators):
            return True
        if any(each.source.dotted(node) in _FIELD_BASES for node in each.node.bases):
            return True
    return False


def _fields_of(definition: Definition[ast.ClassDef]) -> Iterator[tuple[Source, ast.AnnAssign]]:
    """Yield the fields of a class, those of its bases first, each with the module that contains it."""
    for each in reversed(lineage(definition)):
        for node in each.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield each.source, node


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
    return definition is not None and _has_fields(definition)


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


def check_descriptions(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find tools without a docstring and without `description=`."""
    for node in ast.walk(module.source.tree):
        if isinstance(node, FunctionNode) and not (ast.get_docstring(node) or "").strip():
            for decorator in node.decorator_list:
                if registers_tool(module.source, decorator) and not _is_described(decorator):
                    yield node, f"{node.name} has no docstring, by which the model selects a tool: write one"


def registers_tool(source: Source, decorator: ast.expr) -> bool:
    """Return whether a decorator is `tool` of a server of this package."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if not isinstance(called, ast.Attribute) or called.attr != "tool":
        return False
    if any(name.startswith("mcp_roundtrip.") for name in source.imports.values()):
        return True
    server = definition_of(source, called.value)
    if server is None or not isinstance(server.node, ast.Call):
        return False
    return server.source.dotted(server.node.func) == "mcp_roundtrip.Server"


def _is_described(decorator: ast.expr) -> bool:
    """Return whether the decorator has a description, or arguments that this rule cannot read."""
    given = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(each.arg in ("description", None) for each in given)


def check_limits(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find tools that end the session of a model's client."""
    source = module.source
    for node in ast.walk(source.tree):
        if isinstance(node, FunctionNode):
            for decorator in node.decorator_list:
                if registers_tool(source, decorator):
                    name, schema = _name(node, decorator), _input_schema(source, node, decorator)
                    for problem in exceeded_limits(name, schema):
                        yield node, f"{node.name}: {problem}"


def _name(function: FunctionNode, decorator: ast.expr) -> str:
    """Return the name of the tool; an expression that is not constant gives no name."""
    if not isinstance(decorator, ast.Call):
        return function.name
    given = [*decorator.args[:1], *(each.value for each in decorator.keywords if each.arg == "name")]
    if not given:
        return function.name
    return given[0].value if isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) else ""


def _input_schema(source: Source, function: FunctionNode, decorator: ast.expr) -> dict[str, Any]:
    """Return the keywords that can be read of the `inputSchema`."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    given = next((each.value for each in keywords if each.arg == "input_schema"), None)
    if given is not None:
        return _literal(source, given)
    return {"properties": _properties([(source, each) for each in parameters(function)], [])}


def _literal(source: Source, node: ast.expr) -> dict[str, Any]:
    """Return a dict that is written out, here or as the only value of a variable; {} for any other."""
    made = value_of(source, node)
    try:
        value = ast.literal_eval(node if made is None else made.node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _properties(
    fields: Iterable[tuple[Source, ast.arg | ast.AnnAssign]], seen: list[ast.ClassDef]
) -> dict[str, Any]:
    """Return the schemas of parameters or fields: their names, and those of the fields of their classes."""
    found: dict[str, Any] = {}
    for source, field in fields:
        inner: dict[str, Any] = {}
        for each in [] if field.annotation is None else ast.walk(field.annotation):
            definition = class_named(source, each)
            if definition is not None and definition.node not in seen:
                seen.append(definition.node)
                inner |= _properties(_fields_of(definition), seen)
        name = field.arg if isinstance(field, ast.arg) else ast.unparse(field.target)
        found[_alias(source, field) or name] = {"properties": inner}
    return found


def _alias(source: Source, node: ast.AST) -> str | None:
    """Return the alias that `pydantic.Field` gives to a parameter or a field."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and source.dotted(call.func) == "pydantic.Field":
            for each in call.keywords:
                if each.arg == "alias" and isinstance(each.value, ast.Constant):
                    return str(each.value.value)
    return None
