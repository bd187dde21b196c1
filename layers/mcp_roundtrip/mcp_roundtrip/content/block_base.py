"""The base class of content blocks, and text as a block, for tools that use no other block."""

from __future__ import annotations

from typing import Any

from mcp_roundtrip.errors import UsageError


class ContentBlock:
    """The base class of `blocks`, whose dataclasses take 3 ms to create."""

    __slots__ = ()

    def to_wire(self) -> dict[str, Any]:
        """Return the block as JSON (server/tools, "Tool Result"). Raises UsageError."""
        raise NotImplementedError


def text_block(text: str) -> dict[str, Any]:
    """Return `TextContent`. Raises UsageError for half of a surrogate pair."""
    check_text("Text.text", text)
    return {"type": "text", "text": text}


def check_text(where: str, text: str) -> None:
    """Raise UsageError for half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{where} must be text without half of a surrogate pair") from None
