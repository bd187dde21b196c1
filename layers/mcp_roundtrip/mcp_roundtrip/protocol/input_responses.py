"""The results with which clients answer input requests (2026-07-28: ElicitResult, CreateMessageResult,
ListRootsResult).

This module checks their shape, for which the client is responsible. Whether the content of a form fits its
schema is for the user to correct (`forms.form`). An optional member that is null counts as absent: the
models of official SDKs accept it, and some clients send it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError


class MalformedInputResponse(ProtocolError):
    """The -32602 error for a response that is no result of its request.

    `key` is that of the response. `reason` names the member and says what it must be, without its value.
    """

    def __init__(self, key: str, member: str, expected: str) -> None:
        super().__init__(INVALID_PARAMS, f"Invalid params: inputResponses.{key}{member} must be {expected}")
        self.key = key
        self.reason = f"{member.removeprefix('.') or 'the answer'} must be {expected}"


def read_response(key: str, request: Mapping[str, Any], raw: Any) -> dict[str, Any]:
    """Return the response to an InputRequest without optional members that are null.

    Raises MalformedInputResponse. A namespaced request has an object as its result.
    """

    def refuse(member: str, expected: str) -> NoReturn:
        raise MalformedInputResponse(key, member, expected)

    if not isinstance(raw, dict):
        refuse("", "an object")
    if (known := _RESULTS.get(request["method"])) is None:
        return raw
    check, open_members = known
    response: dict[str, Any] = _without_nulls(raw, open_members)
    check(response, request["params"], refuse)
    return response


_Refuse = Callable[[str, str], NoReturn]


def _check_elicit_result(response: Mapping[str, Any], params: Mapping[str, Any], refuse: _Refuse) -> None:
    if response.get("action") not in ("accept", "decline", "cancel"):
        refuse(".action", "accept, decline or cancel")
    is_form = params.get("mode") != "url" and response["action"] == "accept"
    if is_form and not isinstance(response.get("content"), dict):
        refuse(".content", "an object")


def _check_sampling_result(response: Mapping[str, Any], params: Mapping[str, Any], refuse: _Refuse) -> None:
    if response.get("role") not in ("user", "assistant"):
        refuse(".role", "user or assistant")
    content = response.get("content")
    for number, block in enumerate(content if isinstance(content, list) else [content]):
        place = f".content[{number}]" if isinstance(content, list) else ".content"
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            refuse(place, "a content block")
        if block["type"] == "text" and not isinstance(block.get("text"), str):
            refuse(f"{place}.text", "a string")
    if not isinstance(response.get("model"), str):
        refuse(".model", "a string")
    if not isinstance(response.get("stopReason", ""), str):
        refuse(".stopReason", "a string")


def _check_roots_result(response: Mapping[str, Any], params: Mapping[str, Any], refuse: _Refuse) -> None:
    roots = response.get("roots")
    if not isinstance(roots, list):
        refuse(".roots", "an array")
    for number, root in enumerate(roots):
        if not isinstance(root, dict) or not isinstance(root.get("uri"), str):
            refuse(f".roots[{number}].uri", "a string")
        if not isinstance(root.get("name", ""), str):
            refuse(f".roots[{number}].name", "a string")


_Check = Callable[[Mapping[str, Any], Mapping[str, Any], _Refuse], None]

_BLOCKS: Final = frozenset({"_meta", "input", "structuredContent"})

_RESULTS: Final[Mapping[str, tuple[_Check, frozenset[str]]]] = {
    "elicitation/create": (_check_elicit_result, frozenset({"_meta", "content"})),
    "sampling/createMessage": (_check_sampling_result, _BLOCKS),
    "roots/list": (_check_roots_result, frozenset({"_meta"})),
}
"""The check of each result, and the members that hold JSON of another schema: null is a value in them."""


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
