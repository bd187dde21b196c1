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
    header,
    members,
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
