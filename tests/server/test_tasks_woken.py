"""Tasks with asynchronous invocations and a queue that wakes them: polls, wake-ups and lost workers."""

from unittest.mock import Mock

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.model import TASK, Status
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.worker_queue import WorkerQueue

HOUR_MS = 3_600_000

server = Server("naps")


@server.tool(task="required")
def naps(ctx: Context, times: int, nap_ms: int) -> int:
    """Sleep some times."""
    ctx.run_as_task(ttl_ms=24 * HOUR_MS)
    for number in range(times):
        ctx.sleep(f"nap {number}", nap_ms)
    return times


@pytest.fixture
def queue():
    """A queue that wakes tasks, whose workers are invoked."""
    return WorkerQueue.of(server, triggers=False)


def asleep(queue):
    """Return a task at the end of its nap, and its wake-up."""
    task_id = queue.deployment.run_task("naps", times=1, nap_ms=60_000)
    [wake_up] = queue.messages
    queue.deployment.clock.advance(60)
    return task_id, wake_up


@pytest.fixture
def woken(queue):
    return queue.deployment


def test_a_poll_and_a_wake_up_at_the_same_time_dispatch_one_worker(queue, woken):
    task_id, wake_up = asleep(queue)
    woken.poll(task_id)
    queue.receive(wake_up)
    queue.receive(wake_up)
    assert len(woken.sent) == 1


def test_wake_ups_do_not_accumulate_in_a_task_that_is_polled_while_it_naps(queue, woken):
    """The poll wins each race; the wake-up arrives when the task sleeps again, and ends there."""
    times = 50
    task_id = woken.run_task("naps", times=times, nap_ms=5_000)
    sent = 0
    while queue.messages:
        wake_ups, queue.messages = queue.messages, []
        sent += len(wake_ups)
        woken.clock.advance(5)
        woken.poll(task_id)
        woken.run_workers()
        for wake_up in wake_ups:
            queue.receive(wake_up)
        woken.run_workers()
    assert (woken.task(task_id).status, sent) == (Status.COMPLETED, times)
    assert queue.count == times + 1


def test_a_wake_up_that_comes_after_the_poll_ends_while_the_worker_of_the_poll_runs(queue, woken):
    task_id, _ = asleep(queue)
    woken.poll(task_id)
    now_ms = round(woken.clock() * 1000)
    lease = {"owner": "worker", "delivery": "", "until_ms": now_ms + 60_000, "now_ms": now_ms}
    claim = transitions.claim(**lease, max_attempts=10)
    assert woken.store.update(woken.task(task_id).pk, TASK, claim) is not None
    queue.deliver()
    assert queue.messages == []


def test_a_worker_killed_before_it_sent_the_wake_up_is_retried_and_the_retry_sends_it(
    queue, woken, monkeypatch
):
    task_id = woken.start("naps", times=1, nap_ms=HOUR_MS)
    [delivery] = woken.sent
    with monkeypatch.context() as patch:
        patch.setattr(WorkerQueue, "dispatch_at", Mock(side_effect=WorkerKilled))
        with pytest.raises(WorkerKilled):
            woken.run_worker()
    assert not queue.messages
    woken.clock.advance(60)
    woken.sent.append(delivery)  # Lambda repeats the invocation
    queue.deliver_all()
    assert woken.task(task_id).status is Status.COMPLETED


def test_a_wake_up_that_is_killed_at_any_call_is_redelivered_and_wakes_the_task(queue, woken):
    task_id, wake_up = asleep(queue)
    for call in range(2):  # the read, and the record of the dispatch
        with pytest.raises(WorkerKilled):
            queue.receive(wake_up, woken.by(store=CrashingStore(woken.store, call, is_done=True)))
    assert not woken.sent
    queue.deliver_all()
    assert woken.task(task_id).status is Status.COMPLETED


@pytest.mark.parametrize("ends", ["cancelled", "expired", "deleted"])
def test_wake_ups_of_an_ended_task_end_with_it(queue, woken, ends):
    task_id = woken.run_task("naps", times=1, nap_ms=20 * HOUR_MS)
    if ends == "cancelled":
        woken.cancel(task_id)
    elif ends == "expired":
        woken.clock.advance(24 * 3600)
    else:
        woken.store._items.clear()
    queue.deliver_all()
    assert queue.deliveries == 1
    if ends == "expired":
        assert woken.task(task_id).status is Status.FAILED
