"""The core schemas of pydantic: iteration, changed copies, definitions, options, and which are plain.

A plain type needs no JSON Schema, because pydantic accepts the same values. Plain types are text, numbers,
booleans and enumerations of text, and lists, dicts and records of these, without an alias, a validator, a
serializer or a format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from pydantic_core import to_jsonable_python

from mcp_roundtrip.protocol.strict_json import canonical_json

CoreSchema = Mapping[str, Any]

_WITHOUT_SCHEMAS: Final = frozenset(
    {"metadata", "serialization", "config", "default", "expected", "members", "computed_fields", "function"}
)
"""Members of core schemas that contain no schemas for validation."""

_MEMBERS_BY_NAME: Final = frozenset({"fields", "choices"})
"""Members of core schemas that map names of the author to schemas."""


def children(schema: CoreSchema) -> Iterator[tuple[str, CoreSchema]]:
    """Yield the schemas directly in the schema, with the name of the field, or ""."""
    for member, value in schema.items():
        if member in _WITHOUT_SCHEMAS:
            continue
        is_named = member in _MEMBERS_BY_NAME and isinstance(value, dict)
        each_of = (
            value.items() if is_named else enumerate(value) if isinstance(value, list) else [("", value)]
        )
        for name, each in each_of:
            each = each[0] if isinstance(each, tuple) else each  # a choice of a union with its label
            if isinstance(each, dict) and isinstance(each.get("type"), str):
                yield str(each.get("name", name)) if member == "fields" else "", each


def nodes(schema: CoreSchema) -> Iterator[CoreSchema]:
    """Yield the schema and all schemas in it."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        waiting += (child for _, child in children(node))
        yield node


def transform(schema: Any, change: Callable[[dict[str, Any], CoreSchema], dict[str, Any]]) -> Any:
    """Return a copy of a core schema in which `change` has replaced each schema, the inner ones first.

    `change` takes a copy with the inner ones replaced, and the original.
    """
    if isinstance(schema, (list, tuple)):
        return type(schema)(transform(each, change) for each in schema)
    if not isinstance(schema, dict):
        return schema
    copy = {
        name: value
        if name in _WITHOUT_SCHEMAS
        else {own: transform(each, change) for own, each in value.items()}
        if name in _MEMBERS_BY_NAME and isinstance(value, dict)
        else transform(value, change)
        for name, value in schema.items()
    }
    return change(copy, schema)


def definitions_of(schema: CoreSchema) -> dict[str, CoreSchema]:
    """Return the definitions in a schema by their references."""
    return {each["ref"]: each for each in schema.get("definitions", ())}


def dereference(schema: CoreSchema, definitions: Mapping[str, CoreSchema]) -> CoreSchema:
    """Return the definition that a schema refers to, as for a type that occurs twice, or the schema."""
    return definitions.get(schema.get("schema_ref", ""), schema)


def options_of(schema: CoreSchema) -> list[Any]:
    """Return the values of a `Literal` or an enumeration; none for another type."""
    return schema.get("expected") or [each.value for each in schema.get("members", ())]


def option_json(value: Any, *, is_base64: bool = False) -> bytes:
    """Return the JSON of such a value, as it is advertised. `is_base64`: for bytes, as in a step."""
    bytes_mode: Any = "base64" if is_base64 else "utf8"
    written = to_jsonable_python(value, bytes_mode=bytes_mode, fallback=repr, inf_nan_mode="strings")
    return canonical_json(written)


# -- plain types

_RECORD_MEMBERS: Final = frozenset(
    {
        *("cls", "config", "extra_behavior", "fields", "schema"),
        *("model_name", "dataclass_name", "name", "required", "init", "kw_only", "slots"),
    }
)
_RECORDS: Final = (
    *("model", "model-fields", "model-field"),
    *("dataclass", "dataclass-args", "dataclass-field"),
    *("typed-dict", "typed-dict-field"),
)

