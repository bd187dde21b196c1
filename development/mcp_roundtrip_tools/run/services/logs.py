"""CloudWatch Logs as far as audit records need it: streams and their events, with AWS's limits."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault, respond_json

MAX_BATCH: Final = 1_048_576
"""Bytes of a batch: those of its messages, and `EVENT_OVERHEAD` for each."""

EVENT_OVERHEAD: Final = 26

TOO_NEW_MS: Final = 2 * 3_600_000
TOO_OLD_MS: Final = 14 * 86_400_000
"""How far the time of an event may be from the time of the request."""


@dataclass(frozen=True, slots=True)
class FakeLogs:
    """The streams of log groups. Thread-safe. `on_line` gets group and message; `calls` all operations."""

    has_group: Callable[[str], bool]
    on_line: Callable[[str, str], None] = lambda group, message: None
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _streams: dict[tuple[str, str], list[str]] = field(init=False, default_factory=dict)
    calls: list[str] = field(init=False, default_factory=list)

    def lines(self, group: str) -> list[str]:
        """Return the messages of a group, stream by stream."""
        with self._lock:
            return [line for (found, _), stream in self._streams.items() if found == group for line in stream]

    def respond(self, request: Request) -> Response:
        """Answer one request, also with an error response."""
        return respond_json(lambda: self._answer(request))

    def _answer(self, request: Request) -> dict[str, Any] | None:
        operation = (request.header("x-amz-target") or "").rpartition(".")[2]
        self.calls.append(operation)
        given = json.loads(request.body)
        name = str(given.get("logGroupName")), str(given.get("logStreamName"))
        if not self.has_group(name[0]):
            raise ServiceFault("ResourceNotFoundException", "The specified log group does not exist.")
        match operation:
            case "CreateLogStream":
                with self._lock:
                    if name in self._streams:
                        text = "The specified log stream already exists"
                        raise ServiceFault("ResourceAlreadyExistsException", text)
                    self._streams[name] = []
                return None
            case "PutLogEvents":
                return self._put_log_events(name, given.get("logEvents") or [])
        raise ServiceFault("UnknownOperationException", f"{operation!r} is not emulated")

    def _put_log_events(self, name: tuple[str, str], events: list[Mapping[str, Any]]) -> dict[str, Any]:
        if name not in self._streams:
            raise ServiceFault("ResourceNotFoundException", "The specified log stream does not exist.")
        times = [event["timestamp"] for event in events]
        size = sum(len(event["message"].encode()) + EVENT_OVERHEAD for event in events)
        if not events or times != sorted(times) or size > MAX_BATCH:
            text = f"a batch has events in the order of their times, and at most {MAX_BATCH} bytes"
            raise ServiceFault("InvalidParameterException", text)
        now_ms = time.time() * 1000
        if times[-1] > now_ms + TOO_NEW_MS:
            return {"rejectedLogEventsInfo": {"tooNewLogEventStartIndex": 0}}
        if times[0] < now_ms - TOO_OLD_MS:
            return {"rejectedLogEventsInfo": {"tooOldLogEventEndIndex": 1}}
        for event in events:
            with self._lock:
                self._streams[name].append(event["message"])
            self.on_line(name[0], event["message"])
        return {"nextSequenceToken": str(len(self._streams[name]))}
