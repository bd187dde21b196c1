"""Results that are sent to clients, and those with which clients answer input requests (schema 2026-07-28).

The shape of an ElicitResult, CreateMessageResult or ListRootsResult is checked here, the content of a form by
`arguments.elicitation_form`. An optional member that is null counts as absent: the models of official SDKs
accept it, and some clients send it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.protocol.constants import META_SERVER_INFO
from mcp_roundtrip.protocol.strict_json import compact_json, has_half_of_a_pair

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


class MalformedInputResponse(ProtocolError):
    """The -32602 error for a response that is no result of its request. `reason` has no value of it."""

    def __init__(self, key: str, member: str, expected: str) -> None:
        super().__init__(INVALID_PARAMS, f"Invalid params: inputResponses.{key}{member} must be {expected}")
        self.key = key
        self.reason = f"{member.removeprefix('.') or 'the answer'} must be {expected}"


def read_response(key: str, request: Mapping[str, Any], raw: Any) -> dict[str, Any]:
    """Return the response to an InputRequest, without null members. Raises MalformedInputResponse."""
    if not isinstance(raw, dict):
        raise MalformedInputResponse(key, "", "an object")
    # No result or step could hold half of a surrogate pair. A form is asked again.
    if request["method"] != "elicitation/create" and has_half_of_a_pair(raw):
        raise MalformedInputResponse(key, "", "an object without half of a surrogate pair")
    if (known := _RESULTS.get(request["method"])) is None:
        return raw
    check, open_members = known
    response: dict[str, Any] = _without_nulls(raw, open_members)
    check(key, response, request["params"])
    return response


def _check_elicit_result(key: str, response: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    if response.get("action") not in ("accept", "decline", "cancel"):
        raise MalformedInputResponse(key, ".action", "accept, decline or cancel")
    is_form = params.get("mode") != "url" and response["action"] == "accept"
    if is_form and not isinstance(response.get("content"), dict):
        raise MalformedInputResponse(key, ".content", "an object")


def _check_sampling_result(key: str, response: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    if response.get("role") not in ("user", "assistant"):
        raise MalformedInputResponse(key, ".role", "user or assistant")
    content = response.get("content")
    for number, block in enumerate(content if isinstance(content, list) else [content]):
        place = f".content[{number}]" if isinstance(content, list) else ".content"
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise MalformedInputResponse(key, place, "a content block")
        if block["type"] == "text" and not isinstance(block.get("text"), str):
            raise MalformedInputResponse(key, f"{place}.text", "a string")
    if not isinstance(response.get("model"), str):
        raise MalformedInputResponse(key, ".model", "a string")
    if not isinstance(response.get("stopReason", ""), str):
        raise MalformedInputResponse(key, ".stopReason", "a string")


def _check_roots_result(key: str, response: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    roots = response.get("roots")
    if not isinstance(roots, list):
        raise MalformedInputResponse(key, ".roots", "an array")
    for number, root in enumerate(roots):
        if not isinstance(root, dict) or not isinstance(root.get("uri"), str):
            raise MalformedInputResponse(key, f".roots[{number}].uri", "a string")
        if not isinstance(root.get("name", ""), str):
            raise MalformedInputResponse(key, f".roots[{number}].name", "a string")


_Check = Callable[[str, Mapping[str, Any], Mapping[str, Any]], None]

_RESULTS: Final[Mapping[str, tuple[_Check, frozenset[str]]]] = {
    "elicitation/create": (_check_elicit_result, frozenset({"_meta", "content"})),
    "sampling/createMessage": (_check_sampling_result, frozenset({"_meta", "input", "structuredContent"})),
    "roots/list": (_check_roots_result, frozenset({"_meta"})),
}
"""The check of each result, and the members with JSON of another schema, in which null is a value."""


def _without_nulls(value: Any, open_members: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_without_nulls(item, open_members) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: member if name in open_members else _without_nulls(member, open_members)
        for name, member in value.items()
        if member is not None
    }


def call_tool_result(later: Mapping[str, Any]) -> dict[str, Any]:
    """Return a CallToolResult of earlier versions, whose structured content is an object.

    Another value becomes the member `result`, as in the official SDKs. Without it, Gemini CLI (0.61.0) reads
    structured content from a text that is JSON, and refuses a list or a number.
    """
    structured = later.get("structuredContent", {})
    if isinstance(structured, dict):
        return dict(later)
    return {**later, "structuredContent": {"result": structured}}
