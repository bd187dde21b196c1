"""Tasks with queue delivery and without polls: messages are late, repeated or lost with a worker."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip import AsyncContext, Context, Elicit, Server
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.internal_errors import KeyServiceError, StoreError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.tasks.endings import MAX_ATTEMPTS
from mcp_roundtrip.tasks.model import TASK, Status, Task, WorkState
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing.task_table import CrashingStore, RecordingDispatcher, WorkerKilled
from support.task_deployment import LambdaContext, TaskDeployment, accepted

HOUR_MS = 3_600_000
VISIBILITY_S = 930
MAX_DELAY_S = 900
MAX_WORKERS = 100


@dataclass(slots=True)
class Queue(RecordingDispatcher):
    """Messages with the time (epoch seconds) from which they can be received."""

    now: Callable[[], float] = lambda: 0.0
    messages: list[tuple[float, str]] = field(default_factory=list)

    def dispatch(self, worker: str, pk: str) -> None:
        self.pks[pk.partition("#")[2]] = pk
        self.messages.append((self.now(), json.dumps({"task": pk})))

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        due = min(math.ceil(at_ms / 1000), self.now() + MAX_DELAY_S)
        self.messages.append((due, json.dumps({"task": pk, "wake": at_ms})))


class QueueDeployment(TaskDeployment):
    """A deployment with a queue that delivers due messages and redelivers those of failed workers."""

    queue: Queue
    workers = 0

    def __post_init__(self) -> None:
        TaskDeployment.__post_init__(self)
        self.queue = Queue(now=self.clock)
        self.table.dispatcher = self.queue

    def task(self, task_id: str) -> Task:
        item = self.table.store.get(self.queue.pks[task_id], TASK)
        assert item is not None
        return Task.from_item(item)

    def deliver(self, *, crashes_at: int | None = None) -> None:
        """Deliver the next message at its time. Kill its worker at call `crashes_at` of the store."""
        self.workers += 1
        due, body = min(self.queue.messages)
        self.queue.messages.remove((due, body))
        self.clock.advance(max(0.0, due - self.clock()))
        event = {"Records": [{"messageId": "m", "body": body}]}
        store = None if crashes_at is None else CrashingStore(self.store, crashes_at, is_done=False)
        try:
            answer = work(self.server._tool_methods, event, LambdaContext(), partial(self.ports, store))
        except WorkerKilled:
            answer = {"batchItemFailures": [{"itemIdentifier": "m"}]}
        if answer["batchItemFailures"]:
            self.queue.messages.append((self.clock() + VISIBILITY_S, body))

    def deliver_all(self, **each: Any) -> None:
        """Deliver until the queue is empty."""
        while self.queue.messages:
            assert self.workers < MAX_WORKERS, "workers dispatch each other endlessly"
            self.deliver(**each)


def deployment_of(body: Callable[[Context], Any], ttl_ms: int = 24 * HOUR_MS) -> QueueDeployment:
    """Return a deployment whose tool `works` runs `body` as a task."""
    server = Server("queued")

    @server.tool(task="required")
    def works(ctx: Context) -> str:
        ctx.run_as_task(ttl_ms=ttl_ms)
        return str(body(ctx))

    return QueueDeployment(server)


# -- without polls ----------------------------------------------------------------------------------------


def test_a_task_wakes_without_a_poll_from_a_sleep_over_the_maximum_delay() -> None:
    deployment = deployment_of(lambda ctx: ctx.sleep("night", 8 * HOUR_MS))
    task_id = deployment.start("works")
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert deployment.clock() * 1000 == deployment.task(task_id).created_at_ms + 8 * HOUR_MS


def test_a_task_that_expires_during_its_sleep_fails_and_is_not_dispatched_again() -> None:
    deployment = deployment_of(lambda ctx: ctx.sleep("night", 8 * HOUR_MS), ttl_ms=HOUR_MS)
    task_id = deployment.start("works")
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.FAILED


def test_a_task_that_kills_every_worker_is_abandoned_and_logged() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("deadly", int))
    task_id = deployment.start("works")
    for _ in range(MAX_ATTEMPTS):
        deployment.deliver(crashes_at=2)
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.FAILED
    assert ("task_abandoned", {"task": task_id}) in deployment.observer.events


def test_workers_lost_after_progress_do_not_count_as_attempts() -> None:
    steps = 3 * MAX_ATTEMPTS
    ran: list[int] = []
    deployment = deployment_of(lambda ctx: [ctx.step(str(n), ran.append, n) for n in range(steps)])
    task_id = deployment.start("works")
    while deployment.task(task_id).status is Status.WORKING and deployment.workers < 2 * steps:
        deployment.deliver(
            crashes_at=5
        )  # claim, query, [reset attempts], read, journal; killed at the next call
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert sorted(set(ran)) == list(range(steps))


# -- messages at the wrong time ---------------------------------------------------------------------------


def test_a_message_received_during_the_lease_of_another_worker_is_redelivered() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("work", int))
    task_id = deployment.start("works")
    deployment.queue.messages.append(deployment.queue.messages[0])  # SQS delivers at least once
    deployment.deliver(crashes_at=2)
    deployment.queue.messages.pop()  # the message of the lost worker is gone
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert deployment.workers <= 5, "lost, too early, its wake-up twice (too long for one message), finished"


def test_messages_of_an_ended_task_are_deleted() -> None:
    deployment = deployment_of(lambda ctx: "done")
    task_id = deployment.start("works")
    deployment.queue.messages *= 5
    deployment.deliver_all()
    assert (deployment.task(task_id).status, deployment.workers) == (Status.COMPLETED, 5)


# -- branches that sleep and branches that ask ------------------------------------------------------------

branches = Server("branches")
RAN: list[str] = []
MEANWHILE: list[Callable[[], object]] = []
"""A function that is called while a step runs."""


@pytest.fixture(autouse=True)
def reset_ran() -> None:
    RAN.clear()
    MEANWHILE.clear()


def record_run(what: str) -> None:
    RAN.append(what)
    while MEANWHILE:
        MEANWHILE.pop()()


@branches.tool(task="required")
async def remind(ctx: AsyncContext, sleeps: int) -> str:
    await ctx.run_as_task(ttl_ms=24 * HOUR_MS)

    async def reminds(branch: AsyncContext) -> None:
        for nap in range(sleeps):
            await branch.sleep(f"nap {nap}", HOUR_MS)
            await branch.step(f"remind {nap}", record_run, f"reminded {nap}")

    async def asks(branch: AsyncContext) -> Any:
        return await branch.ask(Elicit("one", "One?", str), Elicit("two", "Two?", str))

    done = await ctx.gather({"reminds": reminds, "asks": asks})
    return str(done["asks"])


def test_a_branch_wakes_while_another_asks_and_the_questions_stay_unchanged() -> None:
    deployment = QueueDeployment(branches)
    task_id = deployment.start("remind", sleeps=2)
    deployment.deliver()
    asked = deployment.get(task_id)["result"]["inputRequests"]
    deployment.deliver_all()
    assert RAN == ["reminded 0", "reminded 1"]
    result = deployment.get(task_id)["result"]
    assert (result["status"], result["inputRequests"]) == ("input_required", asked)
    assert asked.keys() == {"asks/one", "asks/two"}
    deployment.update(task_id, **{"asks/one": accepted("1"), "asks/two": accepted("2")})
    deployment.deliver_all()
    assert "('1', '2')" in deployment.get(task_id)["result"]["result"]["content"][0]["text"]


@pytest.mark.parametrize("answered", [["asks/one"], ["asks/one", "asks/two"]], ids=["some", "all"])
def test_answers_received_while_another_branch_runs_are_not_lost(answered: list[str]) -> None:
    deployment = QueueDeployment(branches)
    task_id = deployment.start("remind", sleeps=1)
    deployment.deliver()
    given = {"asks/one": accepted("1"), "asks/two": accepted("2")}

    MEANWHILE.append(lambda: deployment.update(task_id, **{key: given[key] for key in answered}))
    deployment.deliver_all()
    assert RAN == ["reminded 0"]
    left = {key: answer for key, answer in given.items() if key not in answered}
    if left:
        assert deployment.get(task_id)["result"]["inputRequests"].keys() == left.keys()
        deployment.update(task_id, **left)
        deployment.deliver_all()
    assert "('1', '2')" in deployment.get(task_id)["result"]["result"]["content"][0]["text"]


# -- failures that a later worker may not have ------------------------------------------------------------


class FailingLinks:
    """Links whose first signatures fail."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def sign(self, *link: Any) -> str:
        self.failures -= 1
        if self.failures >= 0:
            raise KeyServiceError("ThrottlingException")
        return "token"


def test_a_key_service_error_does_not_fail_a_task() -> None:
    deployment = deployment_of(lambda ctx: ctx.signed_link("link", "https://a.example"))
    links: Any = FailingLinks(2)
    make = deployment.ports

    def with_links(store: Any = None) -> Ports:
        return replace(make(store), links=lambda: links)

    deployment.ports = with_links  # type: ignore[method-assign]  # an environment with other links
    task_id = deployment.start("works")
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert [event for event, _ in deployment.observer.failures] == [
        "queue_message_failed",
        "queue_message_failed",
    ]


class FlakyStore(MemoryStore):
    """A store whose first writes of a failed status are refused."""

    refusals = 1

    def update(self, pk: str, sk: str, change: Any) -> Any:
        if "err" in change.set and self.refusals:
            self.refusals -= 1
            raise StoreError("ThrottlingException")
        return super().update(pk, sk, change)


def test_a_worker_that_cannot_write_the_failure_leaves_the_task_to_the_next() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("large", lambda: "x" * 500_000))
    deployment.store = deployment.table.store = FlakyStore()
    task_id = deployment.start("works")
    deployment.deliver()
    assert deployment.task(task_id).work_state is WorkState.READY
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.FAILED
