"""Requests, invocations and notes as JSON, one object per line, for scripts: `make run JSON=1`.

No line has a header or a body. The text that functions print is in `lines`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_roundtrip_tools.client.terminal_text import printable_json
from mcp_roundtrip_tools.run.observation.records import (
    Ended,
    Event,
    HttpExchange,
    Note,
    RecordedInvocation,
    Root,
)
from mcp_roundtrip_tools.run.terminal.summary import final_event, summarize


class JsonLines:
    """A listener of the recorder that writes JSON."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: Event) -> None:
        match event:
            case Ended(root):
                self.put(_root(root))
            case Note(at_ms, text):
                self.put({"type": "note", "atMs": round(at_ms), "text": text})

    def put(self, document: Mapping[str, Any]) -> None:
        """Write one object."""
        self._write(printable_json(document))


def _root(root: Root) -> dict[str, Any]:
    if isinstance(root, RecordedInvocation):
        return {"type": "invocation", **_invocation(root)}
    return {"type": "request", **_exchange(root)}


def _exchange(exchange: HttpExchange) -> dict[str, Any]:
    summary, event = summarize(exchange), final_event(exchange)
    found = {
        "id": exchange.id,
        "startedAtMs": round(exchange.started_at_ms),
        "durationMs": _ms(exchange.duration_ms),
        "httpMethod": exchange.method,
        "path": exchange.path,
        "status": exchange.status,
        "method": summary.kind if "/" in summary.kind and " " not in summary.kind else None,
        "name": summary.subject or None,
        "round": event.get("round"),
        "outcome": event.get("outcome"),
        "asked": event.get("asked"),
        "failure": summary.failure,
        "invocations": [_invocation(each) for each in exchange.invocations],
    }
    return {name: value for name, value in found.items() if value is not None}


def _invocation(invocation: RecordedInvocation) -> dict[str, Any]:
    found = {
        "id": invocation.id,
        "function": invocation.function,
        "environment": invocation.environment_id,
        "isNewEnvironment": invocation.is_new_environment,
        "trigger": invocation.trigger,
        "caller": invocation.caller,
        "startedAtMs": round(invocation.started_at_ms),
        "initMs": _ms(invocation.init_ms),
        "durationMs": _ms(invocation.duration_ms),
        "error": invocation.error,
        "serviceCalls": [
            {
                "service": call.service,
                "operation": call.operation,
                "detail": call.detail,
                "status": call.status,
                "durationMs": _ms(call.duration_ms),
            }
            for call in invocation.service_calls
        ],
        "lines": [line.text for line in invocation.log_lines],
        "invocations": [_invocation(each) for each in invocation.invocations],
    }
    return {name: value for name, value in found.items() if value is not None}


def _ms(duration_ms: float | None) -> float | None:
    return None if duration_ms is None else round(duration_ms, 1)
