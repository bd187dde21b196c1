"""The interfaces of the server to time, randomness, keys, tasks and logs. `wiring` creates them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from mcp_roundtrip.auth.callers import Authenticator
    from mcp_roundtrip.deployment.settings import Settings
    from mcp_roundtrip.observing.opentelemetry_tracer import Tracer
    from mcp_roundtrip.state.codec import RequestStateCodec
    from mcp_roundtrip.state.url_elicitation_links import Links
    from mcp_roundtrip.tasks.lease import WaitMs
    from mcp_roundtrip.tasks.service import Tasks


class Observer(Protocol):
    """Receives the events of the server: `observing.logs_and_metrics.LogObserver`.

    Events contain no answers, arguments, tokens or states.
    """

    def begin(self, correlation_id: str) -> bool:
        """Begin an invocation: the following events belong to it. Return whether it is the first one."""

    def tag(self, **fields: Any) -> None:
        """Add fields, such as a flow or a trace, to the following events of this invocation."""

    def redact(self, values: Callable[[], Iterable[Any]]) -> None:
        """Remove the values that this function returns from tracebacks until the next `begin`."""

    def count_aws_call(self, service: str) -> None:
        """Count a request to an AWS service. A retry is another request."""

    def record(self, event: str, **fields: Any) -> None:
        """Record an expected event."""

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """Record an error that someone must look at, with its redacted traceback."""

    def on_exception(self, error: BaseException) -> None:
        """Receive each exception that a feature raises, before `record_failure` receives unexpected ones."""


class AuditLog(Struct, frozen=True):
    """Where audit records are stored. `write` and `hash_key` raise AuditFailed.

    `write`: takes epoch milliseconds and the JSON text of a line, and returns when it is stored.
    `source`: the members of every line: the stack and the function.
    `hash_key`: returns the key of the hashes that identify callers; None if their subjects identify them.
    `trace_header`: returns the X-Ray trace header of the invocation.
    """

    write: Callable[[int, str], None]
    source: Mapping[str, str]
    hash_key: Callable[[], bytes] | None = None
    trace_header: Callable[[], str | None] = lambda: None


class Ports(Struct, frozen=True):
    """All interfaces.

    `clock`, `clock_ms`: return epoch seconds, and monotonic milliseconds.
    `pause_ms`, `pause_ms_async`: return after so many milliseconds; the latter by default with asyncio.
    `wait_ms`: waits for a threading.Event for so many milliseconds, and returns whether it was set.
    `random_bytes`: returns n random bytes.
    `state_codec`, `links`, `tasks`: create the object at its first use, because the imports are slow.
    `forward`: takes owner, event, custom client context and timeout in seconds, and returns the owner's
    response or raises ForwardingFailed.
    `for_endpoint`: returns the ports of an endpoint by its URI (None: unknown), if it is not configured.
    `audit`: where audit records are stored; None if there are none.
    `tracer`: makes spans; None if nothing is traced.
    `catalog_digest`: returns the digest of the function's features with which it was deployed, if it has one.
    """

    settings: Settings
    authenticator: Authenticator
    observer: Observer
    clock: Callable[[], float]
    clock_ms: Callable[[], float]
    pause_ms: Callable[[float], None]
    wait_ms: WaitMs
    random_bytes: Callable[[int], bytes]
    state_codec: Callable[[], RequestStateCodec]
    links: Callable[[], Links]
    forward: Callable[[str, Mapping[str, Any], Mapping[str, Any], int], Any]
    tasks: Callable[[], Tasks]
    for_endpoint: Callable[[str | None], Ports] | None = None
    audit: AuditLog | None = None
    tracer: Tracer | None = None
    pause_ms_async: Callable[[float], Awaitable[None]] | None = None
    catalog_digest: Callable[[], str | None] = lambda: None
