"""Records of HTTP requests and of the invocations that they cause. Times are epoch milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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
