"""The types of a Lambda invocation: its correlation id, its deadline, and what a front door sent with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, ValidationError, convert, to_builtins

from mcp_roundtrip.deployment.ports import Observer
from mcp_roundtrip.errors import DefinitionError, ProtocolError
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.protocol.http import MAX_RESPONSE_BYTES
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR

CATALOG_DRIFT_REMEDY: Final = "run `make catalog`, and deploy the front door together with this function"
"""The `remedy` of the log event `catalog_drift`."""

MAX_OWNER_TIMEOUT_S: Final = 26
"""Longest time in seconds that a front door waits for the function that owns a feature."""


def owner_timeout_s(remaining_ms: float) -> int:
    """Return how many seconds a front door waits for the owner, to answer before the API gateway gives up."""
    return max(1, min(MAX_OWNER_TIMEOUT_S, int(remaining_ms / 1_000) - 1))  # one second is for connecting


class Forwarded(Struct, frozen=True, rename=lambda name: "mcp" + name.title().replace("_", "")):
    """Data that a front door sends with a call, in the `custom` member of the Lambda client context.

    The name of `deadline_ms` is `mcpDeadlineMs` there, and so on.

    Only a caller with lambda:InvokeFunction can set it, and such a caller could write the whole event.

    `deadline_ms`: when the front door stops waiting, in epoch milliseconds.
    `correlation_id`: the id that the logs of both functions share.
    `server_info`: the front door's Implementation object, which results carry instead of the owner's.
    `catalog_digest`: the digest of the owner's features in the front door's catalog.
    `hide_unauthorized`: whether features that the caller may not use are reported as unknown.
    `trace`: the context of the front door's span (see `observing.opentelemetry_tracer`).
    """

    deadline_ms: float | None = None
    correlation_id: str | None = None
    server_info: Mapping[str, str] | None = None
    hide_unauthorized: bool = False
    catalog_digest: str | None = None
    trace: str | None = None

    @classmethod
    def read(cls, lambda_context: Any) -> Forwarded:
        """Read the client context of an invocation; one with members of other types is ignored."""
        custom = getattr(getattr(lambda_context, "client_context", None), "custom", None)
        if custom is None:
            return _NOT_FORWARDED
        try:
            return convert(custom, cls)
        except ValidationError:
            return _NOT_FORWARDED

    def custom(self) -> dict[str, Any]:
        members: dict[str, Any] = to_builtins(self)
        if self.trace is None:
            del members["mcpTrace"]
        return members


_NOT_FORWARDED: Final = Forwarded()


class Operation:
    """An operation without audit records (see `server.auditing`). `Any`: their modules import this one."""

    def tag(self, **fields: Any) -> None: ...
    def note_request(self, context: Any, *, is_admitted: bool = True) -> None: ...
    def note_feature(self, item: Any, required: Sequence[str], context: Any) -> None: ...
    def begin(self, call: Any, flow: str, run: Any = None) -> None: ...
    def begin_task(self, task: Any, call: Any) -> None: ...
    def begin_answers(self, tool: str, task: Any, responses: Mapping[str, Any]) -> None: ...
    def end_request(self, event: str, fields: Mapping[str, Any], reply: Any = None) -> None: ...


class Spans(Struct, frozen=True):
    """The spans of an invocation without traces (see `server.spans`). `Any`: see `Operation`."""

    def message(self, handler: Callable[[Any], Any], context: Any) -> Any:
        return handler(context)

    def forwarded(self, method: str, feature: str) -> None: ...

    def run_pass(self, call: Any, run: Any, run_pass: Callable[[Any, Any], Any]) -> Any:
        return run_pass(call, run)

    def create_task(self, call: Any, journal: Any, create: Callable[..., Any]) -> Any:
        return create()


class Invocation(Struct, frozen=True):
    """Facts about the Lambda invocation.

    `correlation_id`: the id that error messages quote, and every log line carries.
    `deadline_ms`: when the response has to leave, on the monotonic clock of `Ports.clock_ms`.
    `max_response_bytes`: how many bytes of response body the event source accepts.
    """

    correlation_id: str
    deadline_ms: float
    lambda_context: Any = None
    event: Mapping[str, Any] = {}
    forwarded: Forwarded = _NOT_FORWARDED
    max_response_bytes: int = MAX_RESPONSE_BYTES
    operation: Operation = Operation()
    spans: Spans = Spans()


def invocation_id(lambda_context: Any) -> str:
    """Return Lambda's request id; "unknown" outside of Lambda."""
    return getattr(lambda_context, "aws_request_id", None) or "unknown"


def internal_error(correlation_id: str) -> ProtocolError:
    """Return a -32603 error that contains nothing but the correlation id of the log lines."""
    return ProtocolError(INTERNAL_ERROR, f"Internal error. Quote {correlation_id} to the server's operator.")


def log_fault(observer: Observer, error: Exception) -> None:
    """Log a wrong setting, a wrong definition, or a fault of this library."""
    events = {SettingsError: "misconfigured", DefinitionError: "definition_failed"}
    observer.record_failure(events.get(type(error), "internal_error"), error)
