"""Time that passes only while nothing runs.

Work that runs holds the time. When nothing holds it, the clock jumps to the next call. So the order of events
and their times do not depend on the speed of the computer.
"""

from __future__ import annotations

import heapq
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from support.manual_timers import START_S, ManualTimers

STUCK_S = 20
"""Seconds of real time after which work that holds the time counts as stuck."""


class VirtualTime(ManualTimers):
    """A clock with timers, which other processes read from a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = str(path)
        self._file = path.open("w+b", buffering=0)
        self._changed = threading.Condition(self._lock)
        self._holders = 0
        self._failures: list[BaseException] = []
        self._set(START_S)

    def now_ms(self) -> int:
        return round(self._now_s * 1000)

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
