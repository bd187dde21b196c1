"""Tasks whose workers a queue wakes or runs: messages are late, repeated or lost with a worker, and polls."""

import json
from typing import Any
from unittest.mock import Mock

import pytest

from mcp_roundtrip import AsyncContext, Context, Elicit, Server
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.model import TASK, Status
from support.client_requests import accepted
from support.deployment import Deployment
from support.task_tools import meanwhile, ran, run_step, task_server
from support.worker_queue import WorkerQueue, deliver

HOUR_MS = 3_600_000


branches = Server("branches")


@branches.tool(task="required")
async def remind(ctx: AsyncContext, sleeps: int) -> str:
    await ctx.run_as_task(ttl_ms=24 * HOUR_MS)

    async def reminds(branch: AsyncContext) -> None:
        for nap in range(sleeps):
            await branch.sleep(f"nap {nap}", HOUR_MS)
            await branch.step(f"remind {nap}", run_step, f"reminded {nap}")

    async def asks(branch: AsyncContext) -> Any:
        return await branch.ask(Elicit("one", "One?", str), Elicit("two", "Two?", str))

    done = await ctx.gather({"reminds": reminds, "asks": asks})
    return str(done["asks"])


@pytest.mark.parametrize("answered", [["asks/one"], ["asks/one", "asks/two"]], ids=["some", "all"])
def test_answers_received_while_another_branch_runs_are_not_lost(answered):
    queue = WorkerQueue.of(branches)
    deployment = queue.deployment
    task_id = deployment.start("remind", sleeps=1)
    queue.deliver()
    given = {"asks/one": accepted("1"), "asks/two": accepted("2")}

    meanwhile.append(lambda: deployment.update(task_id, **{key: given[key] for key in answered}))
    queue.deliver_all()
    assert ran == ["reminded 0"]
    left = {key: answer for key, answer in given.items() if key not in answered}
    if left:
        assert deployment.poll(task_id)["inputRequests"].keys() == left.keys()
        deployment.update(task_id, **left)
        queue.deliver_all()
    assert "('1', '2')" in deployment.text_of(task_id)


def redriven(body):
    """Return a deployment whose first dispatch Lambda gave up, the task id, and the partition key."""
    deployment = Deployment(task_server(body))
    task_id = deployment.start("works")
    [(_, pk)] = deployment.sent
    deployment.sent.clear()
    deployment.clock.advance(HOUR_MS / 1000)
    return deployment, task_id, pk


def move(deployment, body, **members):
    """Deliver a message of the dead-letter queue to the worker of another function."""
    assert not deliver(deployment.by(server=Server("another")), json.dumps(body), **members)


OF_LAMBDA = {"messageAttributes": {"RequestID": {"stringValue": "request-1", "dataType": "String"}}}


def test_a_moved_message_changes_no_task_that_has_ended_and_expires_an_overdue_one():
    deployment, task_id, pk = redriven(lambda ctx: "done")
    deployment.poll(task_id)  # dispatches
    deployment.cancel(task_id)
    deployment.sent.clear()
    move(deployment, {"task": pk}, **OF_LAMBDA)
    move(deployment, {"task": pk.replace(task_id, "A" * 32)}, **OF_LAMBDA)
    assert deployment.status(task_id) == "cancelled"
    overdue, late_id, pk = redriven(lambda ctx: "done")
    overdue.clock.advance(23.5 * HOUR_MS / 1000)
    move(overdue, {"task": pk}, **OF_LAMBDA)
    assert overdue.task(late_id).is_terminal
    assert not deployment.sent
    assert not overdue.sent


def test_a_moved_message_stays_in_the_queue_during_the_pause_after_a_dispatch():
    deployment, task_id, pk = redriven(lambda ctx: "done")
    deployment.poll(task_id)
    deployment.sent.clear()  # Lambda gave this dispatch up, too, and its client polls no more
    another, body = deployment.by(server=Server("another")), json.dumps({"task": pk})
    assert deliver(another, body, **OF_LAMBDA)
    assert not deployment.sent
    deployment.clock.advance(930)
    assert not deliver(another, body, **OF_LAMBDA)
    deployment.run_workers()
    assert deployment.status(task_id) == "completed"


naps_server = Server("naps")


@naps_server.tool(task="required")
def naps(ctx: Context, times: int, nap_ms: int) -> int:
    ctx.run_as_task(ttl_ms=24 * HOUR_MS)
    for number in range(times):
        ctx.sleep(f"nap {number}", nap_ms)
    return times


@pytest.fixture
def queue():
    """A queue that wakes tasks, whose workers are invoked."""
    return WorkerQueue.of(naps_server, triggers=False)


def asleep(queue):
    """Return a task at the end of its nap, and its wake-up."""
    task_id = queue.deployment.run_task("naps", times=1, nap_ms=60_000)
    [wake_up] = queue.messages
    queue.deployment.clock.advance(60)
    return task_id, wake_up


@pytest.fixture
def woken(queue):
    return queue.deployment


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
    claim(woken, task_id)
    queue.deliver()
    assert queue.messages == []


def claim(deployment, task_id):
    """Have a worker claim a task, for a minute."""
    now_ms = round(deployment.clock() * 1000)
    lease = {"owner": "worker", "delivery": "", "until_ms": now_ms + 60_000, "now_ms": now_ms}
    assert deployment.store.update(deployment.task(task_id).pk, TASK, transitions.claim(**lease)) is not None


def test_a_moved_message_that_comes_during_the_lease_of_a_lost_worker_dispatches_after_it(queue, woken):
    task_id = woken.start("naps", times=0, nap_ms=0)
    woken.sent.clear()  # Lambda gave this dispatch up, and its client polls no more
    claim(woken, task_id)
    move(woken, {"task": woken.task(task_id).pk}, **OF_LAMBDA)
    queue.deliver_all()
    assert woken.status(task_id) == "completed"


def test_a_wake_up_whose_dispatch_fails_repeatedly_dispatches_when_it_is_delivered_again(
    queue, woken, monkeypatch
):
    task_id, wake_up = asleep(queue)
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(WorkerQueue, "dispatch", Mock(side_effect=StoreError("ThrottlingException")))
            patch.setattr(type(woken.observer), "record_failure", log := Mock())
            queue.receive(wake_up)
            assert log.call_args.kwargs["task"] == task_id
        woken.clock.advance(65)
    queue.receive(wake_up)
    assert len(woken.sent) == 1


@pytest.mark.parametrize("ends", ["cancelled", "expired", "deleted"])
def test_wake_ups_of_an_ended_task_end_with_it(queue, woken, ends):
    task_id = woken.run_task("naps", times=1, nap_ms=30 * HOUR_MS)
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
