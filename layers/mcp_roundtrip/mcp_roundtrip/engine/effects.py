"""What both contexts do around an effect: look it up, or run it and journal what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from mcp_roundtrip.canonical import MAX_DEPTH, canonical, deeper_than
from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import KeyServiceError, SettingsError, StepFailed, StepInterrupted, UsageError
from mcp_roundtrip.schema.values import EMPTY, check, dump, return_annotation, revive

if TYPE_CHECKING:
    from mcp_roundtrip.engine.retry import Retry

LINK_PARAMETER = "mcp_link"

MAX_SLEEP_MS: Final = 10 * 365 * 86_400_000

_PLAIN: Final = (dict, list, tuple, str, int, float, type(None))
"""Types that are the same after a round trip through JSON; their items may not be."""


@dataclass(frozen=True, slots=True)
class Step:
    """One `step`: its full key, the function that does the work, and how often it may run."""

    key: str
    function: Callable[..., Any]
    at_most_once: bool = False
    retry: Retry | None = None

    def check(self, run: Run) -> None:
        """Raise UsageError, before anything has run, for what cannot be carried out as it is written."""
        if not callable(self.function):
            raise run.fail(usage_errors().no_function(self.key, self.function))
        try:
            check(return_annotation(self.function))
        except UsageError as error:
            raise run.fail(usage_errors().step(self.key, error)) from None
        if self.at_most_once and self.retry is not None:
            raise run.fail(usage_errors().once_and_retry(self.key))
        if self.at_most_once and run.tasks.recorder is None:
            raise run.fail(usage_errors().once_outside_task(self.key))

    def refuse_awaitable(self, value: Any) -> None:
        """Raise UsageError for what only an async tool can await; nothing of a coroutine has run."""
        if isinstance(value, Awaitable):
            if isinstance(value, Coroutine):
                value.close()
            raise usage_errors().async_step(self.key, self.function)

    def begin(self, run: Run) -> None:
        """Journal that the function is about to run, if it may do so once.

        Raises StepInterrupted if it was begun before, and did not end.
        """
        if not self.at_most_once:
            return
        begun = f"{self.key}~begun"
        token = run.environment.random_bytes(8).hex()
        if run.recorded(begun, Kind.BEGUN) or run.record(Entry(begun, Kind.BEGUN, token)).value != token:
            raise StepInterrupted(self.key)

    def pause_ms(self, run: Run) -> tuple[float, bool]:
        """How long to wait before the next attempt, and whether the pass has to end then.

        Raises StepFailed if there is to be none.
        """
        failures = self._failures(run)
        if not failures:
            return 0, False
        if self.retry is None or len(failures) >= self.retry.attempts:
            raise StepFailed(self.key, len(failures))
        from mcp_roundtrip.engine.retry import pause_ms  # most steps never fail

        return (0, True) if run.request_checkpoint() else pause_ms(run, failures[-1])

    def failed(self, run: Run, error: Exception) -> None:
        """Raise what the tool gets to see of an error, or journal it as that of one attempt.

        What may run once is interrupted by its own error: later passes know that it was begun, and no more.
        """
        if self.at_most_once:
            run.environment.step_failed(self.key, error, False)
            raise StepInterrupted(self.key) from error
        if self.retry is None or not self.retry.is_for(error):
            raise error
        failures = len(self._failures(run)) + 1
        pause = self.retry.pause_ms(failures, unit_interval(run.environment.random_bytes(7)))
        due_ms = int(run.environment.clock() * 1000) + pause
        run.record(Entry(self._failure(failures), Kind.FAILED, due_ms))
        run.environment.step_failed(self.key, error, failures < self.retry.attempts)

    def _failures(self, run: Run) -> list[int]:
        """When an attempt could follow each failed one, in epoch milliseconds."""
        entries = (run.recorded(self._failure(number), Kind.FAILED) for number in count(1))
        return [entry.value for entry in takewhile(lambda entry: entry is not None, entries) if entry]

    def _failure(self, number: int) -> str:
        return f"{self.key}~failed{number}"

    def settle(self, run: Run, value: Any) -> Any:
        """Journal a result, and return it as a replay will: dumped and revived."""
        annotation = return_annotation(self.function)
        if annotation is EMPTY and not isinstance(value, _PLAIN):
            raise usage_errors().unannotated_result(self.key, value)
        try:
            data = dump(value, annotation)
        except UsageError as error:
            raise usage_errors().step(self.key, error) from None
        if deeper_than(data, MAX_DEPTH):
            raise usage_errors().deep_result(self.key, MAX_DEPTH)
        try:
            result = revive(data, annotation)
        except ValueError as error:
            raise usage_errors().unreadable_result(self.key, annotation, error) from None
        entry = run.record(Entry(self.key, Kind.STEP, data))
        # In a task another worker may have been first: its result is what a replay will see.
        return result if entry.value == data else revive(entry.value, annotation)


def usage_errors() -> Any:
    """The texts of authors' mistakes: a call without one does not load them."""
    from mcp_roundtrip.engine import usage_errors as texts

    return texts


