"""CloudWatch Logs as far as audit records need it: streams and their events.

It is as strict as AWS about names, sizes and times of events.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_roundtrip_tools.run.http.messages import Request, Response

MAX_BODY: Final = 2 * 1024 * 1024

MAX_BATCH: Final = 1_048_576
"""Bytes of a batch: those of its messages, and `EVENT_OVERHEAD` for each."""

EVENT_OVERHEAD: Final = 26

MAX_EVENTS: Final = 10_000

TOO_NEW_MS: Final = 2 * 3_600_000
TOO_OLD_MS: Final = 14 * 86_400_000
"""How far the time of an event may be from the time of the request."""

_STREAM: Final = re.compile(r"[^:*]{1,512}")

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
        service, _, operation = (request.header("x-amz-target") or "").partition(".")
        self.calls.append(operation)
        try:
            if service != "Logs_20140328" or operation not in _OPERATIONS:
                raise LogsFault("UnknownOperationException", f"{operation!r} is not emulated")
            answer = _OPERATIONS[operation](self, json.loads(request.body))
            return Response(200, _HEADERS, json.dumps(answer).encode() if answer else b"")
        except LogsFault as fault:
            return Response(400, _HEADERS, json.dumps({"__type": fault.code, "message": str(fault)}).encode())

    def _create_log_stream(self, given: Mapping[str, Any]) -> dict[str, Any]:
        name = self._name(given)
        with self._lock:
            if name in self._streams:
                raise LogsFault("ResourceAlreadyExistsException", "The specified log stream already exists")
            self._streams[name] = []
        return {}

    def _put_log_events(self, given: Mapping[str, Any]) -> dict[str, Any]:
        name, events = self._name(given), given.get("logEvents") or []
        with self._lock:
            if name not in self._streams:
                raise LogsFault("ResourceNotFoundException", "The specified log stream does not exist.")
        _check_batch(events)
        now_ms = self._clock() * 1000
        for event in events:
            if event["timestamp"] > now_ms + TOO_NEW_MS:
                return {"rejectedLogEventsInfo": {"tooNewLogEventStartIndex": 0}}
            if event["timestamp"] < now_ms - TOO_OLD_MS:
                return {"rejectedLogEventsInfo": {"tooOldLogEventEndIndex": 1}}
        for event in events:
            with self._lock:
                self._streams[name].append(event["message"])
            self._on_line(name[0], event["message"])
        return {"nextSequenceToken": str(len(self._streams[name]))}

    def _name(self, given: Mapping[str, Any]) -> tuple[str, str]:
        group, stream = str(given.get("logGroupName")), str(given.get("logStreamName"))
        if not _STREAM.fullmatch(stream):
            raise LogsFault("InvalidParameterException", "a stream's name has neither : nor *")
        if not self._has_group(group):
            raise LogsFault("ResourceNotFoundException", "The specified log group does not exist.")
        return group, stream


def _check_batch(events: list[Any]) -> None:
    """Check the limits of a batch. Raises LogsFault."""
    if not 1 <= len(events) <= MAX_EVENTS:
        raise LogsFault("InvalidParameterException", f"a batch has 1 to {MAX_EVENTS} events")
    if any(type(event.get("timestamp")) is not int or not event.get("message") for event in events):
        raise LogsFault("InvalidParameterException", "an event has a timestamp and a message")
    if sum(len(event["message"].encode()) + EVENT_OVERHEAD for event in events) > MAX_BATCH:
        raise LogsFault("InvalidParameterException", f"Upload too large: a batch has {MAX_BATCH} bytes")
    times = [event["timestamp"] for event in events]
    if times != sorted(times):
        raise LogsFault("InvalidParameterException", "the events are not in the order of their times")


_OPERATIONS: Final[Mapping[str, Callable[[FakeLogs, Mapping[str, Any]], dict[str, Any]]]] = {
    "CreateLogStream": FakeLogs._create_log_stream,
    "PutLogEvents": FakeLogs._put_log_events,
}
