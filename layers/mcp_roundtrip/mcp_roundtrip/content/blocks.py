"""Content blocks of a tool's result (server/tools, "Tool Result").

Creating a block raises UsageError for a member of another type. `to_wire` raises it for `annotations`,
`icons` and `meta` (sent as `_meta`) that are not JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mcp_roundtrip.content.block_base import ContentBlock
from mcp_roundtrip.content.members import check_members, members_to_json
from mcp_roundtrip.errors import UsageError


class _Block(ContentBlock):
    __slots__ = ()
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        check_members(self)

    def to_wire(self) -> dict[str, Any]:
        """Return the block as JSON. Raises UsageError."""
        return {"type": self.kind, **members_to_json(self)}


@dataclass(frozen=True, slots=True)
class Text(_Block):
    """Text for the model."""

    text: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    kind: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True)
class Image(_Block):
    """An image, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    kind: ClassVar[str] = "image"


@dataclass(frozen=True, slots=True)
class Audio(_Block):
    """A sound, as the bytes of its file."""

    data: bytes
    mime_type: str
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    kind: ClassVar[str] = "audio"


@dataclass(frozen=True, slots=True)
class ResourceLink(_Block):
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

    kind: ClassVar[str] = "resource_link"


@dataclass(frozen=True, slots=True)
class EmbeddedResource(_Block):
    """A resource with its contents: exactly one of `text` and `blob`, or UsageError is raised."""

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    kind: ClassVar[str] = "resource"

    def __post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            raise UsageError("EmbeddedResource has both text and blob, or neither; pass one of them")
        _Block.__post_init__(self)  # `slots=True` replaces the class, and super() has the first one

    def to_wire(self) -> dict[str, Any]:
        """Return `EmbeddedResource`."""
        members = _Block.to_wire(self)
        names = ("uri", "mimeType", "text", "blob")
        resource = {name: members.pop(name) for name in names if name in members}
        return {**members, "resource": resource}
