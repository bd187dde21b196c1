"""Members of content blocks, resource contents and definitions: their types, and their JSON.

The types are those of the specification, the names in blocks and decorators Python's, such as `mime_type`.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Required, TypedDict

from msgspec import Meta, ValidationError, convert

from mcp_roundtrip.content.tool_results import check_text
from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.protocol.constants import META_KEY, URI_REST, URI_SCHEME
from mcp_roundtrip.protocol.resource_uris import percent_encode
from mcp_roundtrip.protocol.strict_json import parse_json

_WIRE: Final = {"meta": "_meta", "mime_type": "mimeType", "website_url": "websiteUrl"}
"""Python's name of a member -> that of the specification, where they differ."""

_PYTHON: Final = {wire: name for name, wire in _WIRE.items()}


class _Icon(TypedDict, total=False):
    src: Required[str]
    mimeType: str
    sizes: list[str]
    theme: Literal["light", "dark"]


class _Annotations(TypedDict, total=False):
    audience: list[Literal["user", "assistant"]]
    priority: Annotated[float, Meta(ge=0, le=1)]
    lastModified: Any  # see `_check_annotations`


class _ToolAnnotations(TypedDict, total=False):
    title: str
    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool


_MEDIA_TYPE: Final = r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(\s*;\s*[\w.+-]+=\S.*)?"
_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"

_TYPES: Final[Mapping[str, Any]] = {
    "size": Annotated[int, Meta(ge=0, lt=2**53)],  # a JavaScript client reads it
    "icons": list[_Icon],
    "annotations": _Annotations,
    "meta": dict[str, Any],
}
"""Members -> their types. The others are text, or bytes."""


def definition_members(kind: str, name: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return members of a feature's definition, by their names in MCP, as JSON. Raises DefinitionError."""
    checked: dict[str, Any] = {}
    try:
        for member, value in given.items():
            own_name = _PYTHON.get(member, member)
            _check(own_name, own_name, value, of_tool=kind == "tool")
            checked[member] = _to_json(own_name, _in_ascii(own_name, value))
    except UsageError as error:
        whose = kind if name is None else f"{kind} {name}"
        raise DefinitionError(f"{whose}: {error}") from None
    return checked


def check_members(holder: Any) -> None:
    """Raise UsageError for a member of a dataclass that has another type, and for both `text` and `blob`, or
    neither. None is the default of some.
    """
    kind = type(holder).__name__
    if hasattr(holder, "blob") and (holder.text is None) == (holder.blob is None):
        raise UsageError(f"{kind} has both text and blob, or neither; pass one of them")
    for each in fields(holder):
        value = getattr(holder, each.name)
        if value is not None or each.default is MISSING:
            _check(f"{kind}.{each.name}", each.name, value)


def members_to_json(holder: Any) -> dict[str, Any]:
    """Return the members of a dataclass that are not None as JSON. Raises UsageError."""
    given = {each.name: getattr(holder, each.name) for each in fields(holder)}
    return {
        _WIRE.get(name, name): _to_json(f"{type(holder).__name__}.{name}", _in_ascii(name, value))
        for name, value in given.items()
        if value is not None
    }


def _in_ascii(name: str, value: Any) -> Any:
    """Return a member with its URLs in ASCII: their format in the schema is `uri` (RFC 3986)."""
    if name == "icons":
        return [{**icon, "src": percent_encode(icon["src"])} for icon in value]
    return percent_encode(value) if name in ("uri", "website_url") else value


def _check(where: str, name: str, value: Any, *, of_tool: bool = False) -> None:
    if name in ("data", "blob"):
        if not isinstance(value, bytes):
            raise UsageError(f"{where} must be bytes")
        return
    kind = _ToolAnnotations if of_tool and name == "annotations" else _TYPES.get(name, str)
    try:
        convert(_plain(value), kind)
    except ValidationError as error:
        text = str(error).replace("`object`", "`dict`").replace("`array`", "`list`")  # the names in Python
        problem, _, place = text.partition(" - at ")
        path = place.partition("$")[2].rstrip("`")
        what = "a name in " if place.startswith("`key`") else ""
        raise UsageError(f"{what}{where}{path}: {problem}; pass what the specification has there") from None
    except UnicodeEncodeError as error:  # of msgspec
        check_text(where, str(error.object))
    if isinstance(value, str):
        check_text(where, value)
    if name == "mime_type" and re.fullmatch(_MEDIA_TYPE, value, re.ASCII) is None:  # RFC 6838
        raise UsageError(f'{where} must be a media type, such as "image/png"')
    if name == "uri" and re.fullmatch(URI_SCHEME + URI_REST, value) is None:
        raise UsageError(f'{where} must be a percent-encoded URI with its scheme, such as "docs://guide"')
    if name == "meta":
        for key in value:
            if re.fullmatch(META_KEY, key) is None:
                raise UsageError(f"{where} has the name {key!r:.100}; write one such as 'com.example/order'")
    if name == "website_url":
        _check_url(where, value)
    if name == "annotations":
        _check_names(where, value, kind)
    if kind is _Annotations:
        _check_annotations(where, value)
    if name == "icons":
        for number, icon in enumerate(value):
            _check_names(f"{where}[{number}]", icon, _Icon)
            _check_url(f"{where}[{number}].src", icon["src"])


def _check_names(where: str, given: Mapping[str, Any], kind: Any) -> None:
    """Raise UsageError for a name in snake case, or in another case, whose member a client would ignore."""
    names = {wire.lower(): wire for wire in kind.__annotations__}
    for name in given:
        wire = names.get(name.replace("_", "").lower(), name)
        if wire != name:
            raise UsageError(f"{where}.{name} is not a name of the specification; write {wire}")


def _check_annotations(where: str, given: Mapping[str, Any]) -> None:
    """Raise UsageError for a time that clients refuse, and for a Decimal, which msgspec reads as a float."""
    if "lastModified" in given and not _is_time(given["lastModified"]):
        raise UsageError(
            f"{where}.lastModified must be a time with seconds and a zone, such as 2026-07-28T14:30:00Z"
        )
    if not isinstance(given.get("priority", 0), (int, float)):
        raise UsageError(f"{where}.priority must be an int or a float")


def _is_time(value: Any) -> bool:
    """Return whether a value is a time of the format `date-time` (RFC 3339), which clients check."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value) if re.fullmatch(_TIME, value) else None
        except ValueError:
            return False
    return isinstance(value, datetime) and value.tzinfo is not None


def _check_url(where: str, url: str) -> None:
    """Raise UsageError for a URL that a client cannot show or must not follow, such as `javascript:`."""
    if re.fullmatch(f"(?i:https?://|data:){URI_REST}", url) is None:
        raise UsageError(f'{where} must be a percent-encoded URL, such as "https://example.com/icon.png"')


def _plain(value: Any) -> Any:
    """Return a mapping, or each one of a list, as a dict."""
    if isinstance(value, (list, tuple)):
        return [*map(_plain, value)]
    return dict(value) if isinstance(value, Mapping) else value


def _to_json(where: str, value: Any) -> Any:
    """Return a checked member as JSON: Base64 for bytes, and copies of mappings. Raises UsageError."""
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, (str, int)):
        return value
    plain = _plain(value)
    with suppress(TypeError, ValueError, RecursionError):
        return parse_json(json.dumps(plain, ensure_ascii=False, allow_nan=False).encode())
    from mcp_roundtrip.schema import serialization  # a front door has no pydantic

    try:
        return serialization.to_json(plain)[0]
    except ValueError:
        place = serialization.locate_unserializable(plain, where)
        raise UsageError(f"{where} must be JSON{place}") from None
