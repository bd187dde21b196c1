"""Arguments as models send them: JSON as text where the schema has lists, objects and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from typing import Any, Final

from mcp_roundtrip.protocol.canonical import count_json_values, parse_json
from mcp_roundtrip.schema.explanation import ValuePath, explain
from mcp_roundtrip.schema.schema_validator import SchemaValidator

MAX_CONVERSIONS: Final = 1_000
MAX_JSON_VALUES: Final = 20_000

_PASSES: Final = 3
"""JSON in JSON text: a model may write an object as text whose members are text again."""


def with_parsed_json(validator: SchemaValidator, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return invalid arguments with JSON data in place of texts that hold it and that the schema refuses.

    A text that holds a text, or no JSON, stays. The result may be invalid.
    """
    values_left = MAX_JSON_VALUES
    for _ in range(_PASSES):
        paths = [path for path, _ in islice(explain(validator, arguments), MAX_CONVERSIONS)]
        changed = deepcopy(dict(arguments))
        before = values_left
        for path in paths:
            values_left -= _parse_at(changed, path, values_left)
        if values_left == before:
            break
        arguments = changed
    return arguments


def _parse_at(arguments: Any, path: ValuePath, limit: int) -> int:
    """Replace the text at a path by the JSON data in it. Return how many values it has, at most `limit`."""
    if not path:
        return 0
    for step in path[:-1]:
        arguments = arguments[step]
    try:
        text = arguments[path[-1]]
        value = parse_json(text, max_values=limit) if isinstance(text, str) else None
    except (KeyError, ValueError):  # a missing member; text that holds no JSON
        return 0
    if not isinstance(text, str) or isinstance(value, str):
        return 0
    arguments[path[-1]] = value
    return count_json_values(text, limit)
