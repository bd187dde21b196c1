"""Content blocks of a tool's result (server/tools, "Tool Result").

Creating a block raises UsageError for a member of another type. `to_wire` raises it for `annotations`,
`icons` and `meta` (sent as `_meta`) that are not JSON.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.schema.type_adapters import to_json

_TEXT: Final = str | None
_OBJECT: Final = Mapping | None


@dataclass(frozen=True, slots=True)
class Text:
    """Text for the model."""

    text: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_types(self, text=str, annotations=_OBJECT, meta=_OBJECT)

    def to_wire(self) -> dict[str, Any]:
        """Return `TextContent`."""
        return _present(type="text", text=self.text, **_annotations_and_meta(self))


@dataclass(frozen=True, slots=True)
class Image:
    """An image, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_types(self, data=bytes, mime_type=str, annotations=_OBJECT, meta=_OBJECT)

    def to_wire(self) -> dict[str, Any]:
        """Return `ImageContent`."""
        return _media("image", self)


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_types(self, data=bytes, mime_type=str, annotations=_OBJECT, meta=_OBJECT)

    def to_wire(self) -> dict[str, Any]:
        """Return `AudioContent`."""
        return _media("audio", self)


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource the client may fetch; `size` is in bytes, `icons` are mappings with `src`."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None
    title: str | None = None
    size: int | None = None
    icons: Sequence[Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        check_types(self, uri=str, name=str, annotations=_OBJECT, meta=_OBJECT)
        check_types(self, description=_TEXT, mime_type=_TEXT, title=_TEXT)
        check_size("ResourceLink.size", self.size)
        check_icons("ResourceLink.icons", self.icons)

    def to_wire(self) -> dict[str, Any]:
        """Return `ResourceLink`."""
        return _present(
            type="resource_link",
            uri=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mimeType=self.mime_type,
            size=self.size,
            icons=mappings_to_json("ResourceLink.icons", self.icons),
            **_annotations_and_meta(self),
        )


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """A resource with its contents: exactly one of `text` and `blob`, or UsageError is raised."""

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            raise UsageError("EmbeddedResource has both text and blob, or neither; pass one of them")
        check_types(self, uri=str, text=_TEXT, blob=bytes | None, mime_type=_TEXT)
        check_types(self, annotations=_OBJECT, meta=_OBJECT)

    def to_wire(self) -> dict[str, Any]:
        """Return `EmbeddedResource`."""
        resource = _present(
            uri=self.uri,
            mimeType=self.mime_type,
            text=self.text,
            blob=None if self.blob is None else _base64(self.blob),
        )
        return _present(type="resource", resource=resource, **_annotations_and_meta(self))


BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)
"""Every kind of content block."""


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


def check_text(where: str, text: str) -> None:
    """Raise UsageError for half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{where} must be text without half of a surrogate pair") from None


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


def _annotations_and_meta(block: Any) -> dict[str, Any]:
    return {"annotations": member_to_json(block, "annotations"), "_meta": member_to_json(block, "meta")}


def _media(kind: str, media: Image | Audio) -> dict[str, Any]:
    return _present(
        type=kind, data=_base64(media.data), mimeType=media.mime_type, **_annotations_and_meta(media)
    )


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
