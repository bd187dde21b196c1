"""Types for which pydantic's strict mode accepts exactly the JSON that their JSON Schema accepts.

Most types are exact, except for integers written as 2.0. For the others the JSON Schema itself is checked: a
set has no repeated items, a NamedTuple is not an object, `true` is not 1 in a Literal. A type that this
module does not know is not exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.schema.mcp_header import McpHeader

FieldPath = tuple[str, ...]

_EXACT: Final = frozenset(
    (
        *("any", "none", "bool", "int", "float", "str", "bytes", "json", "url", "multi-host-url"),
        *("date", "time", "datetime", "timedelta", "uuid", "literal", "enum"),
        *("list", "tuple", "deque", "dict", "counter", "ordered-dict"),
        *("model", "model-fields", "model-field", "dataclass", "dataclass-args", "dataclass-field"),
        *("typed-dict", "typed-dict-field", "union", "tagged-union", "nullable", "default"),
        *("definitions", "definition-ref", "chain", "custom-error", "json-or-python", "lax-or-strict"),
        *("function-after", "function-before", "function-wrap", "function-plain"),
    )
)
"""Types of core schemas that are exact unless `_is_exact` finds a reason against it."""

_KEYS: Final = frozenset({"str", "any", "literal", "enum", "date", "datetime", "uuid"})
"""Types of a dict's keys that read the names of a JSON object exactly."""

_WITH_CONFIG: Final = frozenset({"model", "dataclass", "typed-dict"})

_SKIPPED: Final = frozenset(
    (
        *("serialization", "metadata", "config", "computed_fields", "default", "function"),  # hold no schemas
        *("python_schema", "lax_schema", "json_schema_input_schema"),  # do not read JSON strictly
    )
)

_TRANSFORMATIONS: Final = ("strip_whitespace", "to_lower", "to_upper")

_STRING_LIMITS: Final = ("min_length", "max_length", "pattern")

_READ_DIFFERENTLY: Final = (".", *(f"\\{letter}" for letter in "dDsSwWbB"))
"""What pydantic's engine reads differently from ECMA-262 in a pattern."""

_ASSERTIONS: Final = frozenset(
    (
        *("type", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "$ref", "format"),
        *("minLength", "maxLength", "pattern", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"),
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "required"),
        *("minProperties", "maxProperties", "unevaluatedProperties", "dependentRequired", "dependentSchemas"),
    )
)


def strict_mode_is_exact(schema: Mapping[str, Any]) -> bool:
    """Return whether strict validation by a core schema accepts nothing that its JSON Schema refuses.

    Raises DefinitionError for a type that accepts nothing of what its JSON Schema accepts.
    """
    exact = True
    waiting: list[tuple[Mapping[str, Any], FieldPath, bool]] = [(schema, (), False)]
    while waiting:  # all of them: a later type may be an error
        node, path, transforms = waiting.pop()
        if node["type"] in _WITH_CONFIG:
            config = node.get("config") or {}
            transforms = any(config.get(f"str_{name}") for name in _TRANSFORMATIONS)
        exact = _is_exact(node, path, transforms) and exact
        waiting += [(child, here, transforms) for child, here in _children(node, path)]
    return exact


