"""The audit record of a task that no worker ends: it has expired, or its workers were lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip import Context, Server
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.tasks.changes import Above, Change
from mcp_roundtrip.tasks.endings import MAX_ATTEMPTS
from mcp_roundtrip.tasks.model import TASK, Status, Task
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.audit_lines import AuditLines
from support.task_deployment import LambdaContext, TaskDeployment

TTL_MS = 3_600_000
server = Server("ending")


@server.tool(task="required")
def lasting(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=TTL_MS)
    return ctx.elicit("address", "Where to?", str)


@dataclass
class AuditedDeployment(TaskDeployment):
    """A deployment with audit records."""

    log: AuditLines = field(default_factory=AuditLines)

    def ports(self, store: TaskStore | None = None) -> Ports:
        return replace(super().ports(store), audit=self.log.log)

    def task(self) -> Task:
        [pk] = self.table.dispatcher.pks.values()
        item = self.store.get(pk, TASK)
        assert item is not None
        return Task.from_item(item)

    def ends(self) -> list[dict[str, Any]]:
        """Return the records of the ends of tasks, as a reader sees them."""
        return [record for record in self.log.records() if record["method"] == "task_end"]


def expired() -> AuditedDeployment:
    """Return a deployment whose only task has expired, and is not known to have."""
    deployment = AuditedDeployment(server)
    deployment.start("lasting")
    deployment.clock.now += TTL_MS / 1_000
    return deployment


def abandoned() -> AuditedDeployment:
    """Return a deployment whose only task has lost its last worker, and is not known to have."""
    deployment = AuditedDeployment(server)
    deployment.start("lasting")
    deployment.store.update(deployment.task().pk, TASK, Change(Above("ver", 0), set={"att": MAX_ATTEMPTS}))
    return deployment


def poll(deployment: AuditedDeployment, store: TaskStore | None = None) -> None:
    deployment.get(deployment.task().task_id, store=store)


def work_on(deployment: AuditedDeployment, store: TaskStore | None = None) -> None:
    event = {"task": deployment.task().pk}
    work(server._tool_methods, event, LambdaContext(), lambda: deployment.ports(store))


def deliver(deployment: AuditedDeployment, store: TaskStore | None = None, **message: Any) -> None:
    body = json.dumps({"task": deployment.task().pk, "queue": "https://sqs/one", **message})
    record = {"messageId": "1", "receiptHandle": "1", "body": body, "eventSourceARN": "arn:aws:sqs:::one"}
    answer = work(
        server._tool_methods, {"Records": [record]}, LambdaContext(), lambda: deployment.ports(store)
    )
    assert answer == {"batchItemFailures": []}


def wake(deployment: AuditedDeployment) -> None:
    """Deliver the wake-up that a task's last dispatch has left."""
    deliver(deployment, wake=deployment.task().claimable_at_ms)


@pytest.mark.parametrize("notice", [poll, work_on, deliver, wake])
@pytest.mark.parametrize("make", [expired, abandoned])
def test_the_end_of_a_task_has_one_record_with_its_caller_and_its_tool(
    make: Callable[[], AuditedDeployment], notice: Callable[[AuditedDeployment], None]
) -> None:
    deployment = make()
    [created] = deployment.log.records()
    notice(deployment)
    if make is abandoned and notice is wake:  # it dispatches a worker, which notices it
        work_on(deployment)
    for again in (poll, work_on, deliver):
        again(deployment)
    assert deployment.task().status is Status.FAILED
    assert deployment.log.phases[2:] == ["begun", "ended"]
    [end] = deployment.ends()
    assert end["outcome"] == make.__name__
    shared = ("principal", "feature_kind", "feature", "client", "task", "flow")
    assert [end[name] for name in shared] == [created[name] for name in shared]
    assert end["principal"]["subject"] == "alice"


def test_the_record_of_the_call_says_how_long_its_task_lives() -> None:
    [created] = expired().log.records()
    assert (created["outcome"], created["task_ttl_ms"]) == ("task", TTL_MS)


def test_a_task_whose_worker_runs_is_not_recorded_as_abandoned() -> None:
    deployment = AuditedDeployment(server)
    deployment.start("lasting")
    now_ms = int(deployment.clock.now * 1_000)
    leased = {"att": MAX_ATTEMPTS, "rn": "L", "lo": "other", "lu": now_ms + 60_000}
    deployment.store.update(deployment.task().pk, TASK, Change(Above("ver", 0), set=leased))
    deployment.log.lines.clear()
    poll(deployment)
    assert (deployment.task().status, deployment.log.lines) == (Status.WORKING, [])


