"""Time that moves only when a test says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class FakeClock:
    """`now` is in epoch seconds. Wall clock and monotonic clock in one."""

    now: float = 1_795_000_000.0

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def __call__(self) -> float:
        return self.now

    def monotonic_ms(self) -> float:
        """The same instant in milliseconds."""
        return self.now * 1000
