"""The records of requests and invocations: what they contain, what caused them, and what they wait for."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal


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


def request_message(exchange: HttpExchange) -> dict[str, Any]:
    """Return the JSON-RPC message of a request; an empty object if there is none."""
    return json_object(exchange.request_body)


def response_message(exchange: HttpExchange) -> dict[str, Any]:
    """Return the JSON-RPC response; an empty object if there is none.

    In an event stream, notifications precede it.
    """
    if not header(exchange.response_headers, "content-type").startswith("text/event-stream"):
        return json_object(exchange.response_body)
    found: dict[str, Any] = {}
    for line in exchange.response_body.splitlines():
        if line.startswith(b"data:"):
            message = json_object(line.removeprefix(b"data:"))
            found = message if message.keys() & {"result", "error"} else found
    return found


def header(headers: Headers, name: str) -> str:
    """Return the first value of a header in lower case; an empty text if it is absent."""
    return next((value for key, value in headers if key.lower() == name), "")


def is_challenge(exchange: HttpExchange) -> bool:
    """Return whether a response asks for a token, which the request did not have (RFC 6750 §3)."""
    return exchange.status == 401 and not header(exchange.request_headers, "authorization")


def member(document: Any, *path: str) -> Any:
    """Return a nested member of a JSON object, or None."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; an empty one if there is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


Headers = tuple[tuple[str, str], ...]

Trigger = Literal["http", "invoke", "async", "retry", "queue", "direct"]
"""What starts an invocation: a request to the HTTP API, a function that waits for the result, an asynchronous
invocation, its repetition after a failure, a message of a queue, or `LocalApp.invoke`."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a function printed. A traceback of the runtime has several lines."""

    at_ms: float
    text: str


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A request of a function to an emulated AWS service.

    `service` is its name in signatures, such as ``dynamodb``. `detail` names the table, key, queue, bucket or
    function. `status` is that of the HTTP response.
    """

    service: str
    operation: str
    detail: str
    status: int
    started_at_ms: float
    duration_ms: float


@dataclass(frozen=True, slots=True)
class RecordedInvocation:
    """An invocation of a function.

    `id` is Lambda's request id; repetitions of an asynchronous invocation, which have the same request id,
    add ``#2`` and ``#3``. `caller` is the id of the request or invocation that caused it, or None. `init_ms`
    is the duration of the initialization in a new execution environment, else None. While the function runs,
    `duration_ms` and `response` are None. `error` is the error type and message if it failed. `invocations`
    are those for whose result it waited. A function that cannot run has no environment: its id is empty, and
    `error` is the reason.
    """

    id: str
    request_id: str
    function: str
    environment_id: str
    is_new_environment: bool
    trigger: Trigger
    caller: str | None
    started_at_ms: float
    payload: bytes
    init_ms: float | None = None
    duration_ms: float | None = None
    response: bytes | None = None
    failed: bool = False
    error: str | None = None
    service_calls: tuple[ServiceCall, ...] = ()
    log_lines: tuple[LogLine, ...] = ()
    invocations: tuple[RecordedInvocation, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """A request to the HTTP API and its response.

    `id` is the value of the response header `apigw-requestid`. `path` has no query, which may contain
    secrets. Until the response is sent, `duration_ms` and `status` are None. The client that the console
    plays has sent a request that is `from_console`.
    """

    id: str
    started_at_ms: float
    method: str
    path: str
    request_headers: Headers
    request_body: bytes
    from_console: bool = False
    duration_ms: float | None = None
    status: int | None = None
    response_headers: Headers = ()
    response_body: bytes = b""
    invocations: tuple[RecordedInvocation, ...] = ()


Root = HttpExchange | RecordedInvocation
"""The root of a tree: a request, or an invocation for whose result neither a request nor a function waits."""


def walk(root: Root) -> Iterator[RecordedInvocation]:
    """Yield the invocations of a tree; a caller precedes those that it caused."""
    if isinstance(root, RecordedInvocation):
        yield root
    for invocation in root.invocations:
        yield from walk(invocation)


@dataclass(frozen=True, slots=True)
class Changes:
    """The ids of the roots that changed after a sequence number, and the present sequence number."""

    sequence: int
    exchanges: tuple[str, ...]
    invocations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Began:
    """A root has begun."""

    root: Root


@dataclass(frozen=True, slots=True)
class Ended:
    """A root has ended."""

    root: Root


@dataclass(frozen=True, slots=True)
class Printed:
    """A function printed a line, in the tree of the root `root_id`."""

    root_id: str
    function: str
    environment_id: str
    line: LogLine


@dataclass(frozen=True, slots=True)
class Note:
    """The local runner says something: a function restarted, a message was dropped."""

    at_ms: float
    text: str


Event = Began | Ended | Printed | Note


MAX_LINES = 1_000
"""The log lines that an invocation keeps, the newest."""


@dataclass(slots=True)
class InvocationNode:
    """An invocation of a tree. `record` is without the parts that are listed here."""

    record: RecordedInvocation
    tree: Tree
    service_calls: list[ServiceCall] = field(default_factory=list)
    log_lines: deque[LogLine] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    invocations: list[InvocationNode] = field(default_factory=list)

    def add_line(self, line: LogLine) -> int:
        """Add a line, and return by how many bytes the size grows: the oldest line may be dropped."""
        is_full = len(self.log_lines) == MAX_LINES
        dropped = len(self.log_lines[0].text) if is_full else 0
        self.log_lines.append(line)
        return len(line.text) - dropped

    def freeze(self) -> RecordedInvocation:
        return replace(
            self.record,
            service_calls=tuple(self.service_calls),
            log_lines=tuple(self.log_lines),
            invocations=tuple(node.freeze() for node in self.invocations),
        )


@dataclass(slots=True)
class Tree:
    """A root with its invocations.

    `exchange` is None if the root is an invocation, which is then the only one of `invocations`. `size` is
    that of bodies, headers, lines and calls in bytes. `changed` is the sequence number of the last change.
    """

    id: str
    exchange: HttpExchange | None
    size: int = 0
    changed: int = 0
    invocations: list[InvocationNode] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    """The ids of all invocations of the tree."""

    @property
    def has_ended(self) -> bool:
        root = self.exchange or self.invocations[0].record
        return root.duration_ms is not None

    def freeze(self) -> HttpExchange | RecordedInvocation:
        if self.exchange is None:
            return self.invocations[0].freeze()
        return replace(self.exchange, invocations=tuple(node.freeze() for node in self.invocations))
