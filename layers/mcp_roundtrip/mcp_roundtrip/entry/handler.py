"""Handle a Lambda event with an endpoint: event to request, request to response, response to Lambda."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from mcp_roundtrip.adapters.detect import UnknownEventSource, detect
from mcp_roundtrip.adapters.event_formats import remove_query
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.needed_settings import log_missing_settings
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.deadline import request_deadline_ms, retries_until
from mcp_roundtrip.protocol import jsonrpc
from mcp_roundtrip.protocol.http import MAX_JSON_VALUES, HttpRequest, HttpResponse
from mcp_roundtrip.server.endpoint import Endpoint, plain_error_response
from mcp_roundtrip.server.lambda_invocation import (
    Forwarded,
    Invocation,
    internal_error,
    invocation_id,
    log_fault,
)


def handle(endpoint: Endpoint, event: Any, context: Any, make_ports: Callable[[], Ports]) -> Any:
    """Handle one event.

    Raises UnknownEventSource for an event that is no request: a queue that invokes this function would take
    any return value for success and delete its messages.
    """
    forwarded = Forwarded.read(context)
    correlation_id = forwarded.correlation_id or invocation_id(context)
    try:
        source = detect(event)
    except UnknownEventSource as error:
        wiring.observer().begin(correlation_id)
        wiring.observer().record_failure("unknown_event_source", error)
        raise
    request = source.parse_request(event)
    try:
        ports = make_ports()
        if ports.for_endpoint is not None:
            ports = ports.for_endpoint(request.endpoint_uri)
        if ports.observer.begin(correlation_id):
            log_missing_settings(endpoint.needs, ports)
        caller_ms = None if forwarded.deadline_ms is None else forwarded.deadline_ms - ports.clock() * 1000
        deadline_ms = request_deadline_ms(ports.clock_ms(), context, request.source_limit_ms, caller_ms)
        invocation = Invocation(
            correlation_id, deadline_ms, context, event, forwarded, request.max_response_bytes
        )
        with retries_until(deadline_ms):
            response = endpoint.respond(request, ports, invocation)
        if ports.tracer is not None:
            if request.query:
                ports.tracer.annotate({"http.target": request.path})
            ports.tracer.flush()
    except Exception as error:  # from make_ports or from this module: the endpoint raises nothing
        response = _fault_response(request, error, correlation_id)
    # It may hold the token of a link. OpenTelemetry's instrumentation of Lambda writes it into a span as
    # `http.target`: by its version, before it calls the handler, or from the event afterwards.
    remove_query(event)
    return response.raw if response.raw is not None else source.format_response(response)


def make_ports_or_log(make_ports: Callable[[], Ports], context: Any) -> Ports:
    """Return the ports; log what `make_ports` raises, and raise it again, because a worker has no caller."""
    try:
        return make_ports()
    except Exception as error:
        _log_initialization_fault(error, invocation_id(context))
        raise


def _log_initialization_fault(error: Exception, correlation_id: str) -> None:
    """Log a fault with the observer of the process, because it prevented the creation of the ports."""
    observer = wiring.observer()
    observer.begin(correlation_id)
    log_fault(observer, error)


def _fault_response(request: HttpRequest, error: Exception, correlation_id: str) -> HttpResponse:
    _log_initialization_fault(error, correlation_id)
    if request.method != "POST":  # a client that looks for metadata evaluates the status
        return replace(plain_error_response(None, internal_error(correlation_id)), status=500)
    try:
        message = jsonrpc.parse_message(request.body or b"", MAX_JSON_VALUES)
    except jsonrpc.InvalidEnvelope as failure:
        return plain_error_response(failure.id, failure)
    if isinstance(message, jsonrpc.Notification):
        return HttpResponse(202)
    return plain_error_response(message.id, internal_error(correlation_id))
