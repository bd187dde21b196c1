"""The thread that renews a lease. The test decides when its waits end."""

from __future__ import annotations

import threading

import pytest

from mcp_roundtrip.tasks.lease import Delivery, Lease, heartbeat, wait_ms
from mcp_roundtrip.tasks.model import TASK
from mcp_roundtrip.tasks.store import Change, Item, TaskStore
from mcp_roundtrip_testing.task_table import MemoryStore
from support.faulty_store import FaultyStore
from support.heartbeat_timer import HeartbeatTimer
from support.task_items import NEW, NOW

LEASE_MS = 60_000


def claimed(store: TaskStore, remaining_ms: int = 900_000) -> Lease:
    store.put_new(NEW.to_item())
    lease = Lease(store, NEW.pk, "me", Delivery("", remaining_ms, LEASE_MS), lambda: NOW)
    assert lease.claim() is not None
    return lease


def test_the_lease_is_renewed_until_the_pass_ends() -> None:
    timer, store = HeartbeatTimer(), MemoryStore()
    with heartbeat(claimed(store), timer):
        assert [timer.fire(), timer.fire()] == [True, True]
    assert timer.pauses == 3 * [LEASE_MS / 3]
    assert timer.thread is not None
    assert not timer.thread.is_alive()


def test_a_failed_renewal_is_repeated_sooner() -> None:
    store = FaultyStore(matches=lambda operation: operation.sets == {"lu"}, times=2)
    timer = HeartbeatTimer()
    with heartbeat(claimed(store), timer):
        assert all(timer.fire() for _ in range(3))
    assert timer.pauses == [LEASE_MS / 3, LEASE_MS / 12, LEASE_MS / 12, LEASE_MS / 3]


def test_the_thread_ends_when_another_worker_has_the_lease() -> None:
    timer, store = HeartbeatTimer(), MemoryStore()
    lease = claimed(store)
    with heartbeat(lease, timer):
        item = store.get(NEW.pk, TASK)
        assert item is not None
        store._items[NEW.pk, TASK] = {**item, "lo": "another"}
        assert not timer.fire()
        assert lease.is_lost


def test_the_late_response_to_a_renewal_does_not_revive_a_lost_lease() -> None:
    """The heartbeat's request succeeds, and the worker learns that it lost the lease before the response."""

    class SlowTable(MemoryStore):
        asks_meanwhile: threading.Thread | None = None

        def update(self, pk: str, sk: str, change: Change) -> Item | None:
            item = super().update(pk, sk, change)
            thread, self.asks_meanwhile = self.asks_meanwhile, None
            if thread is not None and item is not None:
                self._items[pk, sk] = {**item, "lo": "another"}
                thread.start()
                thread.join(0.1)  # a worker that waits for the response asks after it
            return item

    timer, store = HeartbeatTimer(), SlowTable()
    lease = claimed(store)
    asks = store.asks_meanwhile = threading.Thread(target=lease.renew)
    with heartbeat(lease, timer):
        timer.fire()
        asks.join()
        assert lease.is_lost


def test_the_thread_ends_when_the_pass_is_killed() -> None:
    timer = HeartbeatTimer()
    with pytest.raises(KeyboardInterrupt), heartbeat(claimed(MemoryStore()), timer):
        raise KeyboardInterrupt
    assert timer.thread is None or not timer.thread.is_alive()


def test_a_short_invocation_starts_no_thread() -> None:
    timer = HeartbeatTimer()
    with heartbeat(claimed(MemoryStore(), remaining_ms=LEASE_MS // 3), timer):
        assert timer.thread is None


def test_the_default_wait_ends_with_the_pass_or_with_the_time() -> None:
    event = threading.Event()
    assert not wait_ms(event, 0)
    event.set()
    assert wait_ms(event, 3_600_000)
