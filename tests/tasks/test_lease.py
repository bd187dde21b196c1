"""The lease of a pass: claimed, trusted, renewed and lost."""

from dataclasses import dataclass, field
from threading import Thread

import pytest

from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.internal_errors import LeaseLost, StoreError
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.lease import (
    MARGIN_MS,
    MIN_STATUS_INTERVAL_MS,
    RENEWALS,
    RETRIES,
    Delivery,
    Lease,
    TaskRecorder,
    heartbeat,
)
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store_interface import Change, Item
from mcp_roundtrip_testing.task_table import CrashingStore, MemoryStore
from mcp_roundtrip_testing.workers import NEVER
from support.faulty_store import FaultyStore
from support.heartbeat_timer import HeartbeatTimer
from support.task_items import END, INVOCATION_MS, LONG_TASK, NEW, NOW, stored_task

LEASE_MS = 60_000
HALF_MS = LEASE_MS // 2


@dataclass
class Table:
    """A table with one task, and a clock that the workers share. The store counts its calls."""

    now_ms: int = NOW
    faults: FaultyStore = field(default_factory=lambda: FaultyStore(times=0))
    renewed: int = 0
    errors: list[str] = field(default_factory=list)
    log_is_down: bool = False

    def __post_init__(self) -> None:
        self.store = CrashingStore(self.faults, NEVER, is_done=False)
        self.store.put_new(LONG_TASK)

    @property
    def task(self) -> Task:
        return stored_task(self.faults.store)

    def fail(self, is_down: bool = True) -> None:
        """Let the table refuse all requests, or none."""
        self.faults.times = float("inf") if is_down else 0

    def lease(self, owner: str, remaining_ms: int) -> Lease:
        def on_renewed() -> None:
            self.renewed += 1

        given = Delivery("", remaining_ms, LEASE_MS, on_renewed)
        return Lease(self.store, NEW.pk, owner, given, lambda: self.now_ms, self.log)

    def log(self, event: str, error: Exception) -> None:
        if self.log_is_down:
            raise RuntimeError
        self.errors.append(event)

    def claimed(self, owner: str = "me", remaining_ms: int = INVOCATION_MS) -> Lease:
        lease = self.lease(owner, remaining_ms)
        assert lease.claim() is not None
        self.store.calls = 0
        return lease

    def take_over(self) -> None:
        """Let the lease end, and another worker claim the task."""
        self.now_ms += LEASE_MS + 1
        self.claimed("another")

    def cancel(self) -> None:
        assert self.faults.store.update(NEW.pk, TASK, transitions.cancel(now_ms=self.now_ms))


@pytest.fixture
def table():
    return Table()


def test_a_lease_does_not_outlast_its_invocation_by_more_than_the_margin(table):
    lease = table.claimed(remaining_ms=70_000)
    assert table.task.lease_until_ms == NOW + LEASE_MS
    table.now_ms += 20_000
    lease.renew()
    assert table.task.lease_until_ms == NOW + 70_000 + MARGIN_MS


@pytest.mark.parametrize(
    ("elapsed_ms", "remaining_ms", "calls"),
    [
        (0, INVOCATION_MS, 0),
        (HALF_MS - 1, INVOCATION_MS, 0),
        (HALF_MS, INVOCATION_MS, 1),
        (LEASE_MS + 1, INVOCATION_MS, 1),
        (-1, INVOCATION_MS, 1),
        (1_000, 1_000, 1),
    ],
)
def test_the_owner_asks_after_half_a_lease_or_its_invocation_and_if_its_clock_went_back(
    table, elapsed_ms, remaining_ms, calls
):
    lease = table.claimed(remaining_ms=remaining_ms)
    table.now_ms += elapsed_ms
    assert lease.may_continue()
    assert table.store.calls == calls


def test_a_lease_counts_from_the_request_that_renewed_it_and_not_from_its_response(table):
    lease = table.claimed()

    def take_long(operation):
        table.now_ms += HALF_MS

    table.faults.before, table.faults.times = take_long, 1
    lease.renew()
    assert table.task.lease_until_ms == NOW + LEASE_MS
    assert lease.may_continue()
    assert table.task.lease_until_ms == table.now_ms + LEASE_MS


def test_the_owner_renews_a_lease_that_is_over_unless_it_was_released(table):
    lease = table.claimed()
    table.now_ms += 10 * LEASE_MS
    assert lease.may_continue()
    assert table.task.lease_until_ms == table.now_ms + LEASE_MS
    table.store.update(NEW.pk, TASK, transitions.release(owner="me"))
    lease.renew()
    assert lease.is_lost
    assert table.task.lease_owner is None


def test_an_owner_that_was_stopped_learns_that_it_lost_the_lease_and_asks_once(table):
    lease = table.claimed()
    table.take_over()
    before, table.store.calls = table.task, 0
    assert [lease.may_continue(), lease.may_continue(), lease.verify()] == 3 * [False]
    lease.renew()
    assert lease.is_lost
    assert (table.store.calls, table.task) == (1, before)


def test_a_check_that_cannot_reach_the_table_is_an_error_and_decides_nothing(table):
    lease = table.claimed()
    table.now_ms += HALF_MS
    table.fail()
    with pytest.raises(StoreError):
        lease.may_continue()
    table.fail(False)
    assert lease.may_continue()


def test_before_a_step_one_request_renews_an_old_lease_and_notices_a_cancellation(table):
    lease = table.claimed()
    table.now_ms += HALF_MS
    assert [lease.verify(), lease.may_continue()] == [True, True]
    assert table.store.calls == 1
    assert table.task.lease_until_ms == table.now_ms + LEASE_MS
    table.cancel()
    table.store.calls = 0
    assert not lease.verify()
    assert table.store.calls == 1


