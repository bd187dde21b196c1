"""Lenient arguments: models write lists, objects and numbers as JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.protocol.canonical import count_json_values, parse_json
from mcp_roundtrip.schema.json_schema_errors import ValuePath, explain

if TYPE_CHECKING:
    from mcp_roundtrip.schema.json_schema_validator import SchemaValidator

MAX_CONVERSIONS: Final = 1_000
MAX_PARSED_VALUES: Final = 20_000

_PASSES: Final = 3
"""JSON in JSON text: a model may write an object as text whose members are text again."""


def with_parsed_json(validator: SchemaValidator, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an invalid object with JSON data in place of texts that hold it and that the schema refuses.

    A text that holds a text, or no JSON, stays. The result may be invalid.
    """
    changed = deepcopy(dict(value))
    left = MAX_PARSED_VALUES
    for _ in range(_PASSES):
        before = left
        for path in [path for path, _ in islice(explain(validator, changed), MAX_CONVERSIONS)]:
            left -= _parse_at(changed, path, left)
        if left == before:
            break
    return changed


def _parse_at(value: Any, path: ValuePath, limit: int) -> int:
    """Replace the text at a path by the JSON data in it. Return how many values it has, at most `limit`."""
    try:
        *steps, last = path
        for step in steps:
            value = value[step]
        text = value[last]
        parsed = parse_json(text, max_values=limit) if isinstance(text, str) else text
    except (KeyError, ValueError):  # the root; a missing member; text that holds no JSON
        return 0
    if not isinstance(text, str) or isinstance(parsed, str):
        return 0
    value[last] = parsed
    return count_json_values(text, limit)
