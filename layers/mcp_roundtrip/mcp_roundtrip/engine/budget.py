"""How long a pass may go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """`deadline_ms` and `clock_ms` are on the same monotonic scale, in milliseconds.

    `reserve_ms` is what a checkpoint wants to see left before it lets new work begin.
    """

    deadline_ms: float
    clock_ms: Callable[[], float]
    reserve_ms: float = 3_000

    def remaining_ms(self) -> int:
        """Milliseconds left, never negative."""
        return max(0, int(self.deadline_ms - self.clock_ms()))

    def is_short_of(self, needs_ms: float | None = None) -> bool:
        """Whether less is left than `needs_ms` (default: the reserve)."""
        return self.remaining_ms() < (self.reserve_ms if needs_ms is None else needs_ms)
