"""Lenient arguments: models write lists, objects and numbers as JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.protocol.canonical import count_json_values, parse_json, with_exact_integers
from mcp_roundtrip.schema.json_schema_errors import MAX_EXPLANATION_WORK, Explanation, ValuePath

if TYPE_CHECKING:
    from mcp_roundtrip.schema.json_schema_validator import SchemaValidator

MAX_CONVERSIONS: Final = 1_000
MAX_PARSED_VALUES: Final = 20_000


def with_parsed_json(validator: SchemaValidator, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an invalid object with JSON data in place of texts that hold it and that the schema refuses.

    A text that holds a text, or no JSON, stays. The result may be invalid. It is explained again after each
    change, until that has taken half a second: a model may write an object as text whose members are text
    again, and of a long input only the first problem is known. An object with half of a surrogate pair cannot
    be explained, so it stays as it is then.
    """
    changed = deepcopy(dict(value))
    work_left, values_left, before = MAX_EXPLANATION_WORK, MAX_PARSED_VALUES, 0
    while values_left != before:
        before = values_left
        explanation = Explanation(validator, work_left)
        try:
            paths = [
                path
                for path, _ in islice(explanation.problems(with_exact_integers(changed)), MAX_CONVERSIONS)
            ]
        except UnicodeEncodeError:
            break
        for path in paths:
            values_left -= _parse_at(changed, path, values_left)
        work_left = explanation.work_left
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