@pytest.mark.parametrize("make", [expired, abandoned])
def test_an_end_that_cannot_be_recorded_does_not_happen(make: Callable[[], AuditedDeployment]) -> None:
    deployment = make()
    task_id = deployment.task().task_id
    deployment.log.fails = lambda phase: True
    response = deployment.send(deployment.body("tasks/get", taskId=task_id))
    assert response.status == 503
    assert deployment.task().status is Status.WORKING
    assert "audit_failed" in [event for event, _ in deployment.observer.failures]
    deployment.log.fails = lambda phase: False
    poll(deployment)
    assert [end["outcome"] for end in deployment.ends()] == [make.__name__]


@pytest.mark.parametrize("make", [expired, abandoned])
@pytest.mark.parametrize("is_done", [False, True])
def test_an_end_has_one_record_wherever_the_process_that_notices_it_is_killed(
    make: Callable[[], AuditedDeployment], is_done: bool
) -> None:
    """It is lost at one operation on the table. The outcome is unknown if the task had ended by then."""
    outcomes = set()
    for operation in range(20):
        deployment = make()
        store = CrashingStore(deployment.store, operation, is_done)
        try:
            poll(deployment, store)
        except WorkerKilled:
            had_ended = deployment.task().is_terminal
            poll(deployment)
            [end] = deployment.ends()
            assert end["outcome"] == ("unknown" if had_ended else make.__name__)
            outcomes.add(end["outcome"])
        else:
            assert outcomes == ({make.__name__, "unknown"} if is_done else {make.__name__})
            return
    raise AssertionError("the poll has more operations than were tried")


@pytest.mark.parametrize("phase", ["begun", "ended"])
def test_an_end_has_one_record_also_if_the_process_is_killed_at_the_log(phase: str) -> None:
    deployment = expired()

    def kill(written: str) -> None:
        if written == phase:
            raise WorkerKilled

    deployment.log.on_write = kill
    with pytest.raises(WorkerKilled):
        poll(deployment)
    deployment.log.on_write = lambda phase: None
    poll(deployment)
    [end] = deployment.ends()
    assert end["outcome"] == ("expired" if phase == "begun" else "unknown")


def test_a_process_that_is_killed_after_its_first_line_leaves_the_end_to_the_next_one() -> None:
    deployment = expired()
    store = CrashingStore(deployment.store, 2, is_done=False)  # the task, the call, and then the end
    with pytest.raises(WorkerKilled):
        poll(deployment, store)
    assert (store.killed_at, deployment.log.phases[2:]) == ("update M", ["begun"])
    work_on(deployment)
    [end] = deployment.ends()
    assert (end["outcome"], deployment.log.phases[2:]) == ("expired", ["begun", "begun", "ended"])


@pytest.mark.parametrize("make", [expired, abandoned])
def test_an_end_that_comes_too_late_is_superseded(make: Callable[[], AuditedDeployment]) -> None:
    deployment = make()
    task_id = deployment.task().task_id

    def cancel(phase: str) -> None:
        deployment.log.on_write = lambda phase: None
        deployment.cancel(task_id)

    deployment.log.on_write = cancel
    poll(deployment)
    assert deployment.task().status is Status.CANCELLED
    [end] = deployment.ends()
    assert end["outcome"] == "superseded"


def test_a_task_that_was_nearly_abandoned_has_another_record_of_its_end() -> None:
    deployment = abandoned()

    def take(phase: str) -> None:
        deployment.log.on_write = lambda phase: None
        task = deployment.task()
        changed = {"att": 0, "ver": task.version + 1}
        deployment.store.update(task.pk, TASK, Change(Above("ver", 0), set=changed))

    deployment.log.on_write = take
    poll(deployment)
    deployment.store.update(deployment.task().pk, TASK, Change(Above("ver", 0), set={"att": MAX_ATTEMPTS}))
    poll(deployment)
    assert [end["outcome"] for end in deployment.ends()] == ["superseded", "abandoned"]


def test_a_task_whose_tool_was_removed_has_a_record_of_its_failed_pass() -> None:
    deployment = AuditedDeployment(server)
    deployment.start("lasting")
    [created] = deployment.log.records()
    event = {"task": deployment.task().pk}
    work(Server("later")._tool_methods, event, LambdaContext(), deployment.ports)
    assert deployment.task().status is Status.FAILED
    [_, failed] = deployment.log.records()
    assert (failed["outcome"], failed["worker"]) == ("failed", True)
    shared = ("principal", "method", "feature_kind", "feature", "client", "task", "flow")
    assert [failed[name] for name in shared] == [created[name] for name in shared]


def test_processes_that_notice_an_end_at_once_write_one_record() -> None:
    deployment = expired()
    number = 4
    all_have_begun = Barrier(number)
    deployment.log.on_write = lambda phase: all_have_begun.wait(10) if phase == "begun" else None
    with ThreadPoolExecutor(number) as threads:
        list(threads.map(lambda _: poll(deployment), range(number)))
    [end] = deployment.ends()
    assert end["outcome"] == "expired"
    assert sorted(deployment.log.phases[2:]) == ["begun"] * number + ["ended"] * number
    assert {line.get("outcome") for line in deployment.log.lines[2:]} == {None, "expired"}
