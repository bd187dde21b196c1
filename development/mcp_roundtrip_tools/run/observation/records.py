"""The records of requests and invocations: what they contain, what caused them, and what they wait for.

A record grows while what it describes goes on. The recorder sets the duration last.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from mcp_roundtrip_tools.client.http import json_object, last_message
from mcp_roundtrip_tools.run.http.messages import Request, Response

MAX_LINES: Final = 1_000
"""The log lines that an invocation keeps, the newest."""

Trigger = Literal["http", "invoke", "async", "retry", "queue", "direct"]
"""What starts an invocation: a request to the HTTP API, a function that waits for the result, an asynchronous
invocation, its repetition after a failure, a message of a queue, or `LocalApp.invoke`."""


@dataclass(frozen=True, slots=True)
class Cause:
    """`caller` is the id of a request or an invocation."""

    trigger: Trigger = "direct"
    caller: str | None = None


_cause: ContextVar[Cause] = ContextVar("cause", default=Cause())  # noqa: B039 - it is immutable


def current_cause() -> Cause:
    """Return the cause of an invocation that starts now."""
    return _cause.get()


@contextmanager
def caused_by(trigger: Trigger, caller: str | None) -> Iterator[None]:
    """Set the cause until the block ends."""
    token = _cause.set(Cause(trigger, caller))
    try:
        yield
    finally:
        _cause.reset(token)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a function printed. A traceback of the runtime has several lines."""

    at_ms: float
    text: str


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A request of a function to an emulated AWS service, by its name in signatures, such as ``dynamodb``.

    `detail` names the table, key, queue, bucket or function. `status` is that of the HTTP response.
    `journal_keys` are the keys of each item of a task's journal that the request has written.
    """

    service: str
    operation: str
    detail: str
    status: int
    started_at_ms: float
    duration_ms: float
    journal_keys: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, eq=False)
class RecordedInvocation:
    """An invocation of a function.

    `request_id` is Lambda's. `id` is the same; repetitions of an asynchronous invocation, which have the same
    request id, add ``#2`` and ``#3``. `caller` is the id of the request or invocation that caused it, or
    None. `init_ms` is the duration of the initialization in a new execution environment, else None. While the
    function runs, `duration_ms` and `response` are None. `error` is the error type and message if it failed.
    `init_failed`: the function could not be imported, so it did not run.
    `invocations` are those for whose result it waited. `root` is the request or invocation that led to it, or
    itself.
    """

    request_id: str
    function: str
    environment_id: str
    is_new_environment: bool
    trigger: Trigger
    caller: str | None
    started_at_ms: float
    payload: bytes
    id: str = ""
    init_ms: float | None = None
    init_failed: bool = False
    duration_ms: float | None = None
    response: bytes | None = None
    error: str | None = None
    service_calls: list[ServiceCall] = field(default_factory=list)
    log_lines: deque[LogLine] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    invocations: list[RecordedInvocation] = field(default_factory=list)
    root: Root = field(init=False, repr=False)
    changed: int = 0

    def __post_init__(self) -> None:
        self.root = self

    @property
    def failed(self) -> bool:
        return self.error is not None


@dataclass(slots=True, eq=False)
class HttpExchange:
    """A request to the HTTP API and its response; until that is sent, it and `duration_ms` are None.

    `id` is the value of the response header `apigw-requestid`.
    """

    id: str
    started_at_ms: float
    request: Request
    duration_ms: float | None = None
    response: Response | None = None
    invocations: list[RecordedInvocation] = field(default_factory=list)
    changed: int = 0

    @property
    def path(self) -> str:
        """The path without the query, which may contain secrets."""
        return self.request.target.partition("?")[0]

    @property
    def status(self) -> int | None:
        return None if self.response is None else self.response.status

    @property
    def root(self) -> Root:
        return self


Root = HttpExchange | RecordedInvocation
"""A request, or an invocation for whose result neither a request nor a function waits.

`changed` is the sequence number of the last change (`RunRecorder.changed_after`).
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """A root has ended."""

    root: Root


@dataclass(frozen=True, slots=True)
class Printed:
    """A function printed a line."""

    invocation: RecordedInvocation
    line: LogLine


@dataclass(frozen=True, slots=True)
class Note:
    """The local runner says something: a function restarted, a message was dropped."""

    at_ms: float
    text: str


Event = Ended | Printed | Note


def walk(root: Root) -> Iterator[RecordedInvocation]:
    """Yield the invocations of a root; a caller precedes those that it caused."""
    if isinstance(root, RecordedInvocation):
        yield root
    for invocation in root.invocations:
        yield from walk(invocation)


def request_message(exchange: HttpExchange) -> dict[str, Any]:
    """Return the JSON-RPC message of a request; an empty object if there is none."""
    return json_object(exchange.request.body)


def response_message(exchange: HttpExchange) -> dict[str, Any]:
    """Return the JSON-RPC response; an empty object if there is none."""
    body = b"" if exchange.response is None else exchange.response.body
    return last_message(body.decode("utf-8", "replace"))


def is_challenge(exchange: HttpExchange) -> bool:
    """Return whether a response asks for a token, which the request did not have (RFC 6750 §3)."""
    return exchange.status == 401 and not exchange.request.header("authorization")


def member(document: Any, *path: str) -> Any:
    """Return a nested member of a JSON object, or None."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def members(record: object, *names: str) -> dict[str, Any]:
    """Return attributes of a record by their names in JSON, such as `startedAtMs` for `started_at_ms`."""
    return {re.sub("_(.)", lambda found: found[1].upper(), name): getattr(record, name) for name in names}
