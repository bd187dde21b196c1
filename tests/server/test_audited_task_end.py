"""The audit record of a task that no worker ends: it has expired, or its workers were lost."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from unittest.mock import Mock

import pytest

from mcp_roundtrip import AsyncContext, Context, Server
from mcp_roundtrip.tasks.lease import Delivery, Lease
from mcp_roundtrip.tasks.model import TASK, Status
from mcp_roundtrip.tasks.store_interface import Above, Change
from mcp_roundtrip.tasks.transitions import MAX_ATTEMPTS
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.audit_lines import AuditLines
from support.deployment import Deployment
from support.worker_queue import deliver

TTL_MS = 3_600_000
server = Server("ending")


@server.tool(task="required")
def lasting(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=TTL_MS)
    return ctx.elicit("address", "Where to?", str)


@server.tool(task="required")
async def waiting(ctx: AsyncContext) -> None:
    await ctx.run_as_task()
    await asyncio.gather(ctx.elicit("address", "Where to?", str), ctx.sleep("nap", 60_000))


def started():
    """Return a deployment with a task."""
    deployment = Deployment(server, audit=AuditLines())
    deployment.start("lasting")
    return deployment


def expired():
    """Return a deployment whose only task has expired, and is not known to have."""
    deployment = started()
    deployment.clock.now += TTL_MS / 1_000
    return deployment


def abandoned():
    """Return a deployment whose only task has lost its last worker, and is not known to have."""
    deployment = started()
    change(deployment, att=MAX_ATTEMPTS)
    return deployment


def task_of(deployment):
    [task] = deployment.tasks
    return task


def change(deployment, **attributes):
    """Change attributes of the task."""
    changed = Change(Above("ver", 0), set=attributes)
    assert deployment.store.update(task_of(deployment).pk, TASK, changed) is not None


def ends(deployment):
    """Return the records of the ends of tasks, as a reader sees them."""
    return [record for record in deployment.audit.records() if record["method"] == "task_end"]


def poll(deployment):
    deployment.poll(task_of(deployment).task_id)


def work_on(deployment):
    deployment.work({"task": task_of(deployment).pk})


def receive(deployment, **message):
    body = json.dumps({"task": task_of(deployment).pk, "queue": "https://sqs/one", **message})
    assert not deliver(deployment, body, eventSourceARN="arn:aws:sqs:::one")


def wake(deployment):
    """Deliver the wake-up that a task's last dispatch has left."""
    receive(deployment, wake=task_of(deployment).claimable_at_ms)


@pytest.mark.parametrize("notice", [poll, work_on, receive, wake])
@pytest.mark.parametrize("make", [expired, abandoned])
def test_the_end_of_a_task_has_one_record_with_its_caller_and_its_tool(make, notice):
    deployment = make()
    [created] = deployment.audit.records()
    assert (created["outcome"], created["task_ttl_ms"]) == ("task", TTL_MS)
    notice(deployment)
    for again in (poll, work_on, receive):
        again(deployment)
    assert task_of(deployment).status is Status.FAILED
    assert deployment.audit.phases[2:] == ["begun", "ended"]
    [end] = ends(deployment)
    assert end["outcome"] == make.__name__
    shared = ("principal", "feature_kind", "feature", "client", "task", "flow")
    assert [end[name] for name in shared] == [created[name] for name in shared]
    assert end["principal"]["subject"] == "alice"


@pytest.mark.parametrize("make", [expired, abandoned])
def test_an_end_that_cannot_be_recorded_does_not_happen(make):
    deployment = make()
    task_id = task_of(deployment).task_id
    deployment.audit.fails = lambda phase: True
    assert deployment.send(deployment.body("tasks/get", taskId=task_id)).status == 503
    assert task_of(deployment).status is Status.WORKING
    assert "audit_failed" in deployment.failures
    deployment.audit.fails = lambda phase: False
    poll(deployment)
    assert [end["outcome"] for end in ends(deployment)] == [make.__name__]


