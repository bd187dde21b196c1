"""Tasks with asynchronous invocations and a queue that wakes them: polls, wake-ups and lost workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks import transitions, wake_ups
from mcp_roundtrip.tasks.model import TASK, Status
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing.task_table import CrashingStore, RecordingDispatcher, WorkerKilled
from support.task_deployment import LambdaContext, TaskDeployment

HOUR_MS = 3_600_000
MAX_DELAY_MS = 900_000

server = Server("naps")


@server.tool(task="required")
def naps(ctx: Context, times: int, nap_ms: int) -> int:
    """Sleep some times."""
    ctx.run_as_task(ttl_ms=24 * HOUR_MS)
    for number in range(times):
        ctx.sleep(f"nap {number}", nap_ms)
    return times


@dataclass(slots=True)
class WakingDispatcher(RecordingDispatcher):
    """Records dispatches and, as (partition key, time in epoch milliseconds), wake-ups.

    If `is_killed`, the worker is killed when it sends a wake-up.
    """

    wake_ups: list[tuple[str, int]] = field(default_factory=list)
    is_killed: bool = False

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        if self.is_killed:
            raise WorkerKilled
        self.wake_ups.append((pk, at_ms))


class WokenDeployment(TaskDeployment):
    """A deployment whose workers are invoked asynchronously and whose wake-ups are delivered by the test."""

    dispatcher: WakingDispatcher

    def __post_init__(self) -> None:
        TaskDeployment.__post_init__(self)
        self.dispatcher = self.table.dispatcher = WakingDispatcher()

    def now_ms(self) -> int:
        return round(self.clock() * 1000)

    def deliver(self, pk: str, at_ms: int) -> None:
        """Deliver a wake-up, as late as now or after the longest delay of SQS at most."""
        self.clock.advance(max(0, min(at_ms - self.now_ms(), MAX_DELAY_MS)) / 1000)
        wake_ups.wake(self.table.port().tasks, pk, at_ms)

    def run_all(self) -> int:
        """Run workers and deliver wake-ups until none is left; return the number of wake-ups."""
        delivered = 0
        self.run_workers()
        while self.dispatcher.wake_ups:
            self.deliver(*self.dispatcher.wake_ups.pop(0))
            self.run_workers()
            delivered += 1
            assert delivered < 1_000, "wake-ups cause each other endlessly"
        return delivered

    def status_of(self, task_id: str) -> Status:
        """Return the stored status, without a poll."""
        task = self.table.task(task_id)
        assert task is not None
        return task.status


def refuse(dispatcher: WakingDispatcher, worker: str, pk: str) -> None:
    raise StoreError("TooManyRequestsException")


@pytest.fixture
def woken() -> WokenDeployment:
    return WokenDeployment(server)


def test_a_task_sleeps_without_polls_and_ends(woken: WokenDeployment) -> None:
    task_id = woken.start("naps", times=3, nap_ms=HOUR_MS)
    started_ms = woken.now_ms()
    delivered = woken.run_all()
    assert woken.status_of(task_id) is Status.COMPLETED
    assert woken.now_ms() - started_ms == 3 * HOUR_MS
    assert delivered == 3 * HOUR_MS / MAX_DELAY_MS


def test_a_poll_and_a_wake_up_at_the_same_time_dispatch_one_worker(woken: WokenDeployment) -> None:
    task_id = woken.start("naps", times=1, nap_ms=60_000)
    woken.run_workers()
    [wake_up] = woken.dispatcher.wake_ups
    woken.clock.advance(60)
    woken.get(task_id)
    woken.deliver(*wake_up)
    woken.deliver(*wake_up)
    assert len(woken.dispatcher.sent) == 1


def test_wake_ups_do_not_accumulate_in_a_task_that_is_polled_while_it_naps(woken: WokenDeployment) -> None:
    """The poll wins each race; the wake-up arrives when the task sleeps again, and ends there."""
    times = 50
    task_id = woken.start("naps", times=times, nap_ms=5_000)
    woken.run_workers()
    sent = 0
    while woken.dispatcher.wake_ups:
        wake_ups, woken.dispatcher.wake_ups = woken.dispatcher.wake_ups, []
        sent += len(wake_ups)
        woken.clock.advance(5)
        woken.get(task_id)
        woken.run_workers()
        for wake_up in wake_ups:
            woken.deliver(*wake_up)
        woken.run_workers()
    assert (woken.status_of(task_id), sent) == (Status.COMPLETED, times)
    assert woken.dispatcher.count == times + 1


def test_a_wake_up_that_comes_after_the_poll_ends_while_the_worker_of_the_poll_runs(
    woken: WokenDeployment,
) -> None:
    task_id = woken.start("naps", times=1, nap_ms=60_000)
    woken.run_workers()
    [(pk, at_ms)] = woken.dispatcher.wake_ups
    woken.dispatcher.wake_ups.clear()
    woken.clock.advance(60)
    woken.get(task_id)
    now_ms = woken.now_ms()
    claim = transitions.claim(
        owner="worker", delivery="", until_ms=now_ms + 60_000, now_ms=now_ms, max_attempts=10
    )
    assert woken.store.update(pk, TASK, claim) is not None
    woken.deliver(pk, at_ms)
    assert woken.dispatcher.wake_ups == []


def test_a_worker_killed_before_it_sent_the_wake_up_is_retried_and_the_retry_sends_it(
    woken: WokenDeployment,
) -> None:
    task_id = woken.start("naps", times=1, nap_ms=HOUR_MS)
    [delivery] = woken.dispatcher.sent
    woken.dispatcher.is_killed = True
    with pytest.raises(WorkerKilled):
        woken.run_worker()
    woken.dispatcher.is_killed = False
    assert not woken.dispatcher.wake_ups
    woken.clock.advance(60)
    woken.dispatcher.sent.append(delivery)  # Lambda repeats the invocation
    woken.run_all()
    assert woken.status_of(task_id) is Status.COMPLETED


def test_a_wake_up_that_is_killed_at_any_call_is_redelivered_and_wakes_the_task(
    woken: WokenDeployment,
) -> None:
    task_id = woken.start("naps", times=1, nap_ms=60_000)
    woken.run_workers()
    [(pk, at_ms)] = woken.dispatcher.wake_ups
    woken.clock.advance(60)
    body = f'{{"task":"{pk}","wake":{at_ms}}}'
    event: dict[str, Any] = {"Records": [{"messageId": "m", "receiptHandle": "r", "body": body}]}
    for call in range(2):  # the read, and the record of the dispatch
        store = CrashingStore(woken.store, call, is_done=True)
        with pytest.raises(WorkerKilled):
            work(server._tool_methods, event, LambdaContext(), partial(woken.ports, store))
    assert not woken.dispatcher.sent
    woken.clock.advance(930)  # the visibility timeout
    assert work(server._tool_methods, event, LambdaContext(), woken.ports) == {"batchItemFailures": []}
    woken.run_workers()
    assert woken.status_of(task_id) is Status.COMPLETED


def test_a_wake_up_that_cannot_dispatch_is_redelivered_until_it_can(
    woken: WokenDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = woken.start("naps", times=1, nap_ms=60_000)
    woken.run_workers()
    [(pk, at_ms)] = woken.dispatcher.wake_ups
    woken.clock.advance(60)
    with monkeypatch.context() as patch:
        patch.setattr(WakingDispatcher, "dispatch", refuse)
        for _ in range(10):
            with pytest.raises(StoreError):
                woken.deliver(pk, at_ms)
            woken.clock.advance(65)  # the visibility timeout
    woken.deliver(pk, at_ms)
    woken.run_workers()
    assert woken.status_of(task_id) is Status.COMPLETED


@pytest.mark.parametrize("ends", ["cancelled", "expired", "deleted"])
def test_wake_ups_of_an_ended_task_end_with_it(woken: WokenDeployment, ends: str) -> None:
    task_id = woken.start("naps", times=1, nap_ms=20 * HOUR_MS)
    woken.run_workers()
    if ends == "cancelled":
        woken.cancel(task_id)
    elif ends == "expired":
        woken.clock.advance(24 * 3600)
    else:
        woken.store = woken.table.store = MemoryStore()
    assert woken.run_all() == 1
    if ends == "expired":
        assert woken.status_of(task_id) is Status.FAILED
