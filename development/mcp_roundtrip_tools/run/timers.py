"""Time, and calls at a later time. Tests replace both with a clock that they advance."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol


class Timers(Protocol):
    """A clock with timers."""

    def now_s(self) -> float:
        """Return the time in epoch seconds."""

    def call_at(self, epoch_s: float, action: Callable[[], object]) -> None:
        """Call `action` in another thread at that time, or at once if it has passed."""


class RealTimers:
    """The clock of this computer. `close` cancels the calls that have not begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[threading.Timer] = set()
        self._closed = False

    def now_s(self) -> float:
        return time.time()

    def call_at(self, epoch_s: float, action: Callable[[], object]) -> None:
        def call() -> None:
            with self._lock:
                self._waiting.discard(timer)
            action()

        timer = threading.Timer(max(0.0, epoch_s - time.time()), call)
        timer.daemon = True
        with self._lock:
            if not self._closed:
                self._waiting.add(timer)
                timer.start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for timer in self._waiting:
                timer.cancel()
