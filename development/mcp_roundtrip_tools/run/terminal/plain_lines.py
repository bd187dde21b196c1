"""What a run writes that is not for a terminal: plain lines, and JSON for scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_roundtrip_tools.client.terminal_text import one_line, printable_json
from mcp_roundtrip_tools.run.observation.records import (
    Ended,
    Event,
    HttpExchange,
    Note,
    Printed,
    RecordedInvocation,
    header,
    members,
)
from mcp_roundtrip_tools.run.terminal.summary import final_event, summarize


class PlainLines:
    """Writes a line for each printed line, each request and each note of the runner."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def __call__(self, event: Event) -> None:
        match event:
            case Printed(invocation, line):
                for text in line.text.split("\n"):
                    self._log(f"[{invocation.function}] {text}")
            case Note():
                self._log(event.text)
            case Ended(HttpExchange() as each):
                method = header(each.request_headers, "mcp-method") or "-"
                text = f"{each.method} {each.path} {method} {each.status} {each.duration_ms or 0:.1f} ms"
                self._log(one_line(text))


class JsonLines:
    """A listener of the recorder that writes JSON."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: Event) -> None:
        match event:
            case Ended(RecordedInvocation() as invocation):
                self.put({"type": "invocation", **_invocation(invocation)})
            case Ended(HttpExchange() as exchange):
                self.put({"type": "request", **_exchange(exchange)})
            case Note(at_ms, text):
                self.put({"type": "note", "atMs": round(at_ms), "text": text})

    def put(self, document: Mapping[str, Any]) -> None:
        """Write one object, without the members that have no value."""
        self._write(printable_json({name: value for name, value in document.items() if value is not None}))


def _exchange(exchange: HttpExchange) -> dict[str, Any]:
    summary, event = summarize(exchange), final_event(exchange)
    return {
        **members(exchange, "id", "path", "status"),
        **_times(exchange, "started_at_ms", "duration_ms"),
        "httpMethod": exchange.method,
        "method": summary.kind if "/" in summary.kind and " " not in summary.kind else None,
        "name": summary.subject or None,
        **{name: event.get(name) for name in ("round", "outcome", "asked")},
        "failure": summary.failure,
        "invocations": [_invocation(each) for each in exchange.invocations],
    }


def _invocation(invocation: RecordedInvocation) -> dict[str, Any]:
    found = {
        **members(invocation, "id", "function", "is_new_environment", "trigger", "caller", "error"),
        **_times(invocation, "started_at_ms", "init_ms", "duration_ms"),
        "environment": invocation.environment_id,
        "serviceCalls": [
            {**members(each, "service", "operation", "detail", "status"), **_times(each, "duration_ms")}
            for each in invocation.service_calls
        ],
        "lines": [line.text for line in invocation.log_lines],
        "invocations": [_invocation(each) for each in invocation.invocations],
    }
    return {name: value for name, value in found.items() if value is not None}


def _times(record: object, *names: str) -> dict[str, Any]:
    found = members(record, *names)
    return {name: None if value is None else round(value, 1) for name, value in found.items()}
