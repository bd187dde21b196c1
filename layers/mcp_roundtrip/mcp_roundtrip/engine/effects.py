"""Recorded values, sleep, the request for a task, and the identifiers that are derived from the flow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from mcp_roundtrip.engine.run import Run, usage_errors
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError
from mcp_roundtrip.journal import Entry, Kind
from mcp_roundtrip.protocol.canonical import canonical_json

LINK_PARAMETER: Final = "mcp_link"

MAX_SLEEP_MS: Final = 10 * 365 * 86_400_000


def replay_or_make(run: Run, key: str, kind: Kind, make: Callable[[], Any]) -> Any:
    """Return the recorded JSON value of `key`, or the one that `make` returns now, journaled."""
    entry = run.recorded_entry(key, kind)
    if entry is None:
        entry = run.record(Entry(key, kind, make()))
    return entry.value


def now(run: Run, key: str) -> datetime:
    """Return the time (UTC, in milliseconds) of the first pass that reached this call."""
    epoch_ms: int = replay_or_make(run, key, Kind.NOW, lambda: int(run.services.clock() * 1000))
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)


def uuid(run: Run, key: str) -> UUID:
    """Return a version 4 UUID."""
    return UUID(
        replay_or_make(run, key, Kind.UUID, lambda: str(UUID(bytes=run.services.random_bytes(16), version=4)))
    )


def random(run: Run, key: str) -> float:
    """Return a float in [0, 1)."""
    return float(replay_or_make(run, key, Kind.RANDOM, lambda: unit_interval(run.services.random_bytes(7))))


def unit_interval(seven_bytes: bytes) -> float:
    """Return a float in [0, 1) with 53 random bits, like random.random()."""
    return (int.from_bytes(seven_bytes, "big") >> 3) / (1 << 53)


def request_task(run: Run, prefix: str, ttl_ms: int) -> bool:
    """Request that the call becomes a task, and return True if the caller has to suspend.

    Returns False if it is a task already, or if its client did not declare the tasks extension.
    """
    run.check_context_usable()
    if prefix:
        raise run.fail(usage_errors().task_in_branch(prefix))
    if type(ttl_ms) is not int or ttl_ms < 1:
        raise run.fail(usage_errors().task_lifetime(ttl_ms))
    if run.is_task:
        return False
    if not run.tasks.is_offered:
        raise run.fail(usage_errors().task_not_offered())
    if run.tasks.may_start:
        run.suspension.become_task(ttl_ms)
    return run.tasks.may_start


def begin_sleep(run: Run, key: str, duration_ms: int) -> bool:
    """Journal when a sleep ends, and return True if the caller has to suspend until then."""
    if not run.is_task:
        raise run.fail(usage_errors().sleep_outside_task(key))
    if type(duration_ms) not in (int, float) or not 0 <= duration_ms <= MAX_SLEEP_MS:
        raise run.fail(usage_errors().sleep_duration(key, duration_ms, MAX_SLEEP_MS))
    clock = run.services.clock
    wake_at_ms: int = replay_or_make(run, key, Kind.WAKE, lambda: int(clock() * 1000 + duration_ms))
    if clock() * 1000 >= wake_at_ms:
        return False
    run.suspension.sleep_until(wake_at_ms)
    return True


def idempotency_key(run: Run, name: str) -> str:
    """Return 32 hexadecimal characters that are the same in all rounds, retries and replays of this flow."""
    return _hexadecimal_digest(f"mcp-rs/v1/idempotency:{run.history.journal.flow_id}:{name}".encode())


def reference(run: Run, prefix: str, name: str) -> str:
    """Return 32 hexadecimal characters that are the same in every call with this caller, tool and arguments.

    The answers before this line are part of the digest, because an approval is about them, too. Anonymous
    callers cannot be distinguished: for them, the reference is the same in this flow only.
    """
    try:
        identity = run.services.call_identity()
    except SettingsError as error:
        raise run.fail(error) from error
    if identity is None:
        return idempotency_key(run, prefix + name)
    named = canonical_json([identity, prefix + name, run.history.answers_before(prefix)])
    return _hexadecimal_digest(b"mcp-rs/v1/reference:" + named)


def _hexadecimal_digest(text: bytes) -> str:
    from hashlib import sha256  # OpenSSL takes 3 ms, and most calls need no digest

    return sha256(text).hexdigest()[:32]


def signed_link(run: Run, key: str, url: str, ttl_ms: int) -> str:
    """Return `url` with a token in its query, journaled so that a question with it does not change."""

    def link() -> str:
        expires_at = int(run.services.clock() + ttl_ms / 1000)
        try:
            token = run.services.sign_link(key, run.history.journal.flow_id, expires_at)
        except (KeyServiceError, SettingsError) as error:
            raise run.fail(error) from error
        address, hash_, fragment = url.partition("#")
        separator = "&" if "?" in address else "?"
        return f"{address}{separator}{LINK_PARAMETER}={token}{hash_}{fragment}"

    return str(replay_or_make(run, key, Kind.LINK, link))
