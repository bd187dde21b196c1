"""Time and randomness of a case: a clock that moves when something waits, and bytes without chance."""

import asyncio
import hashlib
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

START = 1_785_600_600.0
"""When every case begins, in epoch seconds: ten minutes after an hour, so that a flow can cross an epoch."""

UPTIME = 5_000.0

_sleep_async = asyncio.sleep


@dataclass
class Clock:
    """The clock and the randomness of one case."""

    now: float = START
    drawn: list[bytes] = field(default_factory=list)
    """The random bytes of the case that are long enough to be ids."""

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now - START + UPTIME

    def sleep(self, seconds: float) -> None:
        self.now = round(self.now + max(seconds, 0), 6)

    async def sleep_async(self, seconds: float, result: object = None) -> object:
        self.sleep(seconds)
        return await _sleep_async(0, result)

    def random(self, size: int) -> bytes:
        """Return bytes that differ from all others of this size. Short ones decide how long pauses are."""
        if size < 9:
            return b"\x80".ljust(size, b"\0")
        number = sum(len(each) == size for each in self.drawn)
        self.drawn.append(hashlib.shake_256(f"{size}:{number}".encode()).digest(size))
        return self.drawn[-1]

    @contextmanager
    def installed(self) -> Iterator[None]:
        with ExitStack() as stack:
            for module, name, replacement in (
                (time, "time", self.time),
                (time, "monotonic", self.monotonic),
                (time, "sleep", self.sleep),
                (asyncio, "sleep", self.sleep_async),
                (os, "urandom", self.random),
                (random, "_urandom", self.random),  # of the module `secrets`
            ):
                stack.enter_context(patch.object(module, name, replacement))
            yield