def replayed(run: Run, key: str, function: Callable[..., Any]) -> tuple[Any] | None:
    """A step's recorded result in a 1-tuple (it may be None), revived through the return annotation."""
    entry = run.recorded(key, Kind.STEP)
    if entry is None:
        return None
    try:
        return (revive(entry.value, return_annotation(function)),)
    except ValueError:
        raise run.drift(key, "its recorded result does not fit its return annotation any more") from None


def recall(run: Run, key: str, kind: Kind, make: Callable[[], Any]) -> Any:
    """The recorded JSON value of `key`, or the one `make` returns now, journaled."""
    entry = run.recorded(key, kind)
    if entry is None:
        entry = run.record(Entry(key, kind, make()))
    return entry.value


def now(run: Run, key: str) -> datetime:
    """The time (UTC, with milliseconds) at which the run first came here."""
    epoch_ms: int = recall(run, key, Kind.NOW, lambda: int(run.environment.clock() * 1000))
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)


def uuid(run: Run, key: str) -> UUID:
    """A version 4 UUID."""
    return UUID(
        recall(run, key, Kind.UUID, lambda: str(UUID(bytes=run.environment.random_bytes(16), version=4)))
    )


def random(run: Run, key: str) -> float:
    """A float in [0, 1)."""
    return float(recall(run, key, Kind.RANDOM, lambda: unit_interval(run.environment.random_bytes(7))))


def unit_interval(seven_bytes: bytes) -> float:
    """53 random bits, as random.random() has."""
    return (int.from_bytes(seven_bytes, "big") >> 3) / (1 << 53)


def request_task(run: Run, prefix: str, ttl_ms: int) -> bool:
    """Whether the call becomes a task here; not if it is one, or if its client cannot follow one."""
    run.refuse_inside_function()
    if prefix:
        raise run.fail(usage_errors().task_in_branch(prefix))
    if type(ttl_ms) is not int or ttl_ms < 1:
        raise run.fail(usage_errors().task_lifetime(ttl_ms))
    if run.tasks.recorder is not None:
        return False
    if not run.tasks.is_offered:
        raise run.fail(usage_errors().task_not_offered())
    if run.tasks.may_start:
        run.task_ttl_ms = ttl_ms
    return run.tasks.may_start


def begin_sleep(run: Run, key: str, duration_ms: int) -> bool:
    """Whether the run has to wait. The end of the waiting is journaled when it begins."""
    if run.tasks.recorder is None:
        raise run.fail(usage_errors().sleep_outside_task(key))
    if type(duration_ms) not in (int, float) or not 0 <= duration_ms <= MAX_SLEEP_MS:
        raise run.fail(usage_errors().sleep_duration(key, duration_ms, MAX_SLEEP_MS))
    wake_at_ms: int = recall(run, key, Kind.WAKE, lambda: int(run.environment.clock() * 1000 + duration_ms))
    if run.environment.clock() * 1000 >= wake_at_ms:
        return False
    run.sleep_until(wake_at_ms)
    return True


def idempotency_key(run: Run, name: str) -> str:
    """32 hexadecimal characters that stay the same over rounds, retries and replays of this call."""
    return sha256(f"mcp-rs/v1/idempotency:{run.journal.flow_id}:{name}".encode()).hexdigest()[:32]


def reference(run: Run, prefix: str, name: str) -> str:
    """32 hexadecimal characters that are the same in every call with the same caller, tool and arguments.

    Answers that the call already rests on are part of it: what is approved is about them, too. Anonymous
    callers cannot be told apart, so theirs belongs to the call.
    """
    try:
        identity = run.environment.identity()
    except SettingsError as error:
        raise run.fail(error) from error
    if identity is None:
        return idempotency_key(run, prefix + name)
    named = canonical([identity, prefix + name, run.answers_before(prefix)])
    return sha256(b"mcp-rs/v1/reference:" + named).hexdigest()[:32]


def signed_link(run: Run, key: str, url: str, ttl_ms: int) -> str:
    """`url` with a token in its query; journaled, so that the question that shows it does not change."""

    def link() -> str:
        expires_at = int(run.environment.clock() + ttl_ms / 1000)
        try:
            token = run.environment.sign_link(key, run.journal.flow_id, expires_at)
        except (KeyServiceError, SettingsError) as error:
            raise run.fail(error) from error
        address, hash_, fragment = url.partition("#")
        separator = "&" if "?" in address else "?"
        return f"{address}{separator}{LINK_PARAMETER}={token}{hash_}{fragment}"

    return str(recall(run, key, Kind.LINK, link))
