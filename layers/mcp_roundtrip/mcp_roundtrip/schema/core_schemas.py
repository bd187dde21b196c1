"""Walk the core schemas of pydantic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

CoreSchema = Mapping[str, Any]

OPAQUE: Final = frozenset(
    {"metadata", "serialization", "config", "default", "expected", "members", "computed_fields", "function"}
)
"""Members of core schemas that hold no schemas for validation."""

NAMED: Final = frozenset({"fields", "choices"})
"""Members of core schemas whose own members have names that the author chose."""


def core_schema_children(schema: CoreSchema) -> Iterator[CoreSchema]:
    """Yield the schemas that stand directly in the schema."""
    for name, value in schema.items():
        if name in OPAQUE:
            continue
        named = name in NAMED and isinstance(value, dict)
        for each in value.values() if named else value if isinstance(value, list) else (value,):
            each = each[0] if isinstance(each, tuple) else each  # a choice of a union with its label
            if isinstance(each, dict) and isinstance(each.get("type"), str):
                yield each


def core_schema_nodes(schema: CoreSchema) -> Iterator[CoreSchema]:
    """Yield the schema and all schemas in it."""
    waiting = [schema]
    while waiting:
        waiting += core_schema_children(node := waiting.pop())
        yield node
