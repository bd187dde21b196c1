"""The definition of a tool for clients to which its questions go by fallbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

INPUT_RESPONSES: Final = "input_responses"
"""The argument in which the model passes on the answers of the user."""

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": (
        "What the user answered to the questions of an earlier call, by their keys. Leave it out until a "
        "result asks for it, and never make up an answer: ask the user."
    ),
    "additionalProperties": True,
}


def with_input_responses(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add the optional argument for answers to an `inputSchema`."""
    return {**schema, "properties": {**schema.get("properties", {}), INPUT_RESPONSES: _SCHEMA}}
