"""The results that are sent to clients (schema 2026-07-28)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from mcp_roundtrip.protocol.constants import META_SERVER_INFO
from mcp_roundtrip.protocol.strict_json import compact_json

LIST_TTL_MS: Final = 300_000
"""The time for which clients may cache lists and the discovery result (server/utilities/caching)."""


def iso_timestamp(epoch_ms: int) -> str:
    """Return a time as text: RFC 3339 in UTC, with milliseconds."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class PreSerialized(dict[str, Any]):
    """A result that answers many requests, serialized once. Do not change it."""

    @cached_property
    def json(self) -> str:
        return compact_json(self)


def result(kind: str, server_info: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """Build a result with this `resultType`, and the server's name and version in `_meta`."""
    return {"resultType": kind, **members, "_meta": {META_SERVER_INFO: server_info}}


def complete(server_info: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    return result("complete", server_info, **members)


def cacheable(
    server_info: Mapping[str, Any], ttl_ms: int, *, is_private: bool = False, **members: Any
) -> dict[str, Any]:
    """Build a complete result with caching hints. `is_private`: whether it differs between callers."""
    scope = "private" if is_private else "public"
    return complete(server_info, **members, ttlMs=ttl_ms, cacheScope=scope)


def tool_error(server_info: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Build a CallToolResult with `isError`, whose text is for the model."""
    return complete(server_info, content=[text_content(text)], isError=True)


def tool_result(server_info: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """Build a CallToolResult with the members `content` and, if it has data, `structuredContent`."""
    return complete(server_info, **members, isError=False)


def text_content(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call_tool_result(later: Mapping[str, Any]) -> dict[str, Any]:
    """Return a CallToolResult of earlier versions, whose structured content is an object.

    Another value becomes the member `result`, as in the official SDKs. Without it, Gemini CLI (0.61.0) reads
    structured content from a text that is JSON, and refuses a list or a number.
    """
    structured = later.get("structuredContent", {})
    if isinstance(structured, dict):
        return dict(later)
    return {**later, "structuredContent": {"result": structured}}
