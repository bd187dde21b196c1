"""Pages of a list, by opaque cursors that need no memory and no key (server/utilities/pagination).

A cursor holds a position and a digest of the list it was given out for. Anyone can make one up, and gains
nothing: what is accepted is exactly what this list gives out, and the pages are there for whoever asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_roundtrip.canonical import digest
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError


def page(kind: str, names: Sequence[str], cursor: Any, size: int) -> tuple[slice, str | None]:
    """The part of a list that a request asks for, and the `nextCursor` if more follows.

    `kind` tells lists apart that may hold the same names ("tools", "prompts"), `names` are those of its
    items in their stable order, `cursor` is the request's (None for the first page), `size` the most items
    of a page. Raises ProtocolError -32602 for a cursor that this list does not give out, ValueError for a
    `size` below 1.
    """
    if size < 1:
        raise ValueError("a page has room for at least one item")
    start = 0 if cursor is None else _position(kind, names, cursor, size)
    end = start + size
    return slice(start, end), _cursor(kind, names, end) if end < len(names) else None


def _position(kind: str, names: Sequence[str], cursor: Any, size: int) -> int:
    if not isinstance(cursor, str):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: cursor must be a string")
    digits = cursor.partition(".")[0]
    position = int(digits) if digits.isdecimal() and len(digits) < 10 else 0
    # Compared with the whole cursor, because int() reads other spellings of a number, too.
    if position not in range(size, len(names), size) or cursor != _cursor(kind, names, position):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: unknown cursor")
    return position


def _cursor(kind: str, names: Sequence[str], position: int) -> str:
    return f"{position}.{digest('cursor', [kind, *names], size=12)}"
