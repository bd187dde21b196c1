"""Content blocks (server/tools, "Tool Result"), messages of prompts, and contents of resources.

Creating a block raises UsageError for a member of another type. `to_wire` raises it for `annotations`,
`icons` and `meta` (sent as `_meta`) that are not JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

from mcp_roundtrip.content.member_checks import check_members, members_to_json
from mcp_roundtrip.content.tool_results import ContentBlock, untyped_data
from mcp_roundtrip.errors import UsageError

PLAIN_TEXT: Final = "text/plain"
BINARY: Final = "application/octet-stream"


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
    """A resource with its contents: exactly one of `text` and `blob`.

    `mime_type` defaults to `text/plain` or `application/octet-stream`.
    """

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None

    kind: ClassVar[str] = "resource"

    def to_wire(self) -> dict[str, Any]:
        """Return `EmbeddedResource`. Prompts need its MIME type (server/prompts "Embedded Resources")."""
        members = {"mimeType": PLAIN_TEXT if self.blob is None else BINARY, **_Block.to_wire(self)}
        names = ("uri", "mimeType", "text", "blob")
        resource = {name: members.pop(name) for name in names if name in members}
        return {**members, "resource": resource}


Block = Text | Image | Audio | ResourceLink | EmbeddedResource
Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of `role`, with text or a content block. Raises UsageError for another role or content."""

    content: str | Block
    role: Role = "user"

    def __post_init__(self) -> None:
        if self.role not in get_args(Role) or not isinstance(self.content, str | Block):
            raise UsageError(
                f"PromptMessage: {self.role!r:.100} with {type(self.content).__name__} is not a message; "
                'pass a str or one content block, and role="user" or role="assistant"'
            )

    def to_wire(self) -> dict[str, Any]:
        """Return `PromptMessage`."""
        content = Text(self.content) if isinstance(self.content, str) else self.content
        return {"role": self.role, "content": content.to_wire()}


def prompt_messages(name: str, value: Any) -> list[dict[str, Any]]:
    """Return the value of a prompt's function as `messages` of the result of `prompts/get`.

    It is text, a content block or a PromptMessage, or a list of them. Text and blocks get the role `user`.
    Raises UsageError for any other value.
    """
    items = value if isinstance(value, (list, tuple)) else [value]
    others = [item for item in items or [value] if not isinstance(item, str | PromptMessage | Block)]
    if others:
        kind = type(others[0])
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        returned = f"{module}{kind.__qualname__}" if items else "an empty list"
        raise UsageError(
            f"{name} returned {returned}, which is not a message; return a str, a content block or a "
            "PromptMessage of mcp_roundtrip, or a list of them"
        )
    messages = (item if isinstance(item, PromptMessage) else PromptMessage(item) for item in items)
    return [message.to_wire() for message in messages]


@dataclass(frozen=True, slots=True)
class ResourceContents:
    """One item of a resource's contents: exactly one of `text` and `blob`.

    `uri` and `mime_type` default to those of the resource that is read; `meta` is JSON. Raises UsageError.
    """

    text: str | None = None
    blob: bytes | None = None
    uri: str | None = None
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_members(self)

    def to_wire(self, uri: str, mime_type: str | None) -> dict[str, Any]:
        """Return `TextResourceContents` or `BlobResourceContents`. Raises UsageError for invalid `meta`."""
        default = {"uri": uri} if mime_type is None else {"uri": uri, "mimeType": mime_type}
        return default | members_to_json(self)


def resource_contents(name: str, value: Any, uri: str, mime_type: str | None) -> list[dict[str, Any]]:
    """Return the value of a resource's function as `contents` of the result of `resources/read`.

    It is text, bytes, ResourceContents or a list of ResourceContents, or any value that JSON can hold. Raises
    UsageError for any other value, and for None: a function raises ResourceNotFound for a missing resource.
    """
    several = value if isinstance(value, (list, tuple)) else ()
    if any(isinstance(each, ResourceContents) for each in several):
        if not all(isinstance(each, ResourceContents) for each in several):
            raise UsageError(
                f"{name} returned a list of ResourceContents and other items; return only ResourceContents"
            )
        return [each.to_wire(uri, mime_type) for each in several]
    return [_contents(name, value, mime_type).to_wire(uri, mime_type)]


def _contents(name: str, value: Any, mime_type: str | None) -> ResourceContents:
    if isinstance(value, ResourceContents):
        return value
    if isinstance(value, str):
        return ResourceContents(text=value, mime_type=mime_type or PLAIN_TEXT)
    if isinstance(value, (bytes, bytearray)):
        return ResourceContents(blob=bytes(value), mime_type=mime_type or BINARY)
    if value is None:
        raise UsageError(f"{name} returned None; return contents, or raise ResourceNotFound")
    if isinstance(value, ContentBlock):
        return _from_block(name, value, mime_type)
    text = json.dumps(untyped_data(name, value), ensure_ascii=False)
    return ResourceContents(text=text, mime_type=mime_type or "application/json")


def _from_block(name: str, block: ContentBlock, mime_type: str | None) -> ResourceContents:
    match block:
        case Text(text=text):
            return ResourceContents(text=text, mime_type=mime_type or PLAIN_TEXT)
        case Image(data=data, mime_type=own) | Audio(data=data, mime_type=own):
            return ResourceContents(blob=data, mime_type=own)
    raise UsageError(
        f"{name} returned {type(block).__name__}, which is no contents of a resource; return text, bytes, "
        "Image, Audio or ResourceContents"
    )
