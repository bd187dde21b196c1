"""Content blocks a tool may return (server/tools, "Tool Result").

Raises UsageError: a block for a member of another type, its `to_wire` for annotations that are no JSON.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.schema.adapters import as_json

_TEXT: Final = str | None
_ANNOTATIONS: Final = Mapping | None


@dataclass(frozen=True, slots=True)
class Text:
    """Text for the model."""

    text: str
    annotations: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_types(self, text=str, annotations=_ANNOTATIONS)

    def to_wire(self) -> dict[str, Any]:
        """`TextContent`."""
        return _present(type="text", text=self.text, annotations=json_member(self, "annotations"))


@dataclass(frozen=True, slots=True)
class Image:
    """An image, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_types(self, data=bytes, mime_type=str, annotations=_ANNOTATIONS)

    def to_wire(self) -> dict[str, Any]:
        """`ImageContent`."""
        return _media("image", self)


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_types(self, data=bytes, mime_type=str, annotations=_ANNOTATIONS)

    def to_wire(self) -> dict[str, Any]:
        """`AudioContent`."""
        return _media("audio", self)


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource the client may fetch."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_types(self, uri=str, name=str, description=_TEXT, mime_type=_TEXT, annotations=_ANNOTATIONS)

    def to_wire(self) -> dict[str, Any]:
        """`ResourceLink`."""
        return _present(
            type="resource_link",
            uri=self.uri,
            name=self.name,
            description=self.description,
            mimeType=self.mime_type,
            annotations=json_member(self, "annotations"),
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
        check_types(self, uri=str, text=_TEXT, blob=bytes | None, mime_type=_TEXT, annotations=_ANNOTATIONS)

    def to_wire(self) -> dict[str, Any]:
        """`EmbeddedResource`."""
        resource = _present(
            uri=self.uri,
            mimeType=self.mime_type,
            text=self.text,
            blob=None if self.blob is None else _base64(self.blob),
        )
        return _present(type="resource", resource=resource, annotations=json_member(self, "annotations"))


BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)
"""Every kind of content block."""


def check_types(holder: Any, **kinds: Any) -> None:
    """Raise UsageError for a member of `holder` that is not of its kind: a class, or a union of some."""
    for name, kind in kinds.items():
        if not isinstance(getattr(holder, name), kind):
            expected = " or ".join(each.__name__ for each in get_args(kind) or [kind])
            raise UsageError(f"{type(holder).__name__}.{name} must be {expected.replace('NoneType', 'None')}")


def json_member(holder: Any, name: str) -> Any:
    """The mapping that `holder` has as `name`, as JSON, or None. Raises UsageError when it is no JSON."""
    value = getattr(holder, name)
    if value is None:
        return None
    try:
        return as_json(dict(value))[0]
    except ValueError:
        from mcp_roundtrip.schema.places import place  # of use to nobody but the author of a mistake

        root = f"{type(holder).__name__}.{name}"
        raise UsageError(f"{root} must be JSON{place(dict(value), root)}") from None


def _media(kind: str, media: Image | Audio) -> dict[str, Any]:
    annotations = json_member(media, "annotations")
    return _present(type=kind, data=_base64(media.data), mimeType=media.mime_type, annotations=annotations)


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
