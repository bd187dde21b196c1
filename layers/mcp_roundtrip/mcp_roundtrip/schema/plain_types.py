"""Types whose serialized values need no check: text, numbers, booleans, and lists, dicts, records of these.

pydantic's serializer refuses a value of another type, so that only a record can lack a member. A core schema
with a constraint, an alias, a serializer or another type is not plain: its JSON Schema is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_roundtrip.schema.strict_mode import has_pydantics_schema

CoreSchema = Mapping[str, Any]

_EVERY: Final = frozenset({"type", "metadata", "ref"})

_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("str", "bool", "int", "float", "none"), _EVERY),
    "nullable": _EVERY | {"schema"},
    "default": _EVERY | {"schema", "default", "default_factory", "default_factory_takes_data"},
    "list": _EVERY | {"items_schema"},
    "dict": _EVERY | {"keys_schema", "values_schema"},
    "model": _EVERY | {"cls", "schema", "config", "custom_init", "root_model"},
    "model-fields": _EVERY | {"fields", "model_name", "computed_fields"},
    "model-field": _EVERY | {"schema"},
    "dataclass": _EVERY | {"cls", "schema", "config", "fields", "frozen", "post_init", "slots"},
    "dataclass-args": _EVERY | {"fields", "dataclass_name", "computed_fields", "collect_init_only"},
    "dataclass-field": _EVERY | {"schema", "name", "init", "kw_only"},
}
"""The members that a plain core schema may have, by its type."""


def is_plain(schema: CoreSchema) -> bool:
    """Return whether what pydantic serializes is valid by the JSON Schema, if it is complete."""
    kind = schema["type"]
    return (
        kind in _MEMBERS
        and schema.keys() <= _MEMBERS[kind]
        and has_pydantics_schema(schema)
        and schema.get("config", {}).keys() <= {"title"}
        and not schema.get("root_model")
        and not schema.get("computed_fields")
        and (kind != "dict" or schema.get("keys_schema", {}).get("type") == "str")
        and (kind != "list" or "items_schema" in schema)
        and all(is_plain(each) for _, each in _children(schema))
    )


def is_complete(schema: CoreSchema, data: Any) -> bool:
    """Return whether no record in serialized data lacks a member. The schema is plain."""
    match schema["type"]:
        case "list":
            return all(is_complete(schema["items_schema"], item) for item in data)
        case "dict":
            return all(is_complete(schema["values_schema"], member) for member in data.values())
        case "model-fields" | "dataclass-args":
            return all(name in data and is_complete(each, data[name]) for name, each in _children(schema))
    return data is None or all(is_complete(each, data) for _, each in _children(schema))


def _children(schema: CoreSchema) -> Iterator[tuple[str, CoreSchema]]:
    """Yield the core schemas in one, with the names of fields."""
    for member in ("schema", "items_schema", "values_schema"):
        if member in schema:
            yield "", schema[member]
    fields = schema.get("fields", ())
    if isinstance(fields, Mapping):  # of a model
        yield from fields.items()
    elif schema["type"] == "dataclass-args":
        yield from ((each["name"], each) for each in fields)
