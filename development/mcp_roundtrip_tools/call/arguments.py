"""The arguments of a call: a JSON object, or `name=value` with values read by the tool's schema."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from mcp_roundtrip_tools.call.errors import usage_error
from mcp_roundtrip_tools.call.fields import UNSET, Field, fields_of


def split_words(text: str) -> list[str]:
    """Return the words of ARGS, as a shell splits them; a JSON object is one word. Raises CallFailed."""
    if text.lstrip().startswith("{"):
        return [text.strip()]
    try:
        return shlex.split(text)
    except ValueError as error:
        raise usage_error(f"ARGS cannot be split into words: {error}.") from None


def read_arguments(words: Sequence[str], input_schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in words. Raises CallFailed."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _object(words[0])
    fields = {field.name: field for field in fields_of(input_schema)}
    found: dict[str, Any] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator:
            raise usage_error(f"{word!r} is neither name=value nor a JSON object.")
        field = fields.get(name)
        # Only a schema for further properties shows that a tool takes them; otherwise it is a misspelling.
        if field is None and not isinstance(input_schema.get("additionalProperties"), dict):
            raise usage_error(_unknown(name, fields))
        value = _read(field or Field(name, {}, True), text)
        if value is not UNSET:
            found[name] = value
    return found


def missing_fields(given: Mapping[str, Any], input_schema: Mapping[str, Any]) -> list[Field]:
    """Return the required arguments that are not given."""
    return [field for field in fields_of(input_schema) if field.is_required and field.name not in given]


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise usage_error(f"The arguments are not JSON: {error}.") from None
    assert isinstance(value, dict)  # it begins with a brace
    return value


def _read(field: Field, text: str) -> Any:
    try:
        return field.read(text)
    except ValueError as error:
        raise usage_error(f"The argument {field.name} {error}.") from None


def _unknown(name: str, fields: Mapping[str, Field]) -> str:
    nearest = get_close_matches(name, fields, 1)
    if not fields:
        return f"The tool takes no arguments: remove {name}."
    hint = f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(fields)}."
    return f"The tool has no argument {name}; {hint}"
