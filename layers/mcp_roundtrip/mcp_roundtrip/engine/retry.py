"""Runs a step's function again after it raised: the policy, and the loop that follows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_roundtrip.engine.effects import unit_interval
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import McpRoundtripError, StepFailed, UsageError

if TYPE_CHECKING:
    from mcp_roundtrip.engine.steps import Step

MAX_INLINE_PAUSE_MS: Final = 2_000
"""The longest pause during which a task's worker waits. For a longer one the task sleeps."""


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

    def applies_to(self, error: Exception) -> bool:
        """Return whether another attempt may follow this error."""
        return isinstance(error, self.on) and not isinstance(error, McpRoundtripError)

    def pause_ms(self, failures: int, random: float) -> int:
        """Return the pause after so many failures; `random` is in [0, 1)."""
        try:
            longest_ms = min(self.delay_ms * self.factor ** (failures - 1), self.max_delay_ms)
        except OverflowError:
            longest_ms = min(self.delay_ms, 1) * self.max_delay_ms
        return int(longest_ms * (1 - random / 2))


Pause = tuple[float, bool]
"""The milliseconds to wait, and whether the pass has to end then."""


def run_attempts(
    step: Step, retry: Retry, attempt: Callable[[], Any], pause: Callable[[float, bool], None]
) -> Any:
    """Call `attempt` until it does not raise. Raises StepFailed after the last attempt."""
    while True:
        pause(*_next_pause(step, retry))
        try:
            return attempt()
        except Exception as error:
            _record_failure(step, retry, error)


async def run_attempts_async(
    step: Step,
    retry: Retry,
    attempt: Callable[[], Awaitable[Any]],
    pause: Callable[[float, bool], Awaitable[None]],
) -> Any:
    """Await `attempt` until it does not raise. Raises StepFailed after the last attempt."""
    while True:
        await pause(*_next_pause(step, retry))
        try:
            return await attempt()
        except Exception as error:
            _record_failure(step, retry, error)


def _next_pause(step: Step, retry: Retry) -> Pause:
    """Return the pause before the next attempt. Raises StepFailed if no attempt is left."""
    retry_times = step.retry_times()
    if not retry_times:
        return 0, False
    if len(retry_times) >= retry.attempts:
        raise StepFailed(step.key, len(retry_times))
    return (0, True) if step.run.request_checkpoint() else _pause_until(step.run, retry_times[-1])


def _pause_until(run: Run, retry_at_ms: int) -> Pause:
    """Return how long to wait for that time (epoch milliseconds) in this pass.

    A task sleeps over a long pause. A round waits for as long as it can, and the client's retry resumes it.
    """
    left_ms = retry_at_ms - run.services.clock() * 1000
    if left_ms <= 0:
        return 0, False
    if run.is_task and left_ms > MAX_INLINE_PAUSE_MS:
        run.suspension.sleep_until(retry_at_ms)
        return 0, True
    deadline = run.services.deadline
    spare_ms = max(deadline.remaining_ms() - deadline.reserve_ms, 0)
    return min(left_ms, spare_ms), left_ms > spare_ms


def _record_failure(step: Step, retry: Retry, error: Exception) -> None:
    """Journal a failed attempt; raise the error itself if it is not to be retried."""
    if not retry.applies_to(error):
        raise error
    services, failures = step.run.services, len(step.retry_times()) + 1
    pause_ms = retry.pause_ms(failures, unit_interval(services.random_bytes(7)))
    step.record_failed_attempt(failures, int(services.clock() * 1000) + pause_ms)
    services.on_step_failed(step.key, error, failures < retry.attempts)
    if failures >= retry.attempts:
        raise StepFailed(step.key, failures) from error
