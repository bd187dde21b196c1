"""Change one character of a state, to see that the server refuses it."""

from __future__ import annotations

from typing import Any, Final

from mcp_roundtrip_tools.console.requests import ConsoleError
from mcp_roundtrip_tools.console.states import MAX_LENGTH

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

PARTS: Final = {
    3: ("header", "claims", "signature"),
    5: ("header", "encrypted key", "initialization vector", "ciphertext", "tag"),
}
"""The names of the parts of a signed and of an encrypted token, by their number."""

_LONGEST: Final = {3: 1, 5: 3}
"""The index of the part that holds the content."""


def flip_one_byte(token: str, position: int | None = None) -> dict[str, Any]:
    """Return the state with another character at `position`, and which part that is. Raises ConsoleError.

    Without a position, the middle of the content is changed. The new character is in the alphabet of
    Base64url, so that the server does not refuse the state for its spelling.
    """
    parts = token.split(".")
    if not token or len(token) > MAX_LENGTH:
        raise ConsoleError(400, f"requestState must have 1 to {MAX_LENGTH} characters")
    if position is None:
        position = _middle(parts)
    if not 0 <= position < len(token):
        raise ConsoleError(400, f"position must be from 0 to {len(token) - 1}")
    before = token[position]
    after = _other(before)
    return {
        "requestState": token[:position] + after + token[position + 1 :],
        "position": position,
        "part": part_at(token, position),
        "before": before,
        "after": after,
    }


def _middle(parts: list[str]) -> int:
    index = _LONGEST.get(len(parts), 0)
    return sum(len(part) + 1 for part in parts[:index]) + len(parts[index]) // 2


def _other(character: str) -> str:
    return _ALPHABET[(_ALPHABET.find(character) + 1) % len(_ALPHABET)]


def part_at(token: str, position: int) -> str | None:
    """Return the name of the part at a position; None for a dot and for a text that is no token."""
    parts = token.split(".")
    names = PARTS.get(len(parts), ())
    start = 0
    for name, part in zip(names, parts, strict=False):
        if start <= position < start + len(part):
            return name
        start += len(part) + 1
    return None
