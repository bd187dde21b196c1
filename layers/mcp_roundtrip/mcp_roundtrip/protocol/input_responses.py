"""The responses of clients to input requests: ElicitResult, CreateMessageResult and ListRootsResult.

Their shape is checked here (schema 2026-07-28), the content of a form by `arguments.elicitation_form`. An
optional member that is null counts as absent: the models of official SDKs accept it, and some clients send
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.protocol.strict_json import has_half_of_a_pair


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
