"""Form elicitation: `requestedSchema` from a type, and a value of that type from an answer.

The schema is a flat object of primitives, with the keywords that the specification's schema.json lists for
each (client/elicitation, "Requested Schema"). Other constraints are checked when the answer is read. The
schema is part of a question's digest, so a type must have the same schema in every process.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from inspect import isclass
from types import FunctionType, NoneType
from typing import Annotated, Any, Final, Literal, NotRequired, get_args, get_origin

from msgspec import Struct
from pydantic import TypeAdapter
from pydantic.fields import Field
from pydantic.json_schema import JsonSchemaValue
from pydantic.main import BaseModel
from pydantic_core import core_schema
from typing_extensions import TypedDict, is_typeddict  # pydantic refuses typing's before Python 3.12

from mcp_roundtrip.arguments.pydantic_types import explain_type_error
from mcp_roundtrip.arguments.signature import type_name, unwrap_alias
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import InvalidAnswer, InvalidValue
from mcp_roundtrip.protocol.constants import SINGLE_FIELD
from mcp_roundtrip.schema.input_validation import TypedReader
from mcp_roundtrip.schema.json_schema_generator import JsonSchemaGenerator, build_json_schema

_FORMATS = {"email", "uri", "date", "date-time"}
_NULL = {"type": "null"}
_LABELS = ("title", "description")
_PYTHON_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


class _FormSchemaGenerator(JsonSchemaGenerator):
    """Describes Decimal as a number: `number | string` is a union, which a form cannot show."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        bounds = {name: float(schema[name]) for name in ("ge", "gt", "le", "lt") if name in schema}
        return self.float_schema(core_schema.float_schema(**bounds))  # type: ignore[arg-type]  # as above

    def encode_default(self, dft: Any) -> Any:
        return float(dft) if isinstance(dft, Decimal) else super().encode_default(dft)


