"""What the keywords of JSON Schema demand, in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final


def _is_number(value: Any) -> bool:
    """Return whether `value` is a JSON number; a Python bool is an int, but not a JSON number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    """Return whether `value` is an integer to JSON Schema, as 2.0 is."""
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "null": ("null", lambda value: value is None),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": ("an integer", _is_integer),
    "number": ("a number", _is_number),
    "string": ("a string", lambda value: isinstance(value, str)),
    "array": ("an array", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
}

WORDS: Final[Mapping[str, str]] = {
    "minLength": "have {} characters or more",
    "maxLength": "have {} characters at most",
    "pattern": "match the pattern {}",
    "format": "have the format {}",
    "minimum": "be {} or more",
    "maximum": "be {} or less",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minItems": "have {} items or more",
    "maxItems": "have {} items at most",
    "uniqueItems": "have no item twice",
    "minProperties": "have {} members or more",
    "maxProperties": "have {} members at most",
}
"""What a keyword demands. Its value refers to no other schema."""

EXAMPLES: Final[Mapping[str, str]] = {
    "date-time": "2026-07-28T14:30:00Z",
    "date": "2026-07-28",
    "time": "14:30:00Z",
    "duration": "PT90M",
}
"""Formats with a value of each."""


def has_type(kinds: Any, value: Any) -> bool:
    """Return whether JSON data has the type, or one of the types, under the keyword `type`."""
    return any(_TYPES[kind][1](value) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def type_names(schema: Mapping[str, Any]) -> str:
    """Return what a schema demands by `enum` or `type`."""
    if "enum" in schema:
        return options_text(schema["enum"])
    kinds = schema.get("type", ())
    names = [_TYPES[kind][0] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return " or ".join(names) or "another value"


def options_text(options: list[Any]) -> str:
    """Return the options of an `enum`, at most 20."""
    return " or ".join(map(quote, options[:20]))


def quote(rule: Any) -> str:
    """Return what a schema has under a keyword as JSON, at most 200 characters."""
    text = json.dumps(rule, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:199]}…"
