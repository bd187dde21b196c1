"""One Lambda invocation: its correlation id, its deadline, and what a front door sent with the call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol.constants import TRACEPARENT
from mcp_roundtrip.protocol.http import MAX_RESPONSE_BYTES
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR

_DEADLINE: Final = "mcpDeadlineMs"
_CORRELATION_ID: Final = "mcpCorrelationId"
_SERVER_INFO: Final = "mcpServerInfo"
_HIDE_UNAUTHORIZED: Final = "mcpHideUnauthorized"
_CATALOG_DIGEST: Final = "mcpCatalogDigest"
_TRACE: Final = "mcpTrace"

CATALOG_DRIFT_REMEDY: Final = "run `make catalog`, and deploy the front door together with this function"
"""The `remedy` of the log event `catalog_drift`."""

MAX_OWNER_TIMEOUT_S: Final = 26
"""Longest time in seconds that a front door waits for the function that owns a feature."""


def owner_timeout_s(remaining_ms: float) -> int:
    """Return how many whole seconds a front door waits for the owner, given its own remaining time.

    One second is kept for connecting, so that the front door answers before the API gateway gives up.
    """
    return max(1, min(MAX_OWNER_TIMEOUT_S, int(remaining_ms / 1_000) - 1))


class Forwarded(Struct, frozen=True):
    """Data that a front door sends with a call, in the `custom` member of the Lambda client context.

    Only a caller with lambda:InvokeFunction can set it, and such a caller could write the whole event.

    `deadline_ms`: when the front door stops waiting, in epoch milliseconds.
    `correlation_id`: the id that the logs of both functions share.
    `server_info`: the front door's Implementation object, which results carry instead of the owner's.
    `catalog_digest`: the digest of the owner's features in the front door's catalog.
    `hide_unauthorized`: whether features that the caller may not use are reported as unknown.
    `trace`: the context of the front door's span (see `observing.tracer`).
    """

    deadline_ms: float | None = None
    correlation_id: str | None = None
    server_info: Mapping[str, Any] | None = None
    hide_unauthorized: bool = False
    catalog_digest: str | None = None
    trace: str | None = None

    @classmethod
    def read(cls, lambda_context: Any) -> Forwarded:
        """Read the client context of an invocation; members of the wrong type are ignored."""
        custom = getattr(getattr(lambda_context, "client_context", None), "custom", None)
        if not isinstance(custom, Mapping):
            return _NOT_FORWARDED
        deadline = custom.get(_DEADLINE)
        correlation_id, catalog_digest = custom.get(_CORRELATION_ID), custom.get(_CATALOG_DIGEST)
        trace = custom.get(_TRACE)
        return cls(
            deadline if isinstance(deadline, (int, float)) else None,
            correlation_id if isinstance(correlation_id, str) else None,
            _implementation(custom.get(_SERVER_INFO)),
            custom.get(_HIDE_UNAUTHORIZED) is True,
            catalog_digest if isinstance(catalog_digest, str) else None,
            trace if isinstance(trace, str) and re.fullmatch(TRACEPARENT, trace) else None,
        )

    def custom(self) -> dict[str, Any]:
        """Return the `custom` member of the client context."""
        return {
            _DEADLINE: self.deadline_ms,
            _CORRELATION_ID: self.correlation_id,
            _SERVER_INFO: self.server_info,
            _HIDE_UNAUTHORIZED: self.hide_unauthorized,
            _CATALOG_DIGEST: self.catalog_digest,
            **({} if self.trace is None else {_TRACE: self.trace}),
        }


_NOT_FORWARDED: Final = Forwarded()


def _implementation(value: Any) -> Mapping[str, Any] | None:
    """Return `value` if it is an Implementation object with text members only."""
    if isinstance(value, Mapping) and {"name", "version"} <= value.keys():
        return value if all(isinstance(member, str) for member in value.values()) else None
    return None


class Operation(Protocol):
    """An audited operation (`server.audited_operation`). The types of its arguments need this module."""

    def tag(self, **fields: Any) -> None: ...
    def note_request(self, context: Any, *, is_admitted: bool = True) -> None: ...
    def note_feature(self, item: Any, required: Sequence[str], context: Any) -> None: ...
    def begin(self, call: Any, flow: str, run: Any = None) -> None: ...
    def begin_task(self, task: Any, call: Any) -> None: ...
    def begin_answers(self, tool: str, task: Any, responses: Mapping[str, Any]) -> None: ...

    def note_unread_request(
        self, request: Any, invocation: Any, options: Any, find_feature: Callable[[Any], object]
    ) -> None: ...


T = TypeVar("T")
Context = TypeVar("Context")
Call = TypeVar("Call")
PassRun = TypeVar("PassRun")


class Spans(Protocol):
    """The spans of an invocation (`server.spans`). The types of their arguments need this module."""

    def message(self, handler: Callable[[Context], T], context: Context) -> T: ...

    def forwarded(self, method: str, feature: str) -> None: ...

    def run_pass(self, call: Call, run: PassRun, run_pass: Callable[[Call, PassRun], T]) -> T: ...

    def create_task(self, call: Any, journal: Any, create: Callable[..., T]) -> T: ...


class Invocation(Struct, frozen=True):
    """Facts about the Lambda invocation.

    `correlation_id`: the id that error messages quote, and every log line carries.
    `deadline_ms`: when the response has to leave, on the monotonic clock of `Ports.clock_ms`.
    `max_response_bytes`: how many bytes of response body the event source accepts.
    `operation`: the audited operation; None if there are no audit records.
    `spans`: None if nothing is traced.
    """

    correlation_id: str
    deadline_ms: float
    lambda_context: Any = None
    event: Mapping[str, Any] | None = None
    forwarded: Forwarded = _NOT_FORWARDED
    max_response_bytes: int = MAX_RESPONSE_BYTES
    operation: Operation | None = None
    spans: Spans | None = None


def invocation_id(lambda_context: Any) -> str:
    """Return Lambda's request id; "unknown" outside of Lambda."""
    return getattr(lambda_context, "aws_request_id", None) or "unknown"


def internal_error(correlation_id: str) -> ProtocolError:
    """Return a -32603 error that contains nothing but the correlation id of the log lines."""
    return ProtocolError(INTERNAL_ERROR, f"Internal error. Quote {correlation_id} to the server's operator.")
