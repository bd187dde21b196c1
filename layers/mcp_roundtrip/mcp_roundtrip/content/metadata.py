"""Metadata that an author passes to a decorator, and that the server's lists contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.content.block_base import check_text
from mcp_roundtrip.content.member_checks import (
    check_annotations,
    check_icons,
    check_media_type,
    check_size,
    check_url,
    mappings_to_json,
)
from mcp_roundtrip.errors import DefinitionError, UsageError

_PARAMETERS: Final = {"_meta": "meta", "mimeType": "mime_type", "websiteUrl": "website_url"}
"""Member -> name of the decorator's parameter, where they differ."""


def metadata_members(kind: str, name: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `given` as JSON; its names are those of the specification.

    `kind` and `name` are those of the feature, for messages. Raises DefinitionError for a value that cannot
    be listed.
    """
    try:
        return {
            member: _to_json(kind, member, _PARAMETERS.get(member, member), value)
            for member, value in given.items()
        }
    except UsageError as error:
        whose = kind if name is None else f"{kind} {name}"
        raise DefinitionError(f"{whose}: {error}") from None


def _to_json(kind: str, member: str, parameter: str, value: Any) -> Any:
    if member == "size":
        check_size(parameter, value)
        return value
    if member == "icons":
        check_icons(parameter, value)
        for number, icon in enumerate(value):
            check_url(f"{parameter}[{number}].src", icon["src"])
        return mappings_to_json(parameter, value)
    if member == "annotations":
        check_annotations(parameter, value, of_tool=kind == "tool")
        return mappings_to_json(parameter, value)
    if member == "_meta":
        if not isinstance(value, Mapping):
            raise UsageError(f"{parameter} must be a mapping")
        return mappings_to_json(parameter, value)
    if not isinstance(value, str):
        raise UsageError(f"{parameter} must be str")
    check_text(parameter, value)
    if member == "websiteUrl":
        check_url(parameter, value)
    if member == "mimeType":
        check_media_type(parameter, value)
    return value
