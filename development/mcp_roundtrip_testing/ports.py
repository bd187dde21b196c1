"""Ports for tests: keys in memory, a fake clock, recording observers."""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_roundtrip.auth.callers import Authenticator, AuthMode, EventAuthenticator
from mcp_roundtrip.deployment.ports import AuditLog, Ports
from mcp_roundtrip.deployment.settings import PREFIX, Settings
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import ForwardingFailed, SettingsError
from mcp_roundtrip.state.claims import Binding, Limits, OpenState
from mcp_roundtrip.state.codec import STATE_TYP, RequestStateCodec
from mcp_roundtrip.state.jwe import EpochKeys, short_key_id
from mcp_roundtrip.state.jws import Backoff, LocalKey
from mcp_roundtrip.state.signing_key_certificates import TrustedKeys
from mcp_roundtrip.state.url_elicitation_links import Links
from mcp_roundtrip_testing.task_table import FakeClock, TaskTable


class LocalMacKey:
    """A `MacKey` whose secret is in memory."""

    def __init__(self, key_id: str, secret: bytes) -> None:
        self.short_key_id = short_key_id(key_id)
        self._secret = secret

    def mac(self, message: bytes) -> bytes:
        return hmac.digest(self._secret, message, "sha256")


_RECORD_ATTRIBUTES = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}


