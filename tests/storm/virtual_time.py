"""Time that passes only while nothing runs.

Work that runs holds the time. When nothing holds it, the clock jumps to the next call. So the order of events
and their times do not depend on the speed of the computer.
"""

from __future__ import annotations

import heapq
import struct
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

START_S = 1_795_000_000.0
STUCK_S = 20
"""Seconds of real time after which work that holds the time counts as stuck."""


class VirtualTime:
    """A clock with timers (see `mcp_roundtrip_tools.run.timers`). Other processes read it from a file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._file = path.open("w+b", buffering=0)
        self._changed = threading.Condition()
        self._holders = 0
        self._calls: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()
        self._failures: list[BaseException] = []
        self._set(START_S)

    def now_s(self) -> float:
        return self._now_s

    def now_ms(self) -> int:
        return round(self._now_s * 1000)

    def call_at(self, epoch_s: float, action: Callable[[], object]) -> None:
        with self._changed:
            heapq.heappush(self._calls, (max(self._now_s, epoch_s), next(self._numbers), action))

    def hold(self) -> None:
        """Stop the time until `release`."""
        with self._changed:
            self._holders += 1

    def release(self) -> None:
        with self._changed:
            self._holders -= 1
            assert self._holders >= 0
            self._changed.notify_all()

    def run_until(self, is_over: Callable[[], bool], limit_s: float) -> None:
        """Make the calls in the order of their times until `is_over`, for at most `limit_s`."""
        end_s = self._now_s + limit_s
        while True:
            with self._changed:
                assert self._changed.wait_for(lambda: self._holders == 0, STUCK_S), "the time is held"
                if self._failures:
                    raise self._failures[0]
                if is_over() or not self._calls or self._calls[0][0] > end_s:
                    return
                at_s, _, action = heapq.heappop(self._calls)
                self._set(at_s)
                self._holders += 1
            threading.Thread(target=self._call, args=(action,), daemon=True).start()

    def close(self) -> None:
        self._file.close()

    def _call(self, action: Callable[[], object]) -> None:
        try:
            action()
        except BaseException as error:
            self._failures.append(error)
        finally:
            self.release()

    def _set(self, now_s: float) -> None:
        self._now_s = now_s
        self._file.seek(0)
        self._file.write(struct.pack("d", now_s))
