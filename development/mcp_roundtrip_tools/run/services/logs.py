"""CloudWatch Logs as far as audit records need it: streams and their events, with AWS's limits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_roundtrip_tools.run.http.messages import Request, Response

MAX_BODY: Final = 2 * 1024 * 1024

MAX_BATCH: Final = 1_048_576
"""Bytes of a batch: those of its messages, and `EVENT_OVERHEAD` for each."""

EVENT_OVERHEAD: Final = 26

TOO_NEW_MS: Final = 2 * 3_600_000
TOO_OLD_MS: Final = 14 * 86_400_000
"""How far the time of an event may be from the time of the request."""

_HEADERS: Final = (("Content-Type", "application/x-amz-json-1.1"),)


class LogsFault(Exception):
    """An error response of CloudWatch Logs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class FakeLogs:
    """Log groups, streams and events. Thread-safe.

    `has_group` returns whether a log group exists. `on_line` is called with the group and each message.
    `calls` has the operations of all requests.
    """

    def __init__(
        self,
        has_group: Callable[[str], bool],
        on_line: Callable[[str, str], None] = lambda group, message: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._has_group = has_group
        self._on_line = on_line
        self._clock = clock
        self._lock = threading.Lock()
        self._streams: dict[tuple[str, str], list[str]] = {}
        self.calls: list[str] = []

    def lines(self, group: str) -> list[str]:
        """Return the messages of a group, stream by stream."""
        with self._lock:
            return [line for (found, _), stream in self._streams.items() if found == group for line in stream]

    def respond(self, request: Request) -> Response:
        """Answer one request, also with an error response."""
        operation = (request.header("x-amz-target") or "").rpartition(".")[2]
        self.calls.append(operation)
        try:
            given = json.loads(request.body)
            name = str(given.get("logGroupName")), str(given.get("logStreamName"))
            if not self._has_group(name[0]):
                raise LogsFault("ResourceNotFoundException", "The specified log group does not exist.")
            match operation:
                case "CreateLogStream":
                    answer = self._create_log_stream(name)
                case "PutLogEvents":
                    answer = self._put_log_events(name, given.get("logEvents") or [])
                case _:
                    raise LogsFault("UnknownOperationException", f"{operation!r} is not emulated")
            return Response(200, _HEADERS, json.dumps(answer).encode() if answer else b"")
        except LogsFault as fault:
            return Response(400, _HEADERS, json.dumps({"__type": fault.code, "message": str(fault)}).encode())

    def _create_log_stream(self, name: tuple[str, str]) -> dict[str, Any]:
        with self._lock:
            if name in self._streams:
                raise LogsFault("ResourceAlreadyExistsException", "The specified log stream already exists")
            self._streams[name] = []
        return {}

    def _put_log_events(self, name: tuple[str, str], events: list[Mapping[str, Any]]) -> dict[str, Any]:
        if name not in self._streams:
            raise LogsFault("ResourceNotFoundException", "The specified log stream does not exist.")
        times = [event["timestamp"] for event in events]
        size = sum(len(event["message"].encode()) + EVENT_OVERHEAD for event in events)
        if not events or times != sorted(times) or size > MAX_BATCH:
            text = f"a batch has events in the order of their times, and at most {MAX_BATCH} bytes"
            raise LogsFault("InvalidParameterException", text)
        now_ms = self._clock() * 1000
        if times[-1] > now_ms + TOO_NEW_MS:
            return {"rejectedLogEventsInfo": {"tooNewLogEventStartIndex": 0}}
        if times[0] < now_ms - TOO_OLD_MS:
            return {"rejectedLogEventsInfo": {"tooOldLogEventEndIndex": 1}}
        for event in events:
            with self._lock:
                self._streams[name].append(event["message"])
            self._on_line(name[0], event["message"])
        return {"nextSequenceToken": str(len(self._streams[name]))}
