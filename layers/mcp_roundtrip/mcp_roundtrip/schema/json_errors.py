"""Messages that locate the part of a value that JSON cannot hold, for values that failed to serialize."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from mcp_roundtrip.protocol.canonical import MAX_DEPTH
from mcp_roundtrip.schema.problem_texts import format_location
from mcp_roundtrip.schema.type_adapters import members, to_json


def locate_unserializable(value: Any, root: str) -> str:
    """Return `, at root.a[0]: Thing` for the first, innermost value that JSON cannot hold, or "" for JSON.

    Only the type of that value is named.
    """
    if _is_json(value):
        return ""
    path: list[str | int] = []
    while len(path) < MAX_DEPTH:  # a value may contain itself
        step = next(((at, member) for at, member in _members(value) if not _is_json(member)), None)
        if step is None:
            break
        path.append(step[0])
        value = step[1]
    return f", at {format_location(root, path)}: {_describe(value)}"


def _describe(value: Any) -> str:
    if isinstance(value, float):
        return "NaN or Infinity"
    if isinstance(value, str):
        return "half of a surrogate pair"
    if isinstance(value, Mapping) and not all(map(_is_json, filter(_is_text, value))):
        return "half of a surrogate pair in a name"
    return type(value).__name__


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_json(value: Any) -> bool:
    try:
        to_json(value)
    except Exception:  # an author's serializer may raise anything
        return False
    return True


def _members(value: Any) -> Iterable[tuple[str | int, Any]]:
    return [] if isinstance(value, Set) else [(_path_step(name), member) for name, member in members(value)]


def _path_step(name: Any) -> str | int:
    if isinstance(name, str):
        return name if _is_json(name) else "\ufffd"
    return name if isinstance(name, int) else type(name).__name__
