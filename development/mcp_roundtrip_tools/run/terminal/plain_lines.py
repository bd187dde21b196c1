"""What a run prints that is no request: lines of functions, of audit records, and JSON for scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mcp_roundtrip_tools.client.terminal_text import one_line, printable_json
from mcp_roundtrip_tools.run.observation.records import (
    Ended,
    Event,
    HttpExchange,
    Note,
    Printed,
    RecordedInvocation,
    Root,
    header,
)
from mcp_roundtrip_tools.run.terminal.summary import final_event, summarize

_NOTE: Final = re.compile(r"\[[^\]\s]+\] (\{.*\})")
"""The note of a stored log event: its log group, and the message."""


def audit_line(note: str) -> str | None:
    """Return the short form of the audit record in a note; None if the note has none."""
    found = _NOTE.fullmatch(note)
    try:
        record = json.loads(found[1]) if found else None
    except ValueError:
        return None
    if not isinstance(record, dict) or not {"schema", "record", "phase"} <= record.keys():
        return None
    return " · ".join(_words(record))


def _words(record: Mapping[str, Any]) -> Iterator[str]:
    subject = record.get("feature") or record.get("method") or "request"
    yield f"audit {record['phase']} {subject}"
    principal = record.get("principal") or {}
    yield principal.get("subject") or principal.get("subject_hash") or "anonymous"
    if "outcome" in record:
        yield str(record["outcome"])
    if "reason" in record:
        yield str(record["reason"])
    for name in ("asked", "answered"):
        if questions := record.get(name):
            yield f"{name} " + ", ".join(map(_question, questions))
    if steps := record.get("steps"):
        yield "ran " + ", ".join(steps)


def _question(question: Mapping[str, str]) -> str:
    """Return the key, how it was answered, and the channel."""
    words = [question["action"]] if "action" in question else []
    return f"{question['key']} ({', '.join([*words, question['via']])})"


class PlainLines:
    """Writes a line for each printed line, each request and each note of the runner."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def __call__(self, event: Event) -> None:
        match event:
            case Printed():
                for line in event.line.text.split("\n"):
                    self._log(f"[{event.function}] {line}")
            case Note():
                self._log(event.text)
            case Ended(HttpExchange() as exchange):
                self._log(one_line(_request_line(exchange)))


def _request_line(exchange: HttpExchange) -> str:
    rpc_method = header(exchange.request_headers, "mcp-method") or "-"
    return (
        f"{exchange.method} {exchange.path} {rpc_method} {exchange.status} {exchange.duration_ms or 0:.1f} ms"
    )


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
