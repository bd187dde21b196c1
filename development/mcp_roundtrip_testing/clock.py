"""A clock that only tests advance."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class FakeClock:
    """Wall clock and monotonic clock. `now` is in epoch seconds."""

    now: float = 1_795_000_000.0

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds

    async def pause_ms_async(self, duration_ms: float) -> None:
        """Advance the clock, and let other ready coroutines run."""
        import asyncio  # not needed by synchronous tools

        self.advance(duration_ms / 1000)
        await asyncio.sleep(0)

    def __call__(self) -> float:
        return self.now

    def monotonic_ms(self) -> float:
        """Return the same instant in milliseconds."""
        return self.now * 1000
