"""JSON-RPC 2.0 envelopes and error codes (MCP 2026-07-28, basic/index "Messages")."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.errors import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    MissingClientCapability,
    ProtocolError,
)
from mcp_roundtrip.protocol.strict_json import TooManyValues, compact_json, has_half_of_a_pair, parse_json

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022

LEGACY_RESOURCE_NOT_FOUND: Final = -32002
"""2025-11-25, server/resources "Error Handling"."""

URL_ELICITATION_REQUIRED: Final = -32042
"""2025-11-25, client/elicitation. Later versions have no such error, and no other meaning for its code."""

TOO_MANY_REQUESTS: Final = 429
"""MCP defines no code for a limit, and leaves codes outside -32768 to -32000 to applications."""

RETRY_AFTER_S: Final = 30
"""The `Retry-After` of every 429 (RFC 6585 §4)."""

CHANGED_KEY: Final = "changedKey"
"""The member of an error's data that names the question or step whose change ended the call (`Drift`)."""

RequestId = str | int

MAX_ID: Final = 1_024
"""Limit in characters of an id or a progress token, because every notification repeats the token."""

ECHOABLE: Final = f"an integer or a string of at most {MAX_ID} characters"
"""The form of a valid id or progress token, for error messages."""


class JsonRpcRequest(Struct, frozen=True):
    """A request. `params` has no member that is null."""

    id: RequestId
    method: str
    params: Mapping[str, Any]


class Notification(Struct, frozen=True):
    """A notification, which has no response."""

    method: str


class InvalidEnvelope(ProtocolError):
    """The body is not one JSON-RPC request or notification. `id` is None if it could not be read."""

    def __init__(
        self,
        code: int,
        message: str,
        id: RequestId | None = None,  # noqa: A002 - JSON-RPC's name
        *,
        http_status: int | None = None,
    ) -> None:
        super().__init__(code, message, http_status=http_status)
        self.id = id


class BodyTooLarge(InvalidEnvelope):
    """A 413 error (RFC 9110 §15.5.14): the body exceeds the limit of `setting` and was not parsed."""

    def __init__(self, limit: str, setting: str) -> None:
        text = f"The body has more than {limit}: send less at once"
        super().__init__(INVALID_REQUEST, text, http_status=413)
        self.log_fields = {"reason": "body_too_large", "setting": setting}


def parse_message(body: str | bytes, max_values: int | None = None) -> JsonRpcRequest | Notification:
    """Parse one message, and ignore a byte order mark (RFC 8259 §8.1). Raises InvalidEnvelope."""
    text = body.removeprefix("\ufeff") if isinstance(body, str) else body.removeprefix(BOM_UTF8)
    try:
        message = parse_json(text, max_values=max_values)
    except TooManyValues as error:
        raise BodyTooLarge(f"{error.limit} JSON values", "MCP_MAX_JSON_VALUES") from None
    except ValueError as error:
        raise InvalidEnvelope(PARSE_ERROR, f"Parse error: {error}") from None
    if isinstance(message, list):
        raise InvalidEnvelope(INVALID_REQUEST, "MCP has no batches: send one message per request")
    if not isinstance(message, dict):
        raise InvalidEnvelope(INVALID_REQUEST, "The body must be one JSON-RPC message: a JSON object")
    if "id" in message and not is_echoable(message["id"]):
        raise InvalidEnvelope(INVALID_REQUEST, f"'id' must be {ECHOABLE}")
    return _message(message, message.get("id"))


def _message(message: dict[str, Any], request_id: RequestId | None) -> JsonRpcRequest | Notification:
    if message.get("jsonrpc") != "2.0":
        raise InvalidEnvelope(INVALID_REQUEST, "'jsonrpc' must be \"2.0\"", request_id)
    method = message.get("method")
    if method is None and ("result" in message or "error" in message):
        # Without the id: that of a response is the server's own.
        raise InvalidEnvelope(INVALID_REQUEST, "Clients send requests and notifications, no responses")
    if not isinstance(method, str) or not method:
        raise InvalidEnvelope(INVALID_REQUEST, "'method' must be a non-empty string", request_id)
    params = message.get("params")
    if params is not None and not isinstance(params, dict):
        raise InvalidEnvelope(INVALID_REQUEST, "'params' must be an object", request_id)
    if request_id is None:
        if not method.startswith("notifications/"):
            raise InvalidEnvelope(INVALID_REQUEST, f"'id' is missing: a request needs {ECHOABLE}")
        return Notification(method)
    return JsonRpcRequest(request_id, method, without_null_members(params or {}))


def without_null_members(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object of the client without members that are null, which count as absent."""
    return {name: member for name, member in value.items() if member is not None}


def is_echoable(value: object) -> bool:
    """Return whether the server can send back an id or a token: it is ECHOABLE, without lone surrogates."""
    if isinstance(value, str):
        return len(value) <= MAX_ID and not has_half_of_a_pair(value)
    return isinstance(value, int) and not isinstance(value, bool) and len(str(value)) <= MAX_ID


def result(request_id: RequestId, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(request_id: RequestId | None, failure: ProtocolError) -> dict[str, Any]:
    """Build an error response. It has no id if that of the request could not be read."""
    given = {} if request_id is None else {"id": request_id}
    return {"jsonrpc": "2.0", **given, "error": error_object(failure)}


def error_object(failure: ProtocolError) -> dict[str, Any]:
    """Return the member `error` of a response."""
    body: dict[str, Any] = {"code": failure.code, "message": failure.message}
    return body if failure.data is None else {**body, "data": failure.data}


def invalid_params(problem: str) -> ProtocolError:
    """Return -32602. `problem` names the member and what it must be, without its value."""
    return ProtocolError(INVALID_PARAMS, f"Invalid params: {problem}")


def notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


_REMEDIES: Final[Mapping[int, str]] = {
    LEGACY_RESOURCE_NOT_FOUND: "it belongs to earlier versions of MCP; raise ResourceNotFound",
    URL_ELICITATION_REQUIRED: "it belongs to earlier versions of MCP; ask with ctx.elicit_url",
    HEADER_MISMATCH: "the server checks headers; raise ToolError",
    MISSING_REQUIRED_CLIENT_CAPABILITY: "raise MissingClientCapability, or declare requires=",
    UNSUPPORTED_PROTOCOL_VERSION: "the server checks versions; raise ToolError",
}

RESERVED_CODES: Final = range(-32768, -31999)
"""The codes that JSON-RPC and MCP reserve (basic/index, "Error Codes")."""


def reason_not_sendable(failure: ProtocolError) -> str | None:
    """Return why a feature's error must not be sent, with a remedy; None if it can be sent."""
    code, status = failure.code, failure.http_status
    if type(code) is not int:
        return "its code must be an int, such as -32602"
    is_specified = code in (INVALID_PARAMS, INTERNAL_ERROR) or isinstance(failure, MissingClientCapability)
    if code in RESERVED_CODES and not is_specified:
        instead = "raise ToolError, or use -32602, -32603 or a code outside -32768 to -32000"
        return _REMEDIES.get(code, f"the code is reserved; {instead}")
    if status is not None and (type(status) is not int or not 200 <= status < 500):
        return f"its http_status is {status!r}; use one from 200 to 499, or none"
    try:
        compact_json([failure.message, failure.data])
    except (TypeError, ValueError, RecursionError):
        return "its data is not JSON; use dicts, lists, strings, numbers, booleans and None"
    return None if isinstance(failure.message, str) else "its message must be a str"
