"""Encode log lines and audit records as JSON that fits into a log event of CloudWatch."""

from __future__ import annotations

from collections.abc import Mapping
from json import JSONEncoder
from typing import Any, Final

MAX_LINE_BYTES: Final = 200_000
"""The limit of a line. CloudWatch Logs accepted 256 KB until April 2025, and accepts 1 MB since."""

_MAX_TEXTS: Final = (512, 64)
"""Bytes to which the texts of a member are cut if the line is too long, and if it still is."""

_MAX_ITEMS: Final = 100
_MAX_LEVELS: Final = 3
_MAX_MEMBER: Final = 1_000

# ASCII, so that characters are bytes.
_JSON: Final = JSONEncoder(separators=(",", ":"), default=str)


def encode_line(line: Mapping[str, Any]) -> str:
    """Return a line as JSON of at most MAX_LINE_BYTES bytes.

    If it has more, its largest members are cut until it fits: texts and lists to their beginnings, which end
    with their full size. The member `uncut_bytes` has the size of the whole line.
    """
    text = _JSON.encode(line)
    if len(text) <= MAX_LINE_BYTES:
        return text
    members = {**line, "uncut_bytes": len(text)}
    sizes = {name: len(_JSON.encode(value)) for name, value in line.items()}
    largest = sorted(line, key=lambda name: sizes[name], reverse=True)
    for name, limit in ((name, limit) for limit in _MAX_TEXTS for name in largest):
        members[name] = _cut(line[name], limit)
        text = _JSON.encode(members)
        if len(text) <= MAX_LINE_BYTES:
            return text
    omitted = {name: f"[{sizes[name]} bytes]" for name in largest if sizes[name] > _MAX_MEMBER}
    return _JSON.encode({**members, **omitted})


def _cut(value: Any, limit: int, levels: int = _MAX_LEVELS) -> Any:
    """Return JSON data with at most `limit` bytes of each text, and the first items of lists and objects."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple, Mapping)):
        if not levels:
            return f"[{len(_JSON.encode(value))} bytes]"
        more = len(value) - _MAX_ITEMS
        if isinstance(value, Mapping):
            names = [*value][:_MAX_ITEMS]
            kept = {_cut(str(name), limit): _cut(value[name], limit, levels - 1) for name in names}
            return {**kept, **({"...": f"[{more} more]"} if more > 0 else {})}
        items = [_cut(item, limit, levels - 1) for item in value[:_MAX_ITEMS]]
        return [*items, *([f"...[{more} more]"] if more > 0 else [])]
    text = str(value)
    size = len(_JSON.encode(text)) - 2
    if size <= limit:
        return text
    kept_text, used = "", 0
    for character in text:
        used += len(_JSON.encode(character)) - 2
        if used > limit:
            break
        kept_text += character
    return f"{kept_text}...[{size} bytes]"
