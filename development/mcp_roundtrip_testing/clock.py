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

    async def pause_ms_async(self, duration_ms: float) -> None:
        """Let that time pass at once, after what else is ready to run."""
        import asyncio  # tests of synchronous tools do not need it

        self.advance(duration_ms / 1000)
        await asyncio.sleep(0)

    def __call__(self) -> float:
        return self.now

    def monotonic_ms(self) -> float:
        """The same instant in milliseconds."""
        return self.now * 1000
