"""What the server is given from outside: time, randomness, keys, an observer. `wiring` puts it together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mcp_roundtrip.http import MAX_BODY_BYTES, MAX_JSON_VALUES

if TYPE_CHECKING:
    from mcp_roundtrip.auth.callers import Authenticator
    from mcp_roundtrip.state.claims import Binding, OpenState
    from mcp_roundtrip.state.links import Links
    from mcp_roundtrip.tasks.service import Dispatcher, Tasks
    from mcp_roundtrip.tasks.store import TaskStore


class States(Protocol):
    """Seals and opens `requestState` (see `state.codec.RequestStateCodec`)."""

    def seal(self, binding: Binding, payload: Any, *, round: int, first_issued_at: int | None) -> str:  # noqa: A002 - the claim's name
        """Raises StateTooLarge, StateRejected (the flow is over) or KeyServiceError."""

    def open(self, binding: Binding, token: Any) -> OpenState:
        """Raises StateRejected or KeyServiceError."""


class Observer(Protocol):
    """Receives the events of the server. Events contain no answers, arguments, tokens or states."""

    def begin(self, correlation_id: str) -> None:
        """Begin an invocation: the following events belong to it."""

    def tag(self, **fields: str) -> None:
        """Add fields, such as a flow or a trace, to the following events of this invocation."""

    def redact(self, values: Callable[[], Iterable[Any]]) -> None:
        """Remove the values that this function returns from tracebacks until the next `begin`."""

    def count_aws_call(self, service: str) -> None:
        """Count a request to an AWS service. A retry is another request."""

    def record(self, event: str, **fields: Any) -> None:
        """Record an expected event."""

    def failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """Record an error that someone must look at, with its redacted traceback."""

    def raised(self, error: BaseException) -> None:
        """Receive every exception that a feature raises, before `failure` is called for an unexpected one."""


@dataclass(frozen=True, slots=True)
class TaskPort:
    """Tasks for clients, and what a worker works with.

    `worker` is the address of who works on new tasks; it raises SettingsError when there is none.
    """

    tasks: Tasks
    store: TaskStore
    dispatcher: Dispatcher
    worker: Callable[[], str]


@dataclass(frozen=True, slots=True)
class DeploymentConfig:
    """What the deployment decided. `issuer` and `audience` raise SettingsError when they are not set.

    `authorization_server` is the issuer that clients are sent to for a token, if there is one.
    """

    authenticator: Authenticator
    allowed_origins: frozenset[str]
    max_rounds: int
    issuer: Callable[[], str]
    audience: Callable[[], str]
    authorization_server: str | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    max_json_values: int = MAX_JSON_VALUES


@dataclass(frozen=True, slots=True)
class Ports:
    """`clock` gives epoch seconds, `clock_ms` monotonic milliseconds, `random_bytes(n)` n random bytes;
    `pause_ms` returns after so many milliseconds, and so does `pause_ms_async`, for coroutines.

    `states`, `links` and `tasks` are made at first use: most calls need none, and their imports are slow.
    `forward` takes (owner, event, custom client context, seconds to wait) and returns the owner's response,
    or raises ForwardingFailed.
    """

    config: DeploymentConfig
    observer: Observer
    clock: Callable[[], float]
    clock_ms: Callable[[], float]
    pause_ms: Callable[[float], None]
    pause_ms_async: Callable[[float], Awaitable[None]]
    random_bytes: Callable[[int], bytes]
    states: Callable[[], States]
    links: Callable[[], Links]
    forward: Callable[[str, Mapping[str, Any], Mapping[str, Any], int], Any]
    tasks: Callable[[], TaskPort]
