"""From a Lambda event to a Lambda response, for whatever endpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mcp_roundtrip import wiring
from mcp_roundtrip.adapters.detect import UnknownEventSource, detect
from mcp_roundtrip.deadline import request_deadline_ms
from mcp_roundtrip.http import MAX_BODY_BYTES, MAX_JSON_VALUES, HttpRequest, HttpResponse, body_within_limit
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol import jsonrpc
from mcp_roundtrip.server.endpoint import Endpoint, error_response, record_fault
from mcp_roundtrip.server.invocation import Forwarded, Invocation, invocation_id
from mcp_roundtrip.server.round import internal_error


def handle(endpoint: Endpoint, event: Any, context: Any, make_ports: Callable[[], Ports]) -> Any:
    """Answer one request.

    Raises UnknownEventSource for an event that is no request: a queue that invokes this function would take
    any answer for success and delete its messages.
    """
    forwarded = Forwarded.read(context)
    correlation_id = forwarded.correlation_id or invocation_id(context)
    try:
        adapter = detect(event)
    except UnknownEventSource as error:
        wiring.observer().begin(correlation_id)
        wiring.observer().failure("unknown_event_source", error)
        raise
    request = adapter.parse_request(event)
    try:
        ports = make_ports()
        ports.observer.begin(correlation_id)
        caller_ms = None if forwarded.deadline_ms is None else forwarded.deadline_ms - ports.clock() * 1000
        deadline_ms = request_deadline_ms(ports.clock_ms(), context, request.source_limit_ms, caller_ms)
        invocation = Invocation(
            correlation_id, deadline_ms, context, event, forwarded, request.max_response_bytes
        )
        answer = endpoint.respond(request, ports, invocation)
    except Exception as error:  # without ports no endpoint: a setting is wrong, or this library
        answer = _unavailable(request, error, correlation_id)
    return answer.raw if answer.raw is not None else adapter.format_response(answer)


def logged(make_ports: Callable[[], Ports], context: Any) -> Ports:
    """The ports. Raises what `make_ports` raises, which is in the log then: a worker answers nobody."""
    try:
        return make_ports()
    except Exception as error:
        _record_fault(error, invocation_id(context))
        raise


def _record_fault(error: Exception, correlation_id: str) -> None:
    """In the log of the process: there are no ports, whose observer would do it."""
    observer = wiring.observer()
    observer.begin(correlation_id)
    record_fault(observer, error)


def _unavailable(request: HttpRequest, error: Exception, correlation_id: str) -> HttpResponse:
    _record_fault(error, correlation_id)
    if request.method != "POST":  # who looks for metadata goes by the status
        return replace(error_response(None, internal_error(correlation_id)), status=500)
    body = request.body or b""
    try:
        message = jsonrpc.parse_message(
            body if body_within_limit(body, MAX_BODY_BYTES) else b"", MAX_JSON_VALUES
        )
    except jsonrpc.InvalidEnvelope as failure:
        return error_response(failure.id, failure)
    if isinstance(message, jsonrpc.Notification):
        return HttpResponse(202)
    return error_response(message.id, internal_error(correlation_id))
