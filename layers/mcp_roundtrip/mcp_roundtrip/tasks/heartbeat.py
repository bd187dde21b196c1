"""Renews a lease in a thread while a pass runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from mcp_roundtrip.tasks.lease import Lease

WaitMs = Callable[[Event, float], bool]
"""Waits for an event for so many milliseconds, and returns whether it was set."""

JOIN_TIMEOUT_S: Final = 1.0
"""The time for which the end of a pass waits for a renewal under way, which then has no effect."""


def wait_ms(event: Event, duration_ms: float) -> bool:
    """Wait for an event on the computer's own clock."""
    return event.wait(duration_ms / 1000)


@contextmanager
def heartbeat(lease: Lease, wait: WaitMs = wait_ms) -> Iterator[None]:
    """Renew the lease until the block ends. A pass that ends before the first renewal makes no request."""
    if not lease.needs_heartbeat:
        yield
        return
    has_ended = Event()

    def renew_repeatedly() -> None:
        pause_ms: float | None = lease.renewal_interval_ms
        while pause_ms is not None and not wait(has_ended, pause_ms):
            pause_ms = lease.beat()

    thread = Thread(target=renew_repeatedly, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        lease.close()
        has_ended.set()
        thread.join(JOIN_TIMEOUT_S)