def requested_schema(types: TypeAdapter[Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the `requestedSchema` of an object type, and the nullable fields. Raises DefinitionError."""
    schema = build_json_schema(types, generator=_FormSchemaGenerator)
    definitions = schema.get("$defs", {})
    schema = _inlined(schema, definitions)
    if schema.get("type") != "object":
        raise DefinitionError("it has no fields; write a flat pydantic model or dataclass")
    members = schema.get("properties", {})
    properties = {
        name: _property(name, _inlined(member, definitions), definitions) for name, member in members.items()
    }
    required = {"required": schema["required"]} if schema.get("required") else {}
    nullable = frozenset(name for name, member in members.items() if _NULL in member.get("anyOf", ()))
    return {"type": "object", "properties": properties, **required}, nullable


def _inlined(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Replace `$ref` by its target, and drop the null of an optional field. Keywords beside `$ref` win."""
    while True:
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            schema = {**definitions[name], **_without(schema, "$ref")}
            continue
        members = [member for member in schema.get("anyOf", ()) if member != _NULL]
        if len(members) != 1:
            return {**schema, "anyOf": members} if members else schema
        schema = {**members[0], **_without(schema, "anyOf")}


def _without(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != keyword}


def _property(name: str, schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if schema.get("format") == "password" or schema.get("writeOnly"):
        raise DefinitionError(
            f"field {name!r} is a secret, and a form must not ask for one; use ctx.elicit_url"
        )
    labels = {label: schema[label] for label in _LABELS if label in schema}
    if choice := _choice(schema, "oneOf", definitions):
        options = _options(choice, "oneOf")
        default = {"default": schema["default"]} if schema.get("default") in options else {}
        return {**choice, **labels, **default}
    kind = schema.get("type")
    if kind == "array":
        return {**_multiple_choice(name, schema, definitions), **labels}
    if kind not in _PYTHON_TYPES or "enum" in schema or "const" in schema:
        raise DefinitionError(f"field {name!r} {_unsupported_reason(schema)}")
    return {"type": kind, **labels, **_constraints(kind, schema), **_default(kind, schema)}


def _choice(schema: dict[str, Any], keyword: str, definitions: dict[str, Any]) -> dict[str, Any] | None:
    """Return an enumeration of strings, under `keyword` if all options have titles, or None."""
    branches = schema.get("anyOf") or schema.get("oneOf") or [schema]
    branches = [_inlined(branch, definitions) for branch in branches]
    values = [[branch["const"]] if "const" in branch else branch.get("enum", []) for branch in branches]
    if not all(values) or not all(isinstance(option, str) for options in values for option in options):
        return None
    titled = [{"const": branch.get("const"), "title": branch.get("title")} for branch in branches]
    if branches != [schema] and all(option["const"] and option["title"] for option in titled):
        return {"type": "string", keyword: titled}
    return {"type": "string", "enum": [*dict.fromkeys(option for options in values for option in options)]}


def _multiple_choice(name: str, schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    item = _inlined(schema.get("items", {}), definitions)
    if item.get("properties"):
        raise DefinitionError(
            f"field {name!r} is a list of objects, and a form is flat; use a flat model, and ask for one "
            "after the other"
        )
    choice = _choice(item, "anyOf", definitions)
    if choice is None or "prefixItems" in schema:
        raise DefinitionError(
            f"field {name!r} is a list, and a form needs choices of text; use list[Literal['a', 'b']] or "
            "list[one_of(names)], or ask for a str and split it"
        )
    items = choice if "enum" in choice else _without(choice, "type")
    bounds: dict[str, Any] = {bound: schema[bound] for bound in ("minItems", "maxItems") if bound in schema}
    chosen = schema.get("default")
    # In the order of the options: the order of a set differs between processes.
    ordered = [option for option in _options(choice, "anyOf") if option in chosen] if chosen else []
    default = {"default": ordered} if chosen is not None else {}
    return {"type": "array", "items": items, **bounds, **default}


def _options(choice: dict[str, Any], keyword: str) -> list[str]:
    return choice.get("enum") or [option["const"] for option in choice[keyword]]


def _constraints(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    if kind == "boolean":
        return {}
    if kind == "string":
        lengths: dict[str, Any] = {
            name: schema[name] for name in ("minLength", "maxLength") if name in schema
        }
        known = {"format": schema["format"]} if schema.get("format") in _FORMATS else {}
        return {**lengths, **known}
    # Forms have no exclusive bounds. The inclusive bound of a number refuses no valid value.
    step = 1 if kind == "integer" else 0
    bounds: dict[str, Any] = {}
    if "exclusiveMinimum" in schema:
        bounds["minimum"] = schema["exclusiveMinimum"] + step
    if "exclusiveMaximum" in schema:
        bounds["maximum"] = schema["exclusiveMaximum"] - step
    return bounds | {name: schema[name] for name in ("minimum", "maximum") if name in schema}


def _default(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    default = schema.get("default")
    fits = isinstance(default, _PYTHON_TYPES[kind]) and (kind == "boolean" or not isinstance(default, bool))
    return {"default": default} if fits else {}


def _unsupported_reason(schema: dict[str, Any]) -> str:
    if "anyOf" in schema or "oneOf" in schema:
        return "is a union, and a field of a form has one type; use one type, or a field for each"
    if "enum" in schema or "const" in schema:
        return "has choices that are not strings; use Literal['1', '2'] or an Enum of strings"
    if schema.get("type") == "object" and not schema.get("properties"):
        return "is a dict, and a form has fixed fields; write a field of the model for each entry"
    if schema.get("type") == "object":
        return "is a nested object, and a form is flat; put its fields into the model itself"
    return "has a type that a form cannot show; use str, int, float, bool, date, datetime, Literal or an Enum"


class Form(Struct, frozen=True, eq=False):
    """The schema of a question and the reader of its answers. Do not change `requested_schema`."""

    requested_schema: dict[str, Any]
    reader: TypedReader
    is_single_field: bool

    @classmethod
    def from_model(cls, model: Any) -> Form:
        """Create the form of a flat class, or one field of any other type. Raises DefinitionError."""
        try:
            # Literal["a", "b"] equals Literal["b", "a"], but their forms differ.
            spelling = "" if isclass(model) else repr(model)
            return (_cached if len(spelling) < LONG else _cached_long)(model, spelling)
        except TypeError:  # not hashable
            return _build(model)

    def parse(self, content: Mapping[str, Any]) -> Any:
        """Return the value of an accepted answer's `content`. Raises InvalidAnswer, which quotes nothing."""
        try:
            value = self.reader.read(content)
        except InvalidValue as error:
            raise InvalidAnswer(self._with_titles(str(error)), error.text_for_log()) from None
        return value.get(SINGLE_FIELD) if self.is_single_field else value

    def _with_titles(self, problems: str) -> str:
        """Replace the field's name at the beginning of each line by the title that the user sees."""
        titles = {name: each.get("title") for name, each in self.requested_schema["properties"].items()}
        return re.sub(r"(?m)^[^:.[\n]+(?=[:.[])", lambda found: titles.get(found[0]) or found[0], problems)


def one_of(options: Iterable[str], *, description: str | None = None) -> type[str]:
    """Create the type of a question that offers `options` in their order; the answer is one of them.

    For choices that are known only at run time: `ctx.elicit("place", "Which?", one_of(names))`. Raises
    DefinitionError for no options, and for an option that is no text or occurs twice.
    """
    values = tuple(options)
    for value in values:
        if not isinstance(value, str):
            raise DefinitionError(f"one_of has an option of type {type(value).__name__}; pass texts")
    if not values or len(set(values)) < len(values):
        twice = next((each for each in values if values.count(each) > 1), None)
        problem = f"has {twice!r:.100} twice" if values else "has no options"
        raise DefinitionError(f"one_of {problem}; pass at least one option, and each of them once")
    model: Any = Annotated[Literal[values], Field(description=description)]
    return model  # type: ignore[no-any-return]  # the answer is a str


def _build(model: Any, spelling: str = "") -> Form:
    single = not _has_fields(model)
    if _is_value(model):
        raise DefinitionError(
            f"the model is a value of type {type(model).__name__}; pass one_of(names) for a choice of texts, "
            "a class with flat fields, or a type such as str, bool or Literal"
        )
    try:
        types: TypeAdapter[Any] = TypeAdapter(_single_field_type(model) if single else model)
        schema, nullable = requested_schema(types)
        # Clients send null for a field that was left empty. pydantic checks which fields are required.
        checked = {"type": "object", "properties": schema["properties"]}
        optional = frozenset(schema["properties"]).difference(schema.get("required", ()))
        reader = TypedReader(lambda: checked, "", optional, nullable, types=types)
        return Form(schema, reader, single)
    except Exception as error:  # an annotation of the author's may raise anything
        raise DefinitionError(f"form {type_name(model):.100}: {explain_type_error(model, error)}") from None


def _is_value(model: Any) -> bool:
    """Return whether a value was passed in place of a type."""
    values = (BaseModel, Collection, Enum, Iterator, int, float, FunctionType)
    return not isclass(model) and (isinstance(model, values) or is_dataclass(model))


LONG: Final = 4_096
"""Characters of choices that may differ in each call. Their form takes 20 times as much memory."""

_cached = lru_cache(maxsize=256)(_build)
_cached_long = lru_cache(maxsize=8)(_build)


def _has_fields(model: Any) -> bool:
    if isclass(model) and issubclass(model, BaseModel):
        return not model.__pydantic_root_model__  # RootModel itself costs its import
    return (isclass(model) and is_dataclass(model)) or is_typeddict(model)


def _single_field_type(annotation: Any) -> Any:
    """Return an object type with one field. `X | None` makes it optional: a form cannot answer null."""
    inner = unwrap_alias(annotation)
    inner = unwrap_alias(get_args(inner)[0]) if get_origin(inner) is Annotated else inner
    field = NotRequired[annotation] if NoneType in get_args(inner) else annotation
    record: Any = TypedDict("Answer", {SINGLE_FIELD: field})  # type: ignore[misc]  # dynamic
    return record
