"""The core schemas of pydantic: iteration, changed copies, and their definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

CoreSchema = Mapping[str, Any]

_WITHOUT_SCHEMAS: Final = frozenset(
    {"metadata", "serialization", "config", "default", "expected", "members", "computed_fields", "function"}
)
"""Members of core schemas that contain no schemas for validation."""

_MEMBERS_BY_NAME: Final = frozenset({"fields", "choices"})
"""Members of core schemas that map names, which the author chose, to schemas."""


def children(schema: CoreSchema) -> Iterator[tuple[str, CoreSchema]]:
    """Yield the schemas directly in the schema, those of fields with the name of the field."""
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

    `change` gets the copy of a schema with its inner ones replaced, and the schema itself.
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
    """Return the definitions of a schema by their references."""
    return {each["ref"]: each for each in schema.get("definitions", ()) if "ref" in each}


def _references(schema: CoreSchema) -> set[str]:
    return {node["schema_ref"] for node in nodes(schema) if node["type"] == "definition-ref"}


def reachable_definitions(schema: CoreSchema, definitions: Mapping[str, CoreSchema]) -> set[str]:
    """Return the definitions that a schema uses, directly or not."""
    found: set[str] = set()
    waiting = _references(schema)
    while waiting := waiting - found:
        found |= waiting
        waiting = {ref for each in waiting for ref in _references(definitions[each])}
    return found


def name_of_type(schema: CoreSchema) -> str:
    """Return the name of the class or the type alias that a definition describes."""
    return getattr(schema.get("cls"), "__name__", None) or str(schema["ref"]).partition(":")[0]
