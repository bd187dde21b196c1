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


def _require(is_met: bool, key: str, member: str, expected: str) -> None:
    if not is_met:
        raise MalformedInputResponse(key, member, expected)


def _check_elicit_result(key: str, response: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    action, content = response.get("action"), response.get("content")
    _require(action in ("accept", "decline", "cancel"), key, ".action", "accept, decline or cancel")
    if params.get("mode") != "url" and action == "accept":
        _require(isinstance(content, dict), key, ".content", "an object")


def _check_sampling_result(key: str, response: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    _require(response.get("role") in ("user", "assistant"), key, ".role", "user or assistant")
    content = response.get("content")
    for number, block in enumerate(content if isinstance(content, list) else [content]):
        place = f".content[{number}]" if isinstance(content, list) else ".content"
        kind = block.get("type") if isinstance(block, dict) else None
        _require(isinstance(kind, str), key, place, "a content block")
        for member, type_ in _BLOCK_MEMBERS.get(kind, {}).items():
            expected = "a string" if type_ is str else "an object"
            _require(isinstance(block.get(member), type_), key, f"{place}.{member}", expected)
    _require(isinstance(response.get("model"), str), key, ".model", "a string")
    _require(isinstance(response.get("stopReason", ""), str), key, ".stopReason", "a string")


_BLOCK_MEMBERS: Final[Mapping[Any, Mapping[str, type]]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""The required members of the content blocks that a model writes."""


def _check_roots_result(key: str, response: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    roots = response.get("roots")
    _require(isinstance(roots, list), key, ".roots", "an array")
    for number, root in enumerate(roots or ()):
        place = f".roots[{number}]"
        _require(isinstance(root, dict) and isinstance(root.get("uri"), str), key, f"{place}.uri", "a string")
        _require(isinstance(root.get("name", ""), str), key, f"{place}.name", "a string")


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