@pytest.mark.parametrize("make", [expired, abandoned])
@pytest.mark.parametrize("is_done", [False, True])
def test_an_end_has_one_record_wherever_the_process_that_notices_it_is_killed(make, is_done):
    """It is lost at one operation on the table. The outcome is unknown if the task had ended by then."""
    outcomes = set()
    for operation in range(20):
        deployment = make()
        with suppress(WorkerKilled):
            poll(deployment.by(store=CrashingStore(deployment.store, operation, is_done)))
            assert outcomes == ({make.__name__, "unknown"} if is_done else {make.__name__})
            return
        had_ended = task_of(deployment).is_terminal
        poll(deployment)
        [end] = ends(deployment)
        assert end["outcome"] == ("unknown" if had_ended else make.__name__)
        outcomes.add(end["outcome"])
    raise AssertionError("the poll has more operations than were tried")


def once(deployment, act, at=None):
    """Let the next line of the log be written while something happens: at any phase, or at this one."""

    def on_write(phase):
        if at in (None, phase):
            deployment.audit.on_write = lambda phase: None
            act()

    deployment.audit.on_write = on_write


@pytest.mark.parametrize("phase", ["begun", "ended"])
def test_an_end_has_one_record_also_if_the_process_is_killed_at_the_log(phase):
    deployment = expired()
    once(deployment, Mock(side_effect=WorkerKilled), at=phase)
    with pytest.raises(WorkerKilled):
        poll(deployment)
    poll(deployment)
    [end] = ends(deployment)
    assert end["outcome"] == ("expired" if phase == "begun" else "unknown")


@pytest.mark.parametrize("make", [expired, abandoned])
def test_an_end_that_comes_too_late_is_superseded(make):
    deployment = make()
    once(deployment, lambda: deployment.cancel(task_of(deployment).task_id))
    poll(deployment)
    assert task_of(deployment).status is Status.CANCELLED
    [end] = ends(deployment)
    assert end["outcome"] == "superseded"


def test_a_task_that_was_nearly_abandoned_has_another_record_of_its_end():
    deployment = abandoned()
    once(deployment, lambda: change(deployment, att=0, ver=task_of(deployment).version + 1))
    poll(deployment)
    change(deployment, att=MAX_ATTEMPTS)
    poll(deployment)
    assert [end["outcome"] for end in ends(deployment)] == ["superseded", "abandoned"]


def test_a_task_whose_tool_was_removed_has_a_record_of_its_failed_pass():
    deployment = started()
    [created] = deployment.audit.records()
    work_on(deployment.by(server=Server("later")))
    assert task_of(deployment).status is Status.FAILED
    [_, failed] = deployment.audit.records()
    assert (failed["outcome"], failed["worker"]) == ("failed", True)
    shared = ("principal", "method", "feature_kind", "feature", "client", "task", "flow")
    assert [failed[name] for name in shared] == [created[name] for name in shared]


def take(deployment):
    """Let another worker take the task of a worker that has just begun its record."""
    deployment.clock.now += 61
    given = Delivery("", 60_000, 60_000)
    now_ms = int(deployment.clock.now * 1_000)
    lease = Lease(deployment.store, task_of(deployment).pk, "another", given, lambda: now_ms)
    assert lease.claim() is not None


def test_a_pass_that_lost_its_lease_has_asked_nothing():
    deployment = Deployment(server, audit=AuditLines())
    deployment.start("waiting")
    work_on(deployment)
    deployment.clock.now += 60
    once(deployment, lambda: take(deployment))
    work_on(deployment)
    last = deployment.audit.records()[-1]
    assert (last["outcome"], last.get("asked")) == ("lease_lost", None)


def test_processes_that_notice_an_end_at_once_write_one_record():
    deployment = expired()
    number = 4
    all_have_begun = Barrier(number)
    deployment.audit.on_write = lambda phase: all_have_begun.wait(10) if phase == "begun" else None
    with ThreadPoolExecutor(number) as threads:
        list(threads.map(lambda _: poll(deployment), range(number)))
    [end] = ends(deployment)
    assert end["outcome"] == "expired"
    assert sorted(deployment.audit.phases[2:]) == ["begun"] * number + ["ended"] * number
    assert {line.get("outcome") for line in deployment.audit.lines[2:]} == {None, "expired"}