_PLAIN: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("any", "bool", "none"), frozenset()),
    **dict.fromkeys(("int", "float"), frozenset({"ge", "gt", "le", "lt"})),
    "str": frozenset({"min_length", "max_length"}),
    "literal": frozenset({"expected"}),
    "enum": frozenset({"cls", "members", "sub_type"}),
    "nullable": frozenset({"schema"}),
    "default": frozenset({"schema", "default", "default_factory"}),
    "list": frozenset({"items_schema", "min_length", "max_length"}),
    "dict": frozenset({"keys_schema", "values_schema"}),
    **dict.fromkeys(_RECORDS, _RECORD_MEMBERS),
    "definitions": frozenset({"schema", "definitions"}),
    "definition-ref": frozenset({"schema_ref"}),
}
"""The members that a plain core schema may have, by its type. Members that are false do not count."""

MAX_PLAIN_FIELDS: Final = 50
MAX_PLAIN_OPTIONS: Final = 1_000
"""Fields of a plain record, and characters of the texts of a plain enumeration.

A short list may have many `{}`, and `{}` has an error of 1 KB for each field. An error has all texts.
"""

_ANNOTATIONS: Final = frozenset({"title", "description", "examples", "deprecated"})
"""Keywords of JSON Schema that refuse no value."""


def is_plain_to_read(schema: CoreSchema) -> bool:
    """Return whether strict mode reads exactly what the JSON Schema accepts, if 2.0 is written 2."""
    inner = [node for each in definitions_of(schema).values() for node in nodes(each)]
    # A definition that refers to another one may be recursive, and each level would add errors.
    is_flat = all(node["type"] != "definition-ref" for node in inner)
    return is_flat and all(map(_is_plain, nodes(schema)))


def is_plain_to_write(schema: CoreSchema) -> bool:
    """Return whether a value is valid by the JSON Schema if strict mode reads its text."""
    return is_plain_to_read(schema) and all(node["type"] != "any" for node in nodes(schema))


def _is_plain(schema: CoreSchema) -> bool:
    kind, config = schema["type"], schema.get("config", {})
    members = {name for name, value in schema.items() if value not in (None, False, [])}
    return (
        kind in _PLAIN
        and members - {"type", "metadata", "ref"} <= _PLAIN[kind]
        and config.keys() <= {"title", "extra_fields_behavior"}
        and "allow" not in (config.get("extra_fields_behavior"), schema.get("extra_behavior"))
        and len(schema.get("fields", ())) <= MAX_PLAIN_FIELDS
        and all(isinstance(each, str) for each in options_of(schema))
        and sum(map(len, options_of(schema))) <= MAX_PLAIN_OPTIONS
        and (kind != "dict" or schema.get("keys_schema", {}).get("type") == "str")
        and (kind != "enum" or not _has_missing(schema["cls"]))
        and (kind != "list" or "items_schema" in schema)
        and _is_described_by_pydantic(schema)
    )


def _has_missing(enumeration: type[Enum]) -> bool:
    """Return whether an enumeration may accept other values than those of its members."""
    missing: Any = enumeration._missing_
    return missing.__func__ is not Enum._missing_.__func__  # type: ignore[attr-defined]  # typed as a function


def _is_described_by_pydantic(schema: CoreSchema) -> bool:
    """Return whether pydantic wrote the JSON Schema, without assertions that the author added or replaced."""
    metadata, cls = schema.get("metadata", {}), schema.get("cls")
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    functions = ("pydantic_js_functions", "pydantic_js_annotation_functions")
    added = [metadata.get(name) for name in ("pydantic_js_updates", "pydantic_js_extra")]
    return all(_is_pydantics(each) for name in functions for each in metadata.get(name, ())) and all(
        each is None or (isinstance(each, Mapping) and each.keys() <= _ANNOTATIONS)
        for each in [*added, config.get("json_schema_extra")]
    )


def _is_pydantics(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module.startswith("pydantic.") and module != "pydantic.json_schema"  # that of WithJsonSchema
