"""A step: replays its recorded result, or runs its function by its Retry and records the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from msgspec import UNSET, Struct

from mcp_roundtrip.arguments.signature import function_name
from mcp_roundtrip.engine import step_values
from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.pass_state import MAX_INLINE_PAUSE_MS, Run, running
from mcp_roundtrip.errors import McpRoundtripError, StepFailed, StepInterrupted, UsageError
from mcp_roundtrip.protocol.strict_json import MAX_DEPTH, exceeds_depth


class Retry(Struct, frozen=True):
    """Run a step's function up to `attempts` times, over all passes, until it does not raise.

    The first pause is `delay_ms` long, each further one `factor` times longer, up to `max_delay_ms`. A random
    part of each pause, up to half, is left out, so that many calls that failed together do not retry
    together. Only exceptions of the types in `on` are retried, and never those of this package: a ToolError
    is meant for the model. Raises UsageError.
    """

    attempts: int = 3
    delay_ms: int = 1_000
    factor: float = 2.0
    max_delay_ms: int = 60_000
    on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.delay_ms < 0 or self.factor < 1 or self.max_delay_ms < 0:
            raise UsageError(
                f"{self} is not possible; use attempts and factor of at least 1, and delays of at least 0"
            )
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise UsageError(
                f"Retry(on={self.on!r:.100}) is not possible; pass a tuple of types of exceptions, such as "
                "`on=(ConnectionError, TimeoutError)`"
            )

    def applies_to(self, error: Exception) -> bool:
        return isinstance(error, self.on) and not isinstance(error, McpRoundtripError)

    def pause_ms(self, failures: int, random: float) -> int:
        """Return the pause after so many failures; `random` is in [0, 1)."""
        try:
            longest_ms = min(self.delay_ms * self.factor ** (failures - 1), self.max_delay_ms)
        except OverflowError:
            longest_ms = min(self.delay_ms, 1) * self.max_delay_ms
        return int(longest_ms * (1 - random / 2))


class Step(Struct, eq=False):
    """A step: its full key, its function, and how often that may run."""

    run: Run
    key: str
    function: Callable[..., Any]
    at_most_once: bool = False
    retry: Retry | None = None

    def recorded(self) -> Any:
        """Return the recorded result, revived; UNSET if there is none."""
        entry = self.run.recorded_entry(self.key, Kind.STEP)
        if entry is None:
            return UNSET
        try:
            return step_values.revive(entry.value, step_values.return_annotation(self.function))
        except ValueError:
            changed = "its recorded result does not fit its return annotation any more"
            raise self.run.drift_error(self.key, changed) from None

    def check(self) -> None:
        """Raise UsageError, before anything has run, for a step that cannot be carried out."""
        if not callable(self.function):
            raise self._misuse(
                f"takes a function, not {type(self.function).__name__}; pass the function and its arguments "
                f"without calling it, as in `ctx.step({self.key!r}, function, argument)`"
            )
        try:
            step_values.check_annotation(step_values.return_annotation(self.function))
        except UsageError as error:
            raise self._misuse(error) from None
        if not isinstance(self.retry, Retry | None):
            raise self._misuse(f"has retry={self.retry!r:.100}; pass a Retry, such as `Retry(attempts=3)`")
        if self.at_most_once and self.retry:
            raise self._misuse("has both at_most_once and retry; remove one of them")
        if self.at_most_once and not self.run.is_task:
            raise self._misuse(
                "has at_most_once outside a task; call ctx.run_as_task() before it, and for clients without "
                "tasks pass at_most_once=ctx.in_task"
            )

    def begin(self) -> None:
        """Journal the start of an at-most-once step.

        Raises StepInterrupted if it was started before, also by a version of the code in which it was
        at-most-once; StepFailed if it failed when it still had a Retry.
        """
        if self.retry is None and (failures := len(self._retry_times())):
            raise StepFailed(self.key, failures)
        begun = f"{self.key}~begun"
        if self.run.recorded_entry(begun, Kind.BEGUN):
            raise StepInterrupted(self.key)
        if not self.at_most_once:
            return
        token = self.run.services.random_bytes(8).hex()
        if self.run.record(Entry(begun, Kind.BEGUN, token)).value != token:
            raise StepInterrupted(self.key)

    def pause(self) -> Pause:
        """Return the pause before the next attempt. Raises StepFailed if the Retry allows none."""
        retry_times = self._retry_times()
        if self.retry is None or not retry_times:
            return 0, False
        if (retry_at_ms := retry_times[-1]) is None or len(retry_times) >= self.retry.attempts:
            raise StepFailed(self.key, len(retry_times))
        return (0, True) if self.run.request_checkpoint() else _pause_until(self.run, retry_at_ms)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Run the function in the block. An exception only ends the block if another attempt may follow.

        Raises StepFailed after the last attempt, and StepInterrupted for an at-most-once step, because later
        passes know that it began.
        """
        services, number = self.run.services, len(self._retry_times()) + 1 if self.retry else None
        span = nullcontext() if services.step_span is None else services.step_span(self.key, number)
        try:
            with running("step", self.key), span:
                yield
        except Exception as error:
            if self.at_most_once:
                services.on_step_failed(self.key, error, False)
                raise StepInterrupted(self.key) from error
            if self.retry is None or number is None or not self.retry.applies_to(error):
                self.run.raised_steps.append(self.key)
                raise
            retry_at_ms, runs_again = None, number < self.retry.attempts
            if runs_again:
                pause_ms = self.retry.pause_ms(number, services.random_fraction())
                retry_at_ms = int(services.clock() * 1000) + pause_ms
            self.run.record(Entry(self._failure_key(number), Kind.FAILED, retry_at_ms))
            services.on_step_failed(self.key, error, runs_again)
            if not runs_again:
                raise StepFailed(self.key, number) from error

    def refuse_awaitable(self, value: Any) -> None:
        if isinstance(value, Awaitable):
            if isinstance(value, Coroutine):
                value.close()
            raise self._usage_error(
                f"calls {function_name(self.function)}, which is async, in a tool that is not; write `async "
                "def` for the tool, with `ctx: AsyncContext`, and await the step, or pass a function that is "
                "not async"
            )

    def finish(self, value: Any) -> Any:
        """Journal the function's result and return it as a replay will: written to JSON and read back."""
        annotation = step_values.return_annotation(self.function)
        try:
            data, result = step_values.round_trip(value, annotation)
        except UsageError as error:
            raise self._usage_error(error) from None
        if exceeds_depth(data, MAX_DEPTH):
            raise self._usage_error(
                f"returned a value nested deeper than {MAX_DEPTH} levels; return a flatter one"
            )
        # The worker that takes the task raises StepInterrupted: a late result would contradict it.
        entry = self.run.record(Entry(self.key, Kind.STEP, data), as_owner=self.at_most_once)
        # In a task another worker may have been first: its result is the one that a replay returns.
        return result if entry.value == data else step_values.revive(entry.value, annotation)

    def _usage_error(self, problem: object) -> UsageError:
        return UsageError(f"step {self.key!r} {problem}")

    def _misuse(self, problem: object) -> UsageError:
        return self.run.fail(self._usage_error(problem))

    def _retry_times(self) -> list[int | None]:
        """Return when an attempt may follow each failed one, in epoch milliseconds; None after the last one.

        So a step that has failed does not run again if a later version of the code allows more attempts.
        """
        times = list[int | None]()
        while entry := self.run.recorded_entry(self._failure_key(len(times) + 1), Kind.FAILED):
            times.append(entry.value)
        return times

    def _failure_key(self, number: int) -> str:
        return f"{self.key}~failed{number}"


Pause = tuple[float, bool]
"""The milliseconds to wait, and whether the pass has to end then."""


def _pause_until(run: Run, retry_at_ms: int) -> Pause:
    """Return the pause until that time (epoch milliseconds), or as much of it as fits into this pass."""
    left_ms = retry_at_ms - run.services.clock() * 1000
    if left_ms <= 0:
        return 0, False
    if run.is_task and left_ms > MAX_INLINE_PAUSE_MS:
        run.suspension.sleep_until(retry_at_ms)
        return 0, True
    deadline = run.services.deadline
    spare_ms = max(deadline.remaining_ms() - deadline.reserve_ms, 0)
    return min(left_ms, spare_ms), left_ms > spare_ms
