"""Types for which pydantic alone decides as the JSON Schema does, so that a call needs no JSON Schema.

They are text, numbers, booleans and enumerations of text, and lists, dicts and records of these. A type with
an alias, a validator, a serializer or a format, and any other type, is not plain.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final

from mcp_roundtrip.schema.core_schemas import CoreSchema, children, definitions_of, reachable_definitions
from mcp_roundtrip.schema.mcp_header import McpHeader

_EVERY: Final = frozenset({"type", "metadata", "ref"})
_RECORD: Final = _EVERY | {"cls", "schema", "config"}

_LIMITS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "min_length": lambda value, limit: len(value) >= limit,
    "max_length": lambda value, limit: len(value) <= limit,
}

_WRITTEN: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("bool", "none"), _EVERY),
    **dict.fromkeys(("int", "float"), _EVERY | {"ge", "gt", "le", "lt"}),
    "str": _EVERY | {"min_length", "max_length"},
    "literal": _EVERY | {"expected"},
    "enum": _EVERY | {"cls", "members", "sub_type"},
    "nullable": _EVERY | {"schema"},
    "default": _EVERY | {"schema", "default", "default_factory", "default_factory_takes_data"},
    "list": _EVERY | {"items_schema", "min_length", "max_length"},
    "dict": _EVERY | {"keys_schema", "values_schema"},
    "model": _RECORD | {"custom_init", "root_model"},
    "model-fields": _EVERY | {"fields", "model_name", "computed_fields", "extra_behavior"},
    "model-field": _EVERY | {"schema"},
    "dataclass": _RECORD | {"fields", "frozen", "post_init", "slots"},
    "dataclass-args": _EVERY | {"fields", "dataclass_name", "computed_fields", "collect_init_only"},
    "dataclass-field": _EVERY | {"schema", "name", "init", "kw_only"},
}
"""The members that a plain core schema may have, by its type."""

_READ: Final = {
    **_WRITTEN,
    "any": _EVERY,
    "typed-dict": _EVERY | {"cls", "config", "fields", "computed_fields", "extra_behavior"},
    "typed-dict-field": _EVERY | {"schema", "required"},
    "definitions": _EVERY | {"schema", "definitions"},
    "definition-ref": _EVERY | {"schema_ref"},
}

_ANNOTATIONS: Final = frozenset({"title", "description", "examples", "deprecated"})
"""Keywords of JSON Schema that refuse no value."""


def is_plain_to_read(schema: CoreSchema) -> bool:
    """Return whether pydantic's strict mode reads exactly what the JSON Schema accepts, but for 2.0 as 2."""
    definitions = definitions_of(schema)
    is_recursive = any(
        ref in reachable_definitions(each, definitions) for ref, each in definitions.items()
    )  # each level of an input adds errors
    return not is_recursive and _is_plain(schema, _READ)


def is_plain_to_write(schema: CoreSchema) -> bool:
    """Return whether what pydantic serializes is valid by the JSON Schema if it `conforms`."""
    return _is_plain(schema, _WRITTEN)


def _is_plain(schema: CoreSchema, members: Mapping[str, frozenset[str]]) -> bool:
    kind = schema["type"]
    return (
        kind in members
        and schema.keys() <= members[kind]
        and _is_described_by_pydantic(schema)
        and schema.get("config", {}).keys() <= {"title", "extra_fields_behavior"}
        and "allow"
        not in (schema.get("config", {}).get("extra_fields_behavior"), schema.get("extra_behavior"))
        and not schema.get("root_model")
        and not schema.get("computed_fields")
        and not schema.get("custom_init")
        and all(isinstance(each, str) for each in schema.get("expected", ()))
        and (kind != "enum" or _has_texts_only(schema["cls"]))
        and (kind != "dict" or schema.get("keys_schema", {}).get("type") == "str")
        and (kind not in ("list", "dict") or "items_schema" in schema or "values_schema" in schema)
        and all(_is_plain(each, members) for _, each in children(schema))
    )


def _has_texts_only(enumeration: type[Enum]) -> bool:
    """Return whether an enumeration takes its members' values only; `_missing_` may take others."""
    missing: Any = enumeration._missing_
    is_open = missing.__func__ is not Enum._missing_.__func__  # type: ignore[attr-defined]  # typed as a function
    return not is_open and all(isinstance(each.value, str) for each in enumeration)


def _is_described_by_pydantic(schema: CoreSchema) -> bool:
    """Return whether pydantic wrote the JSON Schema, without assertions that the author added or replaced."""
    metadata = schema.get("metadata", {})
    functions = (
        *metadata.get("pydantic_js_functions", ()),
        *metadata.get("pydantic_js_annotation_functions", ()),
    )
    cls = schema.get("cls") if schema["type"] != "enum" else None
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    added = (
        metadata.get("pydantic_js_updates"),
        metadata.get("pydantic_js_extra"),
        config.get("json_schema_extra"),
    )
    return all(map(_is_pydantics, functions)) and all(map(_only_annotates, added))


def _only_annotates(added: Any) -> bool:
    return added is None or (isinstance(added, Mapping) and added.keys() <= _ANNOTATIONS)


def _is_pydantics(function: Any) -> bool:
    if isinstance(getattr(function, "__self__", None), McpHeader):
        return True  # it adds a keyword that refuses nothing
    while isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", None) or ""
    return module.startswith("pydantic.") and module != "pydantic.json_schema"  # that of WithJsonSchema


def conforms(schema: CoreSchema, data: Any) -> bool:
    """Return whether serialized data is valid. The schema is plain.

    pydantic's serializer refuses values of other types. It checks neither limits, literals nor the members of
    records, and lets null pass everywhere.
    """
    match schema["type"]:
        case "default" | "model" | "dataclass":
            return conforms(schema["schema"], data)
        case "nullable":
            return data is None or conforms(schema["schema"], data)
        case "none":
            return True
        case _ if data is None:
            return False
        case "literal":
            return data in schema["expected"]
        case "model-fields":
            fields = schema["fields"].items()
            return all(name in data and conforms(each["schema"], data[name]) for name, each in fields)
        case "dataclass-args":
            named = ((each["name"], each["schema"]) for each in schema["fields"])
            return all(name in data and conforms(each, data[name]) for name, each in named)
        case "dict":
            return all(conforms(schema["values_schema"], member) for member in data.values())
        case "list" if not all(conforms(schema["items_schema"], item) for item in data):
            return False
    limits = schema.keys() & _LIMITS.keys()
    return not limits or all(_LIMITS[limit](data, schema[limit]) for limit in limits)
