"""Ports for tests: a key in memory, a fake clock, a recording observer."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from mcp_roundtrip.auth.callers import Authenticator, AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.deployment.ports import AuditLog, DeploymentConfig, Ports, TaskPort
from mcp_roundtrip.deployment.settings import PREFIX
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import ForwardingFailed, SettingsError
from mcp_roundtrip.state.certificates import TrustedKeys
from mcp_roundtrip.state.claims import Binding, Limits, OpenState
from mcp_roundtrip.state.codec import STATE_TYP, RequestStateCodec
from mcp_roundtrip.state.elicitation_links import Links
from mcp_roundtrip.state.jwe import EpochKeys, MacKey
from mcp_roundtrip.state.jws import LocalKey, RenewalBackoff
from mcp_roundtrip_testing.clock import FakeClock
from mcp_roundtrip_testing.mac_key import LocalMacKey
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.task_table import TaskTable

if TYPE_CHECKING:
    from mcp_roundtrip.observing.tracer import Tracer

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


def make_codec(
    key: LocalKey,
    clock: Callable[[], float],
    limits: Limits | None = None,
    mac_key: MacKey = _MAC_KEY,
    issuer: str = ISSUER,
) -> RequestStateCodec:
    """Return the codec of deployments, including encryption, with both keys in memory."""
    limits = limits or Limits()
    renewals = RenewalBackoff(clock)
    epochs = EpochKeys(
        [mac_key], STATE_TYP, limits, issuer=issuer, clock=clock, random=lambda: 0.5, renewals=renewals
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
) -> Ports:
    """Return ports that stay within the process. Pass the same `key` to environments that share states.

    What needs one of the settings in `unset` raises SettingsError, as in a deployment without them.
    """
    time = clock or FakeClock()
    signer = key or LocalKey.generate()
    codec = make_codec(signer, time, limits)
    links = Links(signer, signer, ISSUER, AUDIENCE, time, secrets.token_bytes)
    return Ports(
        config=DeploymentConfig(
            auth or EventAuthenticator(AuthMode.NONE),
            allowed_origins,
            max_rounds,
            lambda: ISSUER,
            _unless_unset(unset, lambda: AUDIENCE, "audience"),
            authorization_server,
            unset=frozenset(unset if tasks is not None else {"task_table", *unset}),
            server_card=server_card,
        ),
        observer=observer or RecordingObserver(),
        clock=time,
        clock_ms=time.monotonic_ms,
        pause_ms=lambda duration_ms: time.advance(duration_ms / 1000),
        pause_ms_async=time.pause_ms_async,
        wait_ms=lambda event, duration_ms: event.wait(),  # no time passes during a pass
        random_bytes=secrets.token_bytes,
        state_codec=_unless_unset(unset, state_codec or (lambda: codec), *STATE_KEYS),
        links=_unless_unset(unset, lambda: links, "state_key_arn"),
        forward=forward or _refuse_forwarding,
        tasks=_unless_unset(unset, lambda: _task_port(tasks or TaskTable(time), unset), "task_table"),
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


def _task_port(tasks: TaskTable, unset: Collection[str]) -> TaskPort:
    port = tasks.port()
    return replace(port, worker=_unless_unset(unset, port.worker, "task_worker", "task_queue"))


def _refuse_forwarding(
    owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
) -> Any:
    raise ForwardingFailed(f"requests to {owner} are not forwarded in tests: pass make_ports(forward=...)")
