"""When a step whose function raised runs again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import McpRoundtripError, UsageError

INLINE_MS: Final = 2_000
"""The longest pause that a task's worker waits for; over a longer one the task sleeps."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Run a step's function up to `attempts` times, over all passes, until it does not raise.

    The first pause takes `delay_ms`, each further one `factor` times the one before, up to `max_delay_ms`; a
    random part of it, up to a half, is left out, so that many calls that failed together do not come back
    together. Only exceptions of the types in `on` are worth another attempt. Those of this package never are:
    a ToolError is meant for the model. Raises UsageError.
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

    def is_for(self, error: Exception) -> bool:
        """Whether this failure is worth another attempt."""
        return isinstance(error, self.on) and not isinstance(error, McpRoundtripError)

    def pause_ms(self, failures: int, random: float) -> int:
        """How long to wait after so many failures; `random` is in [0, 1)."""
        try:
            longest_ms = min(self.delay_ms * self.factor ** (failures - 1), self.max_delay_ms)
        except OverflowError:
            longest_ms = min(self.delay_ms, 1) * self.max_delay_ms
        return int(longest_ms * (1 - random / 2))


def pause_ms(run: Run, until_ms: int) -> tuple[float, bool]:
    """How long to wait now for that time (epoch milliseconds), and whether the pass has to end then.

    A task sleeps over a long pause. A round waits for as long as it can, and the client brings it back.
    """
    left_ms = until_ms - run.environment.clock() * 1000
    if left_ms <= 0:
        return 0, False
    if run.tasks.recorder is not None and left_ms > INLINE_MS:
        run.sleep_until(until_ms)
        return 0, True
    budget = run.environment.budget
    spare_ms = max(budget.remaining_ms() - budget.reserve_ms, 0)
    return min(left_ms, spare_ms), left_ms > spare_ms
