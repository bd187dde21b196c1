"""Results as they are sent to clients (schema 2026-07-28)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.protocol.constants import META_SERVER_INFO, SUPPORTED_VERSIONS

LIST_TTL_MS: Final = 300_000
"""The time for which clients may cache lists and the discovery result (server/utilities/caching)."""


class PreSerialized(dict[str, Any]):
    """A result that answers many requests, serialized once. It must not be changed."""

    @cached_property
    def json(self) -> str:
        """The result as JSON."""
        return compact_json(self)


def complete(server_info: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """Build a result with `resultType` "complete" and the server's name and version in `_meta`."""
    return {"resultType": "complete", **members, "_meta": {META_SERVER_INFO: server_info}}


def cacheable(server_info: Mapping[str, Any], ttl_ms: int = LIST_TTL_MS, **members: Any) -> dict[str, Any]:
    """Build a complete result that is the same for every caller, with caching hints."""
    return complete(server_info, **members, ttlMs=ttl_ms, cacheScope="public")


def discover(
    server_info: Mapping[str, Any],
    capabilities: Mapping[str, Any],
    instructions: str | None,
    ttl_ms: int = LIST_TTL_MS,
) -> dict[str, Any]:
    """Build a DiscoverResult."""
    extra = {} if instructions is None else {"instructions": instructions}
    return cacheable(
        server_info, ttl_ms, supportedVersions=list(SUPPORTED_VERSIONS), capabilities=capabilities, **extra
    )


def input_required(
    server_info: Mapping[str, Any],
    input_requests: Mapping[str, Mapping[str, Any]],
    request_state: str,
) -> dict[str, Any]:
    """Build an InputRequiredResult. Without `inputRequests`, the client retries at once."""
    requests = {"inputRequests": input_requests} if input_requests else {}
    return {
        "resultType": "input_required",
        **requests,
        "requestState": request_state,
        "_meta": {META_SERVER_INFO: server_info},
    }


def task(server_info: Mapping[str, Any], members: Mapping[str, Any]) -> dict[str, Any]:
    """Build a CreateTaskResult (SEP-2663), which has the members of the Task."""
    return {"resultType": "task", **members, "_meta": {META_SERVER_INFO: server_info}}


def tool_error(server_info: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Build a CallToolResult with `isError`, whose text is for the model."""
    return complete(server_info, content=[text_content(text)], isError=True)


def tool_result(
    server_info: Mapping[str, Any], content: Sequence[Mapping[str, Any]], structured: Mapping[str, Any]
) -> dict[str, Any]:
    """Build a CallToolResult; `structured` is empty or has the member `structuredContent`."""
    return complete(server_info, content=content, **structured, isError=False)


def text_content(text: str) -> dict[str, Any]:
    """Build a TextContent block."""
    return {"type": "text", "text": text}
