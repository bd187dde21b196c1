"""Recorded requests and invocations as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mcp_roundtrip.protocol.canonical import parse_json
from mcp_roundtrip_tools.run.observation.changed_questions import ChangedQuestion
from mcp_roundtrip_tools.run.observation.records import HttpExchange, RecordedInvocation, ServiceCall

MAX_DEPTH: Final = 200


def exchange_document(exchange: HttpExchange) -> dict[str, Any]:
    """Return a request with its response and everything that it caused."""
    return {
        "id": exchange.id,
        "startedAtMs": exchange.started_at_ms,
        "durationMs": exchange.duration_ms,
        "method": exchange.method,
        "path": exchange.path,
        "requestHeaders": list(exchange.request_headers),
        "requestBody": body_document(exchange.request_body),
        "status": exchange.status,
        "responseHeaders": list(exchange.response_headers),
        "responseBody": body_document(exchange.response_body),
        "invocations": [invocation_document(each) for each in exchange.invocations],
    }


def invocation_document(invocation: RecordedInvocation) -> dict[str, Any]:
    """Return an invocation with its log lines, its calls of services, and the invocations it waited for."""
    response = invocation.response
    return {
        "id": invocation.id,
        "requestId": invocation.request_id,
        "function": invocation.function,
        "environmentId": invocation.environment_id,
        "isNewEnvironment": invocation.is_new_environment,
        "trigger": invocation.trigger,
        "caller": invocation.caller,
        "startedAtMs": invocation.started_at_ms,
        "initMs": invocation.init_ms,
        "durationMs": invocation.duration_ms,
        "payload": body_document(invocation.payload),
        "response": None if response is None else body_document(response),
        "failed": invocation.failed,
        "error": invocation.error,
        "serviceCalls": [_service_call(each) for each in invocation.service_calls],
        "logLines": [{"atMs": line.at_ms, "text": line.text} for line in invocation.log_lines],
        "invocations": [invocation_document(each) for each in invocation.invocations],
    }


def changes_document(changed: Iterable[ChangedQuestion]) -> list[dict[str, Any]]:
    """Return questions that changed since they were asked before."""
    return [
        {"key": each.key, "before": each.before, "after": each.after, "isRepeated": each.is_repeated}
        for each in changed
    ]


def body_document(body: bytes) -> Any:
    """Return the JSON document in a body, or its text; None for an empty body."""
    if not body:
        return None
    try:
        return parse_json(body, max_depth=MAX_DEPTH)
    except ValueError:
        return body.decode("utf-8", "replace")


def _service_call(call: ServiceCall) -> dict[str, Any]:
    return {
        "service": call.service,
        "operation": call.operation,
        "detail": call.detail,
        "status": call.status,
        "startedAtMs": call.started_at_ms,
        "durationMs": call.duration_ms,
    }
