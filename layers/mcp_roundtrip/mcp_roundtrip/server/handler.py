"""From a Lambda event to a Lambda response, for whatever endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_roundtrip import wiring
from mcp_roundtrip.adapters.detect import UnknownEventSource, detect
from mcp_roundtrip.canonical import compact
from mcp_roundtrip.errors import ProtocolError, SettingsError
from mcp_roundtrip.http import JSON_HEADERS, HttpRequest, HttpResponse
from mcp_roundtrip.protocol import jsonrpc
from mcp_roundtrip.server.calls import internal_error
from mcp_roundtrip.server.dispatch import Endpoint
from mcp_roundtrip.server.ports import Invocation, Ports

MARGIN_MS: Final = 1_000
"""Kept back from every limit, for sealing the state and getting the response out."""

FORWARDED_DEADLINE: Final = "mcpDeadlineMs"
"""In the client context of a forwarded call: when the front door stops waiting, in epoch milliseconds."""

FORWARDED_DIGEST: Final = "mcpDefinition"
"""In the client context of a forwarded call: digest of the tool's definition in the front door's catalog."""


def handle(endpoint: Endpoint, event: Any, context: Any, make_ports: Callable[[], Ports]) -> Any:
    """Answer one event. Raises nothing."""
    correlation_id = getattr(context, "aws_request_id", None) or "unknown"
    try:
        adapter = detect(event)
    except UnknownEventSource as error:
        wiring.observer().failure("unknown_event_source", error, correlation_id=correlation_id)
        failure = ProtocolError(jsonrpc.INVALID_REQUEST, str(error))
        return {
            "statusCode": 400,
            "headers": dict(JSON_HEADERS),
            "body": compact(jsonrpc.error(None, failure)),
        }
    try:
        request = adapter.request(event)
        ports = make_ports()
        invocation = _invocation(event, context, request, ports, correlation_id)
        answer = endpoint.respond(request, ports, invocation)
    except ProtocolError as failure:  # the adapter could not read the body
        answer = _error(None, failure)
    except SettingsError as error:
        wiring.observer().failure("misconfigured", error, correlation_id=correlation_id)
        answer = _error(_request_id(request), internal_error(correlation_id))
    return answer.raw if answer.raw is not None else adapter.response(answer)


def _invocation(
    event: Any, context: Any, request: HttpRequest, ports: Ports, correlation_id: str
) -> Invocation:
    return Invocation(
        correlation_id=correlation_id,
        deadline_ms=ports.clock_ms() + _limit_ms(context, request, ports) - MARGIN_MS,
        lambda_context=context,
        event=event,
        forwarded=forwarded(context),
    )


def _limit_ms(context: Any, request: HttpRequest, ports: Ports) -> float:
    """The least of what Lambda, the event source and the front door still allow."""
    limits: list[float] = []
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    if remaining is not None:
        limits.append(remaining())
    if request.source_limit_ms is not None:
        limits.append(request.source_limit_ms)
    deadline = forwarded(context).get(FORWARDED_DEADLINE)
    if isinstance(deadline, (int, float)):
        limits.append(deadline - ports.clock() * 1000)
    return min(limits, default=900_000)


def forwarded(context: Any) -> Mapping[str, Any]:
    """What a front door sent along with a call; only callers with lambda:InvokeFunction can."""
    custom = getattr(getattr(context, "client_context", None), "custom", None)
    return custom if isinstance(custom, Mapping) else {}


def _request_id(request: HttpRequest) -> jsonrpc.RequestId | None:
    try:
        return getattr(jsonrpc.read(request.body), "id", None)
    except ProtocolError:
        return None


def _error(request_id: jsonrpc.RequestId | None, failure: ProtocolError) -> HttpResponse:
    return HttpResponse(
        jsonrpc.http_status(failure), compact(jsonrpc.error(request_id, failure)), JSON_HEADERS
    )
