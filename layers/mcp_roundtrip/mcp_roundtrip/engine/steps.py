"""A step: replays its recorded result, or runs its function once and records the result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from itertools import count, takewhile
from typing import Any, Final

from mcp_roundtrip.engine.run import Run, usage_errors
from mcp_roundtrip.engine.step_values import (
    NO_ANNOTATION,
    check_annotation,
    return_annotation,
    revive,
    round_trip,
)
from mcp_roundtrip.errors import StepFailed, StepInterrupted, UsageError
from mcp_roundtrip.journal import Entry, Kind
from mcp_roundtrip.protocol.canonical import MAX_DEPTH, exceeds_depth

_JSON_TYPES: Final = (dict, list, tuple, str, int, float, type(None))
"""Types that a round trip through JSON keeps; their items may be of other types."""

_NO_SPAN: Final = nullcontext()


def recorded_result(run: Run, key: str, function: Callable[..., Any]) -> tuple[Any] | None:
    """Return a step's recorded result, revived, in a 1-tuple, because it may be None."""
    entry = run.recorded_entry(key, Kind.STEP)
    if entry is None:
        return None
    try:
        return (revive(entry.value, return_annotation(function)),)
    except ValueError:
        changed = "its recorded result does not fit its return annotation any more"
        raise run.drift_error(key, changed) from None


class Step:
    """A step that has no result yet: its full key, its function, and how often that may run."""

    __slots__ = ("at_most_once", "function", "has_retry", "key", "run")

    def __init__(
        self,
        run: Run,
        key: str,
        function: Callable[..., Any],
        *,
        at_most_once: bool = False,
        has_retry: bool = False,
    ) -> None:
        self.run = run
        self.key = key
        self.function = function
        self.at_most_once = at_most_once
        self.has_retry = has_retry

    def check(self) -> None:
        """Raise UsageError, before anything has run, for a step that cannot be carried out."""
        if not callable(self.function):
            raise self.run.fail(usage_errors().not_callable(self.key, self.function))
        try:
            check_annotation(return_annotation(self.function))
        except UsageError as error:
            raise self.run.fail(usage_errors().invalid_step(self.key, error)) from None
        if self.at_most_once and self.has_retry:
            raise self.run.fail(usage_errors().at_most_once_with_retry(self.key))
        if self.at_most_once and not self.run.is_task:
            raise self.run.fail(usage_errors().at_most_once_outside_task(self.key))

    def begin(self) -> None:
        """Journal the start of an at-most-once step.

        Raises StepInterrupted if it was started before; StepFailed if it failed when it still had a Retry.
        """
        if not self.has_retry and (failures := self.retry_times()):
            raise StepFailed(self.key, len(failures))
        if not self.at_most_once:
            return
        begun = f"{self.key}~begun"
        token = self.run.services.random_bytes(8).hex()
        if self.run.recorded_entry(begun, Kind.BEGUN):
            raise StepInterrupted(self.key)
        if self.run.record(Entry(begun, Kind.BEGUN, token)).value != token:
            raise StepInterrupted(self.key)

    def span(self) -> AbstractContextManager[Any]:
        """Return the span of the function, which runs now."""
        make_span = self.run.services.step_span
        if make_span is None:
            return _NO_SPAN
        return make_span(self.key, len(self.retry_times()) + 1 if self.has_retry else None)

    def refuse_awaitable(self, value: Any) -> None:
        """Raise UsageError for a value that only an async tool can await. A coroutine is closed first."""
        if isinstance(value, Awaitable):
            if isinstance(value, Coroutine):
                value.close()
            raise usage_errors().async_function_in_sync_step(self.key, self.function)

    def interrupt_if_at_most_once(self, error: Exception) -> None:
        """Raise StepInterrupted for the error of an at-most-once step: later passes know that it began."""
        if self.at_most_once:
            self.run.services.on_step_failed(self.key, error, False)
            raise StepInterrupted(self.key) from error

    def finish(self, value: Any) -> Any:
        """Journal the function's result and return it as a replay will: written to JSON and read back."""
        annotation = return_annotation(self.function)
        if annotation is NO_ANNOTATION and not isinstance(value, _JSON_TYPES):
            raise usage_errors().unannotated_result(self.key, value)
        try:
            data, result = round_trip(value, annotation)
        except UsageError as error:
            raise usage_errors().invalid_step(self.key, error) from None
        if exceeds_depth(data, MAX_DEPTH):
            raise usage_errors().deep_result(self.key, MAX_DEPTH)
        # The worker that takes the task raises StepInterrupted: a late result would contradict it.
        entry = self.run.record(Entry(self.key, Kind.STEP, data), as_owner=self.at_most_once)
        # In a task another worker may have been first: its result is the one that a replay returns.
        return result if entry.value == data else revive(entry.value, annotation)

    # -- failed attempts ----------------------------------------------------------------------------

    def retry_times(self) -> list[int]:
        """Return when an attempt may follow each failed one, in epoch milliseconds."""
        keys = (self._failure_key(number) for number in count(1))
        entries = (self.run.recorded_entry(key, Kind.FAILED) for key in keys)
        return [entry.value for entry in takewhile(lambda entry: entry is not None, entries) if entry]

    def record_failed_attempt(self, number: int, retry_at_ms: int) -> None:
        """Journal a failed attempt (from 1), and when another may follow."""
        self.run.record(Entry(self._failure_key(number), Kind.FAILED, retry_at_ms))

    def _failure_key(self, number: int) -> str:
        return f"{self.key}~failed{number}"
