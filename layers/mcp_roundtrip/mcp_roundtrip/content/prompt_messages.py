"""Messages of a prompt (server/prompts, "PromptMessage")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from mcp_roundtrip.content.blocks import Audio, EmbeddedResource, Image, ResourceLink, Text
from mcp_roundtrip.errors import UsageError

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
    """Return what a prompt's function returned, as `messages` of the result of `prompts/get`.

    Text, a content block or a PromptMessage, or a list of them; text and blocks get the role `user`. Raises
    UsageError for anything else.
    """
    items = value if isinstance(value, (list, tuple)) else [value]
    found = [
        item if isinstance(item, PromptMessage) else PromptMessage(item)
        for item in items
        if isinstance(item, str | PromptMessage | Block)
    ]
    if not items or len(found) != len(items):
        raise UsageError(
            f"{name} returned {type(value).__name__}, which is not a message; return a str, a content block, "
            "a PromptMessage or a list of them"
        )
    return [message.to_wire() for message in found]