@dataclass(slots=True)
class RecordingObserver:
    """Records each event with its fields, and each failure."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failures: list[tuple[str, BaseException]] = field(default_factory=list)
    tags: dict[str, Any] = field(default_factory=dict)

    def begin(self, correlation_id: str) -> bool:
        """Remove the tags of the previous invocation; return False, because only tests have this observer."""
        self.tags.clear()
        return False

    def redact(self, values: Callable[[], Iterable[Any]]) -> None:
        """Redact nothing in tests."""

    def count_aws_call(self, service: str) -> None:
        """Do nothing: tests count calls at their destination."""

    def tag(self, **fields: Any) -> None:
        self.tags |= fields

    def record(self, event: str, **fields: Any) -> None:
        assert fields.keys().isdisjoint(_RECORD_ATTRIBUTES), "logging refuses these names"
        self.events.append((event, fields))

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        self.record(event, **fields)
        self.failures.append((event, error))

    def on_exception(self, error: BaseException) -> None:
        """Do nothing: the test sees the exception as the cause of its failure."""

    def extend(self, other: RecordingObserver) -> None:
        """Append the records of another observer."""
        self.events += other.events
        self.failures += other.failures


@dataclass(slots=True)
class RequestObserver:
    """Forwards the records of one request: `changed` are keys of questions, `completed` fields of the log."""

    observer: Any
    errors: list[BaseException] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    completed: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.observer, name)

    def record(self, event: str, **fields: Any) -> None:
        if event == "question_changed":
            self.changed.append(fields["key"])
        if event == "request_completed":
            self.completed = fields
        self.observer.record(event, **fields)

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        if event != "step_failed":  # the tool continues
            self.errors.append(error)
        self.observer.record_failure(event, error, **fields)

    def on_exception(self, error: BaseException) -> None:
        self.errors.append(error)


if TYPE_CHECKING:
    from mcp_roundtrip.observing.opentelemetry_tracer import Tracer

T = TypeVar("T")

STATE_KEYS = ("state_key_arn", "state_encryption_key_arn")
"""The settings without which there are no states."""

ISSUER = "urn:mcp-roundtrip:test"
AUDIENCE = "https://mcp.test/mcp"


@dataclass(frozen=True, slots=True)
class RecordingCodec:
    """A codec that records in `journals` each journal that it seals."""

    codec: RequestStateCodec
    journals: list[Journal] = field(default_factory=list)

    def seal(
        self,
        binding: Binding,
        payload: Any,
        *,
        round: int,  # noqa: A002 - the claim's name
        first_issued_at: int | None,
    ) -> str:
        with suppress(StateRejected):  # the state of a parked call holds no journal
            self.journals.append(Journal.from_json(payload))
        return self.codec.seal(binding, payload, round=round, first_issued_at=first_issued_at)

    def open(self, binding: Binding, token: Any) -> OpenState:
        return self.codec.open(binding, token)


_MAC_KEY = LocalMacKey("test", bytes(32))


def make_codec(key: LocalKey, clock: Callable[[], float], limits: Limits | None = None) -> RequestStateCodec:
    """Return the codec of deployments, including encryption, with both keys in memory."""
    limits = limits or Limits()
    renewals = Backoff(clock)
    epochs = EpochKeys(
        [_MAC_KEY], STATE_TYP, limits, issuer=ISSUER, clock=clock, random=lambda: 0.5, renewals=renewals
    )
    return RequestStateCodec(lambda: key, TrustedKeys(key), epochs, limits, clock, secrets.token_bytes)


def make_ports(
    *,
    key: LocalKey | None = None,
    clock: FakeClock | None = None,
    limits: Limits | None = None,
    observer: RecordingObserver | None = None,
    auth: Authenticator | None = None,
    authorization_server: str | None = None,
    state_codec: Callable[[], Any] | None = None,
    allowed_origins: frozenset[str] = frozenset(),
    max_rounds: int = 9,
    forward: Callable[[str, Mapping[str, Any], Mapping[str, Any], int], Any] | None = None,
    tasks: TaskTable | None = None,
    server_card: str | None = None,
    tracer: Tracer | None = None,
    audit: AuditLog | None = None,
    unset: Collection[str] = (),
    random_bytes: Callable[[int], bytes] = secrets.token_bytes,
) -> Ports:
    """Return ports within this process. Share `key` to share states. `unset` settings raise SettingsError.

    `random_bytes` makes the random values of features; keys, tokens and their nonces are always random.
    """
    time = clock or FakeClock()
    signer = key or LocalKey.generate()
    codec = make_codec(signer, time, limits)
    links = Links(signer, signer, ISSUER, AUDIENCE, time, secrets.token_bytes)
    return Ports(
        settings=Settings(
            AuthMode.JWT,
            token_issuer=authorization_server,
            issuer=ISSUER,
            audience=None if "audience" in unset else AUDIENCE,
            allowed_origins=allowed_origins,
            task_table=None if tasks is None or "task_table" in unset else "tasks",
            task_worker=None if "task_worker" in unset else "worker:1",
            task_delivery="queue" if "task_queue" in unset else "invoke",
            max_rounds=max_rounds,
            server_card=server_card,
        ),
        authenticator=auth or EventAuthenticator(AuthMode.NONE),
        observer=observer or RecordingObserver(),
        clock=time,
        clock_ms=time.monotonic_ms,
        pause_ms=lambda duration_ms: time.advance(duration_ms / 1000),
        pause_ms_async=time.pause_ms_async,
        wait_ms=lambda event, duration_ms: event.wait(),  # no time passes during a pass
        random_bytes=random_bytes,
        state_codec=_unless_unset(unset, state_codec or (lambda: codec), *STATE_KEYS),
        links=_unless_unset(unset, lambda: links, "state_key_arn"),
        forward=forward or _refuse_forwarding,
        tasks=_unless_unset(unset, (tasks or TaskTable(time)).tasks, "task_table"),
        tracer=tracer,
        audit=audit,
    )


def _unless_unset(unset: Collection[str], make: Callable[[], T], *settings: str) -> Callable[[], T]:
    """Return a function that raises SettingsError if one of the settings has no value; otherwise `make`."""
    missing = next((setting for setting in settings if setting in unset), None)
    if missing is None:
        return make

    def fail() -> T:
        raise SettingsError(f"{PREFIX}{missing.upper()}", "is not set in this deployment")

    return fail


def _refuse_forwarding(
    owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
) -> Any:
    raise ForwardingFailed(f"requests to {owner} are not forwarded in tests: pass make_ports(forward=...)")
