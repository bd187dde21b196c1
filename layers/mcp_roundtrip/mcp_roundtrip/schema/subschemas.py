"""Iteration over the subschemas of a JSON Schema, within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError

# basic/index "Composition-Keyword Resource Use" asks for bounds.
MAX_SCHEMA_DEPTH: Final = 64
MAX_SUBSCHEMAS: Final = 2000

_DATA: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are data, not schemas."""

_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)


def subschemas(root: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every object that may be used as a schema, also under unknown keywords: a `$ref` may point there.

    Raises DefinitionError for a schema that is nested too deeply or has too many subschemas.
    """
    waiting: list[tuple[int, Any]] = [(0, root)]
    count = 0
    while waiting:
        depth, node = waiting.pop()
        if depth > MAX_SCHEMA_DEPTH:
            raise DefinitionError(
                f"the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels; use a flatter one"
            )
        if isinstance(node, list):
            waiting += [(depth + 1, item) for item in node]
        elif isinstance(node, dict):
            count += 1
            if count > MAX_SUBSCHEMAS:
                raise DefinitionError(
                    f"the schema has more than {MAX_SUBSCHEMAS} subschemas; use a smaller one"
                )
            yield node
            for keyword, value in node.items():
                if keyword in _DATA:
                    continue
                # `properties` maps names to schemas: a name "$ref" is not a reference.
                named = keyword in _MAPS and isinstance(value, dict)
                waiting += [(depth + 1, item) for item in (value.values() if named else [value])]
