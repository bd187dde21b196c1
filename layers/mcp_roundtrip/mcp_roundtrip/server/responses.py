"""Write a reply as an HTTP response within the limit of its event source, and log how the request ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.deployment.ports import Observer, Ports
from mcp_roundtrip.errors import DefinitionError, ProtocolError
from mcp_roundtrip.internal_errors import ResultTooLarge, SettingsError
from mcp_roundtrip.protocol import http, jsonrpc, results
from mcp_roundtrip.protocol.constants import META_SERVER_INFO, TASKS_GET, TOOLS_CALL
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, RequestId
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.server.lambda_invocation import Invocation
from mcp_roundtrip.server.request_types import Reply, RequestContext

_STATUS_HEADERS: Final = {
    401: {"www-authenticate": "Bearer"},
    405: {"allow": "POST"},
    415: {"accept-encoding": "identity"},
    429: {"retry-after": str(jsonrpc.RETRY_AFTER_S)},
    503: {"retry-after": "10"},
}
"""The headers that a status requires (RFC 9110)."""


def result_response(context: RequestContext, reply: Reply, request: HttpRequest) -> HttpResponse:
    """Write a result, and log `request_completed`. Raises ProtocolError for a result that is too large."""
    assert not isinstance(reply.body, ProtocolError)
    message = _result_message(context.request.id, reply.body)
    response, log_fields = _within_limit(message, reply, request)
    if response is None:
        response = _too_large_response(context, reply, request.max_response_bytes)
        log_fields = {**log_fields, "outcome": "result_too_large"}
    fields = {"method": context.request.method, **log_fields}
    context.ports.observer.record("request_completed", **fields)
    context.invocation.operation.end_request("request_completed", fields, reply)
    return replace(response, headers={**response.headers, **reply.headers})


def error_response(
    request_id: RequestId | None,
    reply: Reply,
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
    status: int | None = None,
) -> HttpResponse:
    """Write a JSON-RPC error, and log `request_refused`. `status` overrides the one of the error."""
    error = reply.body
    assert isinstance(error, ProtocolError)
    status = status or http.http_status(error)
    response, log_fields = None, reply.log_fields
    if status == 200:
        response, log_fields = _within_limit(compact_json(jsonrpc.error(request_id, error)), reply, request)
    fields = {"code": error.code, "status": status, **log_fields}
    ports.observer.record("request_refused", **fields)
    if response is None:
        if status == 200:
            too_large = ResultTooLarge(request.max_response_bytes)
            ports.observer.record_failure("result_too_large", too_large, **reply.log_fields)
            error = ProtocolError(INTERNAL_ERROR, f"{too_large}{reply.repeated}")
        plain = plain_error_response(request_id, error)
        headers = {**plain.headers, **_STATUS_HEADERS.get(status, {})}
        response = replace(plain, status=status, headers=headers)
    invocation.operation.end_request("request_refused", fields, reply)
    return response


def plain_error_response(request_id: RequestId | None, error: ProtocolError) -> HttpResponse:
    body = compact_json(jsonrpc.error(request_id, error))
    return HttpResponse(http.http_status(error), body, http.JSON_HEADERS)


def _within_limit(
    message: str, reply: Reply, request: HttpRequest
) -> tuple[HttpResponse | None, Mapping[str, Any]]:
    """Return the response, None if it is too large, with the notifications that fit; and the log fields."""
    events, log_fields = list[str](), reply.log_fields
    room = request.max_response_bytes - http.event_size(message) if reply.notifications else 0
    for notification in reply.notifications:
        event = compact_json(notification)
        room -= http.event_size(event)
        if room < 0:
            break
        events.append(event)
    response = http.build_response(message, events, request.headers)
    if dropped := len(reply.notifications) - len(events):
        dropped += log_fields.get("notifications_dropped", 0)
        log_fields = {**log_fields, "notifications_dropped": dropped}
    fits = http.payload_size(response.body) <= request.max_response_bytes
    return response if fits else None, log_fields


def _too_large_response(context: RequestContext, reply: Reply, limit: int) -> HttpResponse:
    """Report a result that Lambda or a load balancer would refuse.

    Raises ProtocolError, except for the result of a tool: after a JSON-RPC error, clients poll a task again.
    """
    error = ResultTooLarge(limit)
    context.ports.observer.record_failure("result_too_large", error, **reply.log_fields)
    assert not isinstance(reply.body, ProtocolError)
    text = f"{error}{reply.repeated}"
    has_result_of_task = context.request.method == TASKS_GET and "result" in reply.body
    if context.request.method != TOOLS_CALL and not has_result_of_task:
        raise ProtocolError(INTERNAL_ERROR, text)
    result = results.tool_error(reply.body["_meta"][META_SERVER_INFO], text)
    if has_result_of_task:
        result = {**reply.body, "result": result}
    if context.request.is_legacy:
        del result["resultType"]
    return HttpResponse(200, _result_message(context.request.id, result), http.JSON_HEADERS)


def _result_message(request_id: RequestId, result: Mapping[str, Any]) -> str:
    if isinstance(result, results.PreSerialized):
        return f'{{"jsonrpc":"2.0","id":{compact_json(request_id)},"result":{result.json}}}'
    return compact_json(jsonrpc.result(request_id, result))


def log_fault(observer: Observer, error: Exception) -> None:
    """Log a wrong setting, a wrong definition, or a fault of this library."""
    events = {SettingsError: "misconfigured", DefinitionError: "definition_failed"}
    observer.record_failure(events.get(type(error), "internal_error"), error)
