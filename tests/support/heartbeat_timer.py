"""A timer of heartbeats whose time passes when a test says so."""

import threading

POLL_S = 0.001
"""How often a waiting thread looks whether the pass has ended: a thread cannot wait for two things."""


class HeartbeatTimer:
    """A `wait_ms` for one pass at a time. `pauses` has the milliseconds of each wait."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.thread: threading.Thread | None = None
        self._began, self._fired = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, event: threading.Event, duration_ms: float) -> bool:
        self.thread = threading.current_thread()
        self.pauses.append(duration_ms)
        self._began.release()
        while not event.wait(POLL_S):
            if self._fired.acquire(blocking=False):
                return False
        return True

    def fire(self) -> bool:
        """End the current wait; return, after the renewal, whether the thread waits for the next one."""
        self._began.acquire()
        self._fired.release()
        while not self._began.acquire(timeout=POLL_S):
            if self.thread is not None and not self.thread.is_alive():
                return False
        self._began.release()
        return True
