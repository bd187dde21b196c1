"""Content blocks a tool may return (server/tools, "Tool Result")."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.errors import UsageError


@dataclass(frozen=True, slots=True)
class Text:
    """Text for the model."""

    text: str
    annotations: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """`TextContent`."""
        return _present(type="text", text=self.text, annotations=self.annotations)


@dataclass(frozen=True, slots=True)
class Image:
    """An image, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """`ImageContent`."""
        return _media("image", self.data, self.mime_type, self.annotations)


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """`AudioContent`."""
        return _media("audio", self.data, self.mime_type, self.annotations)


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource the client may fetch."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """`ResourceLink`."""
        return _present(
            type="resource_link",
            uri=self.uri,
            name=self.name,
            description=self.description,
            mimeType=self.mime_type,
            annotations=self.annotations,
        )


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """A resource with its contents: exactly one of `text` and `blob`, else UsageError."""

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            raise UsageError("EmbeddedResource takes exactly one of text and blob")

    def to_wire(self) -> dict[str, Any]:
        """`EmbeddedResource`."""
        resource = _present(
            uri=self.uri,
            mimeType=self.mime_type,
            text=self.text,
            blob=None if self.blob is None else _base64(self.blob),
        )
        return _present(type="resource", resource=resource, annotations=self.annotations)


BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)
"""Every kind of content block."""


def _media(kind: str, data: bytes, mime_type: str, annotations: Mapping[str, Any] | None) -> dict[str, Any]:
    return _present(type=kind, data=_base64(data), mimeType=mime_type, annotations=annotations)


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _present(**members: Any) -> dict[str, Any]:
    return {
        name: dict(value) if name == "annotations" else value
        for name, value in members.items()
        if value is not None
    }
