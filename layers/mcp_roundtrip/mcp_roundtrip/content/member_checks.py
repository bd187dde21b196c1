"""Members of content blocks, resource contents and definitions: their types, and their JSON.

Members have the types that the specification has for `Annotations`, `Icon` and the others. A block and a
decorator have Python's names for them, such as `mime_type`.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any, Final

from mcp_roundtrip.content.tool_results import check_text
from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.protocol.canonical import parse_json

_WIRE: Final = {"meta": "_meta", "mime_type": "mimeType", "website_url": "websiteUrl"}
"""Python's name of a member -> that of the specification, where they differ."""

_PYTHON: Final = {wire: name for name, wire in _WIRE.items()}

Member = tuple[str, Callable[[Any], bool]]
"""What a member must be, in words, and the check."""


def definition_members(kind: str, name: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of members of a definition as JSON. Their names are those of the specification.

    `kind` and `name` are those of the feature, for messages. Raises DefinitionError for a value that cannot
    be listed.
    """
    try:
        return {
            member: _checked(_PYTHON.get(member, member), value, kind == "tool")
            for member, value in given.items()
        }
    except UsageError as error:
        whose = kind if name is None else f"{kind} {name}"
        raise DefinitionError(f"{whose}: {error}") from None


def _checked(name: str, value: Any, of_tool: bool) -> Any:
    _check(name, name, value, of_tool=of_tool)
    return _to_json(name, value)


def check_members(holder: Any) -> None:
    """Raise UsageError for a member of a dataclass that has another type. None is the default of some."""
    for each in fields(holder):
        value = getattr(holder, each.name)
        if value is not None or each.default is MISSING:
            _check(f"{type(holder).__name__}.{each.name}", each.name, value)


def members_to_json(holder: Any) -> dict[str, Any]:
    """Return the members of a dataclass that are not None as JSON. Raises UsageError."""
    given = {each.name: getattr(holder, each.name) for each in fields(holder)}
    return {
        _WIRE.get(name, name): _to_json(f"{type(holder).__name__}.{name}", value)
        for name, value in given.items()
        if value is not None
    }


def _check(where: str, name: str, value: Any, *, of_tool: bool = False) -> None:
    match name:
        case "size":
            if type(value) is not int or not 0 <= value < 2**53:  # of a JavaScript client
                raise UsageError(f"{where} must be a whole number of bytes")
        case "data" | "blob":
            if not isinstance(value, bytes):
                raise UsageError(f"{where} must be bytes")
        case "icons":
            _check_icons(where, value)
        case "meta" | "annotations":
            if not isinstance(value, Mapping):
                raise UsageError(f"{where} must be a mapping")
            if name == "annotations":
                _check_table(where, value, _TOOL_ANNOTATIONS if of_tool else _ANNOTATIONS)
        case _:
            _check_str(where, name, value)


def _check_str(where: str, name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{where} must be str")
    check_text(where, value)
    if name == "website_url":
        _check_url(where, value)
    if name == "mime_type" and re.fullmatch(r"[^\s/;]+/[^\s/;]+(\s*;.*)?", value) is None:  # RFC 6838
        raise UsageError(f'{where} must be a media type, such as "image/png"')


def _check_icons(where: str, icons: Any) -> None:
    if not isinstance(icons, (list, tuple)) or not all(map(_has_source, icons)):
        raise UsageError(f"{where} must be a list of mappings, each with src")
    for number, icon in enumerate(icons):
        _check_table(f"{where}[{number}]", icon, _ICON)
        _check_url(f"{where}[{number}].src", icon["src"])


def _has_source(icon: Any) -> bool:
    return isinstance(icon, Mapping) and "src" in icon


def _check_url(where: str, url: str) -> None:
    """Raise UsageError for a URL that a client cannot show or must not follow, such as `javascript:`."""
    if re.match("(https?://|data:).", url, re.IGNORECASE) is None:
        raise UsageError(f'{where} must be a URL with its scheme, such as "https://example.com/icon.png"')


def _check_table(where: str, given: Mapping[str, Any], members: Mapping[str, Member]) -> None:
    for name, value in given.items():
        if name in members:
            expected, accepts = members[name]
            if not accepts(value):
                raise UsageError(f"{where}.{name} must be {expected}")


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


def _to_json(where: str, value: Any) -> Any:
    """Return a checked member as JSON: Base64 for bytes, and copies of mappings. Raises UsageError."""
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, (str, int)):
        return value
    plain = dict(value) if isinstance(value, Mapping) else list(map(dict, value))
    try:
        return parse_json(json.dumps(plain, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        return _values_to_json(where, plain)


def _values_to_json(where: str, plain: Any) -> Any:
    from mcp_roundtrip.schema.type_adapters import (  # a front door has no pydantic
        locate_unserializable,
        to_json,
    )

    try:
        return to_json(plain)[0]
    except ValueError:
        raise UsageError(f"{where} must be JSON{locate_unserializable(plain, where)}") from None