def test_before_a_step_a_lease_that_ends_during_the_request_is_renewed(table):
    def stop(operation: object) -> None:
        table.now_ms += LEASE_MS + 1

    lease = table.claimed()
    table.faults.before, table.faults.times = stop, 1
    assert lease.verify()
    assert table.task.lease_until_ms == table.now_ms + LEASE_MS


@pytest.mark.parametrize("as_owner", [False, True])
def test_a_worker_that_is_stopped_during_the_write_of_an_entry_does_not_continue(table, as_owner):
    recorder = TaskRecorder(NEW, table.claimed(), 0)
    table.faults.before, table.faults.times = lambda _: table.take_over(), 1
    with pytest.raises(LeaseLost):
        recorder.record(Entry("step", Kind.STEP, 1), as_owner=as_owner)
    assert (table.faults.store.get(NEW.pk, "J#step") is None) is as_owner


def test_of_two_entries_with_one_key_the_first_counts(table):
    recorder = TaskRecorder(NEW, table.claimed(), 0)
    assert [recorder.record(Entry("at", Kind.NOW, time)).value for time in (1, 2)] == [1, 1]


def test_a_status_message_waits_for_a_second_after_the_last_one_or_for_the_next_step(table):
    recorder, seen = TaskRecorder(NEW, table.claimed(), 0), []
    for passed_ms in (0, MIN_STATUS_INTERVAL_MS - 1, 1, 1):
        table.now_ms += passed_ms
        recorder.report_status(f"at {table.now_ms - NOW}")
        seen.append(table.task.message)
    assert seen == ["at 0", "at 0", "at 1000", "at 1000"]
    assert recorder.holds_lease()
    assert table.task.message == "at 1001"


def test_a_failed_heartbeat_is_logged_and_soon_repeated(table):
    lease = table.claimed()
    table.fail()
    assert [lease.beat(), lease.beat()] == [LEASE_MS / RETRIES, LEASE_MS / RETRIES]
    assert table.errors == ["lease_renewal_failed", "lease_renewal_failed"]
    table.log_is_down = True
    assert lease.beat() == LEASE_MS / RETRIES, "a failed log line does not end the heartbeats"
    table.fail(False)
    table.now_ms += 10 * LEASE_MS
    assert lease.beat() == LEASE_MS / RENEWALS
    assert table.renewed == 1


@pytest.mark.parametrize("transition", ["cancel", "expire"])
def test_heartbeats_of_a_worker_whose_task_ended_keep_the_lease_until_its_step_ends(table, transition):
    lease = table.claimed()
    ends = {
        "cancel": transitions.cancel(now_ms=table.now_ms),
        "expire": transitions.expire(now_ms=NOW + 20 * INVOCATION_MS, **END),  # type: ignore[arg-type]
    }
    assert table.faults.store.update(NEW.pk, TASK, ends[transition])
    table.now_ms += 20_000
    assert lease.beat() == LEASE_MS / RENEWALS
    assert lease.is_lost
    assert not lease.may_continue()
    assert (table.task.is_terminal, table.task.lease_until_ms) == (True, table.now_ms + LEASE_MS)


@pytest.mark.parametrize("is_down", [False, True])
def test_a_heartbeat_after_the_pass_does_nothing(table, is_down):
    """The environment was frozen before the thread ended, and runs another invocation now."""
    lease = table.claimed()
    lease.close()
    table.fail(is_down)
    before = table.task
    assert lease.beat() is None
    assert (table.task, table.store.calls, table.renewed, table.errors) == (before, 0, 0, [])


def test_the_lease_is_renewed_until_the_pass_ends(table):
    timer = HeartbeatTimer()
    with heartbeat(table.claimed(), timer):
        assert [timer.fire(), timer.fire()] == [True, True]
    assert timer.pauses == 3 * [LEASE_MS / RENEWALS]
    assert timer.thread is not None
    assert not timer.thread.is_alive()


def test_the_thread_ends_when_the_pass_is_killed(table):
    timer = HeartbeatTimer()
    with pytest.raises(KeyboardInterrupt), heartbeat(table.claimed(), timer):
        raise KeyboardInterrupt
    assert timer.thread is None or not timer.thread.is_alive()


def test_the_thread_ends_when_another_worker_has_the_lease(table):
    timer, lease = HeartbeatTimer(), table.claimed()
    with heartbeat(lease, timer):
        table.take_over()
        assert not timer.fire()
        assert (lease.is_lost, table.renewed, table.errors) == (True, 0, [])


def test_the_late_response_to_a_renewal_does_not_revive_a_lost_lease():
    """The heartbeat's request succeeds, and the worker learns that it lost the lease before the response."""

    class SlowTable(MemoryStore):
        asks_meanwhile: Thread | None = None

        def update(self, pk: str, sk: str, change: Change) -> Item | None:
            item = super().update(pk, sk, change)
            thread, self.asks_meanwhile = self.asks_meanwhile, None
            if thread is not None and item is not None:
                self._items[pk, sk] = {**item, "lo": "another"}
                thread.start()
                thread.join(0.1)  # a worker that waits for the response asks after it
            return item

    timer, store = HeartbeatTimer(), SlowTable()
    lease = Table(faults=FaultyStore(store, times=0)).claimed()
    asks = store.asks_meanwhile = Thread(target=lease.renew)
    with heartbeat(lease, timer):
        timer.fire()
        asks.join()
        assert lease.is_lost


def test_an_invocation_that_ends_before_the_first_renewal_starts_no_thread(table):
    timer = HeartbeatTimer()
    with heartbeat(table.claimed(remaining_ms=LEASE_MS // RENEWALS), timer):
        assert timer.thread is None
