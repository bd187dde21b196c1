"""Content blocks of a tool's result (server/tools, "Tool Result").

Creating a block raises UsageError for a member of another type. `to_wire` raises it for `annotations`,
`icons` and `meta` (sent as `_meta`) that are not JSON.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.content.block_base import ContentBlock
from mcp_roundtrip.content.member_checks import (
    check_annotations,
    check_icons,
    check_size,
    check_types,
    mappings_to_json,
    member_to_json,
)
from mcp_roundtrip.errors import UsageError

_TEXT: Final = str | None
_OBJECT: Final = Mapping | None


@dataclass(frozen=True, slots=True)
class Text(ContentBlock):
    """Text for the model."""

    text: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self, text=str)

    def to_wire(self) -> dict[str, Any]:
        """Return `TextContent`."""
        return _present(type="text", text=self.text, **_annotations_and_meta(self))


@dataclass(frozen=True, slots=True)
class Image(ContentBlock):
    """An image, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self, data=bytes, mime_type=str)

    def to_wire(self) -> dict[str, Any]:
        """Return `ImageContent`."""
        return _media("image", self)


@dataclass(frozen=True, slots=True)
class Audio(ContentBlock):
    """A sound, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _check(self, data=bytes, mime_type=str)

    def to_wire(self) -> dict[str, Any]:
        """Return `AudioContent`."""
        return _media("audio", self)


@dataclass(frozen=True, slots=True)
class ResourceLink(ContentBlock):
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
        _check(self, uri=str, name=str, description=_TEXT, mime_type=_TEXT, title=_TEXT)
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
class EmbeddedResource(ContentBlock):
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
        _check(self, uri=str, text=_TEXT, blob=bytes | None, mime_type=_TEXT)

    def to_wire(self) -> dict[str, Any]:
        """Return `EmbeddedResource`."""
        resource = _present(
            uri=self.uri,
            mimeType=self.mime_type,
            text=self.text,
            blob=None if self.blob is None else _base64(self.blob),
        )
        return _present(type="resource", resource=resource, **_annotations_and_meta(self))


def _check(block: Any, **kinds: Any) -> None:
    """Raise UsageError for a member of another type than these, and for the members that every block has."""
    check_types(block, **kinds, meta=_OBJECT)
    check_annotations(f"{type(block).__name__}.annotations", block.annotations)


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
