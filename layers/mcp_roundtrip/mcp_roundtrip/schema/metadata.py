"""What an author declares beside a function: members of the objects that lists send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.schema.content_blocks import as_members, check_icons, check_size, check_text

_PARAMETERS: Final = {"_meta": "meta", "mimeType": "mime_type"}
"""Members that the author's parameter has another name for."""


def members(kind: str, name: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given`, by the names of the specification, as JSON: a copy.

    `kind` and `name` say whose they are. Raises DefinitionError for what could not be listed.
    """
    try:
        return {
            member: _written(member, _PARAMETERS.get(member, member), value)
            for member, value in given.items()
        }
    except UsageError as error:
        whose = kind if name is None else f"{kind} {name}"
        raise DefinitionError(f"{whose}: {error}") from None


def _written(member: str, parameter: str, value: Any) -> Any:
    if member == "size":
        check_size(parameter, value)
        return value
    if member == "icons":
        check_icons(parameter, value)
        return as_members(parameter, value)
    if member in ("annotations", "_meta"):
        if not isinstance(value, Mapping):
            raise UsageError(f"{parameter} must be a mapping")
        return as_members(parameter, value)
    if not isinstance(value, str):
        raise UsageError(f"{parameter} must be str")
    check_text(parameter, value)
    return value
