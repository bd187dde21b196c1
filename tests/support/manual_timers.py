"""Timers that a test advances."""

import heapq
import threading
from collections.abc import Callable
from itertools import count

START_S = 1_795_000_000.0


class ManualTimers:
    """A clock that stands still until `advance`, which makes the due calls in their order (see `Timers`)."""

    def __init__(self) -> None:
        self._now_s = START_S
        self._lock = threading.Lock()
        self._calls: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()

    def now_s(self) -> float:
        return self._now_s

    def call_at(self, epoch_s: float, action: Callable[[], object]) -> None:
        with self._lock:
            heapq.heappush(self._calls, (max(self._now_s, epoch_s), next(self._numbers), action))

    def advance(self, seconds: float) -> None:
        """Make the calls of this period, and those that they cause within it. A call may advance, too."""
        end_s = self._now_s + seconds
        while (action := self._next(end_s)) is not None:
            action()
        self._now_s = max(self._now_s, end_s)

    def close(self) -> None:
        self._calls.clear()

    def _next(self, end_s: float) -> Callable[[], object] | None:
        with self._lock:
            if not self._calls or self._calls[0][0] > end_s:
                return None
            self._now_s, _, action = heapq.heappop(self._calls)
            return action
