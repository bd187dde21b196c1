"""Checks of the members of content blocks, resource contents and definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, get_args

from mcp_roundtrip.canonical import parse_json
from mcp_roundtrip.content.block_base import check_text
from mcp_roundtrip.errors import UsageError

Member = tuple[str, Callable[[Any], bool]]
"""What a member must be, in words, and the check."""


def check_types(holder: Any, **kinds: Any) -> None:
    """Raise UsageError for a member of `holder` that is not of its type, a class or a union of classes.

    Also for text with half of a surrogate pair, which UTF-8 cannot encode, and an invalid `mime_type`.
    """
    for name, kind in kinds.items():
        value = getattr(holder, name)
        if not isinstance(value, kind):
            expected = " or ".join(each.__name__ for each in get_args(kind) or [kind])
            raise UsageError(f"{type(holder).__name__}.{name} must be {expected.replace('NoneType', 'None')}")
        if isinstance(value, str):
            check_text(f"{type(holder).__name__}.{name}", value)
        if name == "mime_type" and value is not None:
            check_media_type(f"{type(holder).__name__}.{name}", value)


def check_size(where: str, size: Any) -> None:
    """Raise UsageError for a size that is neither None nor a number of bytes."""
    if size is not None and (type(size) is not int or not 0 <= size < 2**53):  # of a JavaScript client
        raise UsageError(f"{where} must be a whole number of bytes")


def check_url(where: str, url: str) -> None:
    """Raise UsageError for a URL that a client cannot show or must not follow, such as `javascript:`."""
    if re.match("(https?://|data:).", url, re.IGNORECASE) is None:
        raise UsageError(f'{where} must be a URL with its scheme, such as "https://example.com/icon.png"')


def check_media_type(where: str, value: str) -> None:
    """Raise UsageError for text that is no media type (RFC 6838), such as a file's suffix."""
    if re.fullmatch(r"[^\s/;]+/[^\s/;]+(\s*;.*)?", value) is None:
        raise UsageError(f'{where} must be a media type, such as "image/png"')


def check_icons(where: str, icons: Any) -> None:
    """Raise UsageError for `icons` that are neither None nor a list of `Icon` of the specification."""
    if icons is None:
        return
    if not isinstance(icons, (list, tuple)) or not all(map(_has_source, icons)):
        raise UsageError(f"{where} must be a list of mappings, each with src")
    for number, icon in enumerate(icons):
        _check_members(f"{where}[{number}]", icon, _ICON)


def check_annotations(where: str, annotations: Any, *, of_tool: bool = False) -> None:
    """Raise UsageError for what is neither None nor `Annotations` or `ToolAnnotations`."""
    if annotations is None:
        return
    if not isinstance(annotations, Mapping):
        raise UsageError(f"{where} must be a mapping")
    _check_members(where, annotations, _TOOL_ANNOTATIONS if of_tool else _ANNOTATIONS)


def _check_members(where: str, given: Mapping[str, Any], members: Mapping[str, Member]) -> None:
    for name, value in given.items():
        if name in members:
            expected, accepts = members[name]
            if not accepts(value):
                raise UsageError(f"{where}.{name} must be {expected}")


def _has_source(icon: Any) -> bool:
    return isinstance(icon, Mapping) and "src" in icon


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_time(value: Any) -> bool:
    """Return whether a value is an ISO 8601 time with a zone, which official clients require."""
    text = value.isoformat() if isinstance(value, datetime) else value
    if not isinstance(text, str) or re.fullmatch(_TIME, text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:  # the 13th month
        return False
    return True


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value))


def _are_roles(value: Any) -> bool:
    return _are_texts(value) and all(each in _ROLES for each in value)


def _is_priority(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)"
_ROLES: Final = ("user", "assistant")

_TEXT: Final[Member] = ("text", _is_text)
_ICON: Final[Mapping[str, Member]] = {
    "src": _TEXT,
    "mimeType": _TEXT,
    "sizes": ('a list of texts, such as "48x48"', _are_texts),
    "theme": ('"light" or "dark"', lambda value: value in ("light", "dark")),
}
_TOOL_ANNOTATIONS: Final[Mapping[str, Member]] = {
    "title": _TEXT,
    **dict.fromkeys(
        ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"), ("True or False", _is_boolean)
    ),
}
_ANNOTATIONS: Final[Mapping[str, Member]] = {
    "audience": ('a list of "user" and "assistant"', _are_roles),
    "priority": ("a number from 0 to 1", _is_priority),
    "lastModified": ("a time with a zone, such as 2026-07-28T14:30:00Z", _is_time),
}
"""Members of `Icon`, `ToolAnnotations` and `Annotations` of the specification. Others may have any type."""


def member_to_json(holder: Any, name: str) -> Any:
    """Return the attribute `name` of `holder`, a mapping or None, as JSON. Raises UsageError."""
    return mappings_to_json(f"{type(holder).__name__}.{name}", getattr(holder, name))


def mappings_to_json(where: str, value: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> Any:
    """Return a mapping, a list of mappings or None as JSON. Raises UsageError if it is not JSON."""
    if value is None:
        return None
    plain = dict(value) if isinstance(value, Mapping) else list(map(dict, value))
    try:
        return parse_json(json.dumps(plain, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        return _to_json(where, plain)


def _to_json(where: str, plain: Any) -> Any:
    from mcp_roundtrip.schema.type_adapters import to_json  # a front door has no pydantic

    try:
        return to_json(plain)[0]
    except ValueError:
        from mcp_roundtrip.schema.json_errors import locate_unserializable  # for errors only

        raise UsageError(f"{where} must be JSON{locate_unserializable(plain, where)}") from None