def _children(schema: Mapping[str, Any], path: FieldPath) -> Iterator[tuple[Mapping[str, Any], FieldPath]]:
    for keyword, value in schema.items():
        if keyword in _SKIPPED:
            continue
        if _is_schema(value):
            yield value, path
        elif isinstance(value, dict):  # fields by name, alternatives by tag
            for name, member in value.items():
                if _is_schema(member):
                    yield member, (*path, name) if keyword == "fields" else path
        elif isinstance(value, list):
            for item in value:
                member = item[0] if isinstance(item, tuple) else item  # an alternative with its label
                if _is_schema(member):
                    yield member, (*path, member["name"]) if keyword == "fields" else path


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _is_exact(schema: Mapping[str, Any], path: FieldPath, transforms: bool) -> bool:
    kind = schema["type"]
    if kind == "is-subclass":
        raise DefinitionError(f"{_named(path)}: JSON cannot hold a class; write a Literal of names")
    if kind == "is-instance" and issubclass(schema["cls"], Enum):
        raise DefinitionError(f"{_named(path)}: Enum has no members; write an enumeration that has some")
    if kind not in _EXACT or not has_pydantics_schema(schema):
        return False
    if kind == "literal":
        return _is_exact_literal(schema["expected"], path)
    if kind == "enum":
        return _has_listed_values_only(schema["cls"]) and all(
            isinstance(each.value, str) for each in schema["members"]
        )
    if kind == "str":
        limited = transforms and any(limit in schema for limit in _STRING_LIMITS)
        pattern = str(schema.get("pattern", ""))
        is_alike = not any(each in pattern for each in _READ_DIFFERENTLY)
        return is_alike and not limited and not any(schema.get(name) for name in _TRANSFORMATIONS)
    if kind == "bytes":
        return not any(limit in schema for limit in _STRING_LIMITS)
    if kind in ("dict", "counter", "ordered-dict"):
        return schema.get("keys_schema", {"type": "any"})["type"] in _KEYS
    if kind == "tagged-union":
        return isinstance(schema["discriminator"], str) and all(
            isinstance(tag, str) for tag in schema["choices"]
        )
    if kind == "model":
        return not schema.get("custom_init")  # an __init__ of the author's validates again, not strictly
    if kind in ("function-before", "function-wrap", "function-plain"):
        return _is_pydantics(schema["function"]["function"])
    return _has_one_name(schema.get("validation_alias"), path)


def _has_listed_values_only(enumeration: type[Enum]) -> bool:
    """Return whether it keeps Enum's `_missing_`; another one may return a member for any value."""
    own: Any = enumeration._missing_
    return own.__func__ is Enum._missing_.__func__  # type: ignore[attr-defined]  # typed as a function


def _is_exact_literal(expected: Sequence[Any], path: FieldPath) -> bool:
    unreadable = [each for each in expected if not isinstance(each, (str, int, type(None)))]
    if unreadable:
        meant = "the enumeration itself" if isinstance(unreadable[0], Enum) else "a Literal of strings"
        raise DefinitionError(
            f"{_named(path)}: JSON cannot hold {unreadable[0]!r}; write {meant}, or Literal of its value"
        )
    return all(isinstance(each, (str, type(None))) for each in expected)


def _has_one_name(alias: Any, path: FieldPath) -> bool:
    if alias is None or isinstance(alias, str):
        return True
    paths = alias if isinstance(alias[0], list) else [alias]
    if not any(len(each) == 1 for each in paths):
        raise DefinitionError(f"{_named(path)}: an alias is a name here, not a path; write Field(alias=...)")
    return False


def _named(path: FieldPath) -> str:
    return f"member {'.'.join(path)!r}" if path else "the type"


def has_pydantics_schema(schema: Mapping[str, Any]) -> bool:
    """Return whether pydantic wrote the JSON Schema, without assertions that the author added or replaced."""
    if metadata := schema.get("metadata"):
        for name in ("pydantic_js_functions", "pydantic_js_annotation_functions"):
            if not all(map(_is_pydantics, metadata.get(name, ()))):
                return False
        if _asserts(metadata.get("pydantic_js_updates")) or _asserts(metadata.get("pydantic_js_extra")):
            return False
    if schema["type"] not in _WITH_CONFIG:
        return True
    cls = schema.get("cls")
    config = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    return not _asserts(config.get("json_schema_extra"))


def _asserts(extra: Any) -> bool:
    return callable(extra) or (isinstance(extra, Mapping) and not _ASSERTIONS.isdisjoint(extra))


def _is_pydantics(function: Any) -> bool:
    """Return whether pydantic wrote a function: its validators accept no JSON that its schema refuses."""
    if isinstance(getattr(function, "__self__", None), McpHeader):
        return True
    while isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", None) or ""
    return module.startswith("pydantic.") and module != "pydantic.json_schema"  # that of WithJsonSchema
