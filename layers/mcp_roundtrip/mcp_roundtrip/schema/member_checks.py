"""Checks of the members of content blocks, resource contents and definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.schema.block_base import check_text
from mcp_roundtrip.schema.type_adapters import to_json


def check_types(holder: Any, **kinds: Any) -> None:
    """Raise UsageError for a member of `holder` that is not of its type, a class or a union of classes.

    Also for text with half of a surrogate pair, which UTF-8 cannot encode.
    """
    for name, kind in kinds.items():
        value = getattr(holder, name)
        if not isinstance(value, kind):
            expected = " or ".join(each.__name__ for each in get_args(kind) or [kind])
            raise UsageError(f"{type(holder).__name__}.{name} must be {expected.replace('NoneType', 'None')}")
        if isinstance(value, str):
            check_text(f"{type(holder).__name__}.{name}", value)


def check_size(where: str, size: Any) -> None:
    """Raise UsageError for a size that is neither None nor a number of bytes."""
    if size is not None and (type(size) is not int or size < 0):
        raise UsageError(f"{where} must be a whole number of bytes")


def check_icons(where: str, icons: Any) -> None:
    """Raise UsageError for `icons` that are neither None nor mappings with `src`."""
    if icons is None:
        return
    if not isinstance(icons, (list, tuple)) or not all(map(_is_icon, icons)):
        raise UsageError(f"{where} must be a list of mappings, each with src")


def _is_icon(icon: Any) -> bool:
    return isinstance(icon, Mapping) and isinstance(icon.get("src"), str)


def member_to_json(holder: Any, name: str) -> Any:
    """Return the attribute `name` of `holder`, a mapping or None, as JSON. Raises UsageError."""
    return mappings_to_json(f"{type(holder).__name__}.{name}", getattr(holder, name))


def mappings_to_json(where: str, value: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> Any:
    """Return a mapping, a list of mappings or None as JSON. Raises UsageError if it is not JSON."""
    if value is None:
        return None
    plain = dict(value) if isinstance(value, Mapping) else list(map(dict, value))
    try:
        return to_json(plain)[0]
    except ValueError:
        from mcp_roundtrip.schema.json_errors import locate_unserializable  # for errors only

        raise UsageError(f"{where} must be JSON{locate_unserializable(plain, where)}") from None
