"""What a function of a resource returned, as contents (server/resources, "Resource Contents")."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from mcp_roundtrip.content.blocks import BINARY, PLAIN_TEXT, ResourceContents
from mcp_roundtrip.content.tool_results import ContentBlock, untyped_data
from mcp_roundtrip.errors import UsageError


def resource_contents(name: str, value: Any, uri: str, mime_type: str | None) -> list[dict[str, Any]]:
    """Return what a resource's function returned, as `contents` of the result of `resources/read`.

    Text, bytes, ResourceContents or a list of them, or any value that JSON can hold. Raises UsageError for
    other values, for a list with ResourceContents and other items, and for None: a function raises
    ResourceNotFound for a missing resource.
    """
    several = value if isinstance(value, (list, tuple)) else ()
    if any(isinstance(each, ResourceContents) for each in several):
        if not all(isinstance(each, ResourceContents) for each in several):
            raise UsageError(
                f"{name} returned a list of ResourceContents and other items; return only ResourceContents"
            )
        return [each.to_wire(uri, mime_type) for each in several]
    return [_one(name, value, mime_type).to_wire(uri, mime_type)]


def _one(name: str, value: Any, mime_type: str | None) -> ResourceContents:
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
    match block.to_wire():
        case {"type": "text", "text": text}:
            return ResourceContents(text=text, mime_type=mime_type or PLAIN_TEXT)
        case {"data": data, "mimeType": own}:
            return ResourceContents(blob=b64decode(data), mime_type=own)
    raise UsageError(
        f"{name} returned {type(block).__name__}, which is no contents of a resource; return text, bytes, "
        "Image, Audio or ResourceContents"
    )
