"""Tasks with queue delivery: no client polls; messages are late, repeated or lost with a worker."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from mcp_roundtrip import AsyncContext, Context, Elicit, Server
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.internal_errors import KeyServiceError, StoreError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.tasks.model import TASK, Status, Task, WorkState
from mcp_roundtrip.tasks.service import MAX_ATTEMPTS
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing.task_table import CrashingStore, RecordingDispatcher, WorkerKilled
from support.task_deployment import LambdaContext, TaskDeployment, accepted

HOUR_MS = 3_600_000
VISIBILITY_S = 930
MAX_DELAY_S = 900
ENOUGH = 100


@dataclass(slots=True)
class Queue(RecordingDispatcher):
    """Messages by the time (epoch seconds) at which they can be received."""

    now: Callable[[], float] = lambda: 0.0
    messages: list[tuple[float, str]] = field(default_factory=list)

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        self.pks[pk.partition("#")[2]] = pk
        self.messages.append((self.now() + min(-(-delay_ms // 1000), MAX_DELAY_S), pk))


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

    def deliver(self, *, dies_at: int | None = None) -> None:
        """The next message, when its time has come; its worker is killed at that call of the store."""
        self.workers += 1
        due, pk = min(self.queue.messages)
        self.queue.messages.remove((due, pk))
        self.clock.advance(max(0.0, due - self.clock()))
        event = {"Records": [{"messageId": "m", "body": json.dumps({"task": pk})}]}
        store = None if dies_at is None else CrashingStore(self.store, dies_at, is_done=False)
        try:
            answer = work(self.server._tool_methods, event, LambdaContext(), partial(self.ports, store))
        except WorkerKilled:
            answer = {"batchItemFailures": [{"itemIdentifier": "m"}]}
        if answer["batchItemFailures"]:
            self.queue.messages.append((self.clock() + VISIBILITY_S, pk))

    def run_dry(self, **each: Any) -> None:
        """Deliver until there is no message left."""
        while self.queue.messages:
            assert self.workers < ENOUGH, "workers send for each other without end"
            self.deliver(**each)


def deployment_of(body: Callable[[Context], Any], ttl_ms: int = 24 * HOUR_MS) -> QueueDeployment:
    """A deployment whose tool `works` is a task of this body."""
    server = Server("queued")

    @server.tool(task="required")
    def works(ctx: Context) -> str:
        ctx.run_as_task(ttl_ms=ttl_ms)
        return str(body(ctx))

    return QueueDeployment(server)


# -- without polls ---------------------------------------------------------------------------------------


def test_a_task_that_sleeps_longer_than_a_message_can_wakes_without_a_poll() -> None:
    deployment = deployment_of(lambda ctx: ctx.sleep("night", 8 * HOUR_MS))
    task_id = deployment.start("works")
    deployment.run_dry()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert deployment.clock() * 1000 == deployment.task(task_id).created_at_ms + 8 * HOUR_MS


def test_a_task_whose_time_to_live_ends_in_its_sleep_fails_and_is_not_dispatched_again() -> None:
    deployment = deployment_of(lambda ctx: ctx.sleep("night", 8 * HOUR_MS), ttl_ms=HOUR_MS)
    task_id = deployment.start("works")
    deployment.run_dry()
    assert deployment.task(task_id).status is Status.FAILED


def test_a_task_that_every_worker_dies_of_is_given_up_and_that_is_said() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("deadly", int))
    task_id = deployment.start("works")
    for _ in range(MAX_ATTEMPTS):
        deployment.deliver(dies_at=2)
    deployment.run_dry()
    assert deployment.task(task_id).status is Status.FAILED
    assert ("task_abandoned", {"task": task_id}) in deployment.observer.events


def test_workers_that_die_after_they_got_something_done_are_not_counted_against_the_task() -> None:
    steps = 3 * MAX_ATTEMPTS
    ran: list[int] = []
    deployment = deployment_of(lambda ctx: [ctx.step(str(n), ran.append, n) for n in range(steps)])
    task_id = deployment.start("works")
    while deployment.task(task_id).status is Status.WORKING and deployment.workers < 2 * steps:
        deployment.deliver(dies_at=5)  # claim, query, [got ahead], look, journal, and no further
    deployment.run_dry()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert sorted(set(ran)) == list(range(steps))


# -- messages at the wrong time -------------------------------------------------------------------------


def test_a_message_that_comes_while_a_worker_is_busy_outlives_that_worker() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("work", int))
    task_id = deployment.start("works")
    deployment.queue.messages.append(deployment.queue.messages[0])  # at least once, says SQS
    deployment.deliver(dies_at=2)
    deployment.queue.messages.pop()  # and that of the dead worker is as good as lost
    deployment.run_dry()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert deployment.workers <= 4


def test_messages_for_a_task_that_has_ended_are_done_with() -> None:
    deployment = deployment_of(lambda ctx: "done")
    task_id = deployment.start("works")
    deployment.queue.messages *= 5
    deployment.run_dry()
    assert (deployment.task(task_id).status, deployment.workers) == (Status.COMPLETED, 5)


# -- branches that sleep and branches that ask ----------------------------------------------------------

branches = Server("branches")
RAN: list[str] = []
MEANWHILE: list[Callable[[], object]] = []
"""What happens while a step runs."""


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()
    MEANWHILE.clear()


def did(what: str) -> None:
    RAN.append(what)
    while MEANWHILE:
        MEANWHILE.pop()()


@branches.tool(task="required")
async def remind(ctx: AsyncContext, naps: int) -> str:
    await ctx.run_as_task(ttl_ms=24 * HOUR_MS)

    async def reminds(branch: AsyncContext) -> None:
        for nap in range(naps):
            await branch.sleep(f"nap {nap}", HOUR_MS)
            await branch.step(f"remind {nap}", did, f"reminded {nap}")

    async def asks(branch: AsyncContext) -> Any:
        return await branch.ask(Elicit("one", "One?", str), Elicit("two", "Two?", str))

    done = await ctx.gather({"reminds": reminds, "asks": asks})
    return str(done["asks"])


def test_a_branch_wakes_while_another_asks_and_the_questions_stay_what_they_are() -> None:
    deployment = QueueDeployment(branches)
    task_id = deployment.start("remind", naps=2)
    deployment.deliver()
    asked = deployment.get(task_id)["result"]["inputRequests"]
    deployment.run_dry()
    assert RAN == ["reminded 0", "reminded 1"]
    result = deployment.get(task_id)["result"]
    assert (result["status"], result["inputRequests"]) == ("input_required", asked)
    assert asked.keys() == {"asks/one", "asks/two"}
    deployment.update(task_id, **{"asks/one": accepted("1"), "asks/two": accepted("2")})
    deployment.run_dry()
    assert "('1', '2')" in deployment.get(task_id)["result"]["result"]["content"][0]["text"]


@pytest.mark.parametrize("answered", [["asks/one"], ["asks/one", "asks/two"]], ids=["some", "all"])
def test_answers_that_come_while_a_branch_is_worked_on_are_kept(answered: list[str]) -> None:
    deployment = QueueDeployment(branches)
    task_id = deployment.start("remind", naps=1)
    deployment.deliver()
    given = {"asks/one": accepted("1"), "asks/two": accepted("2")}

    MEANWHILE.append(lambda: deployment.update(task_id, **{key: given[key] for key in answered}))
    deployment.run_dry()
    assert RAN == ["reminded 0"]
    left = {key: answer for key, answer in given.items() if key not in answered}
    if left:
        assert deployment.get(task_id)["result"]["inputRequests"].keys() == left.keys()
        deployment.update(task_id, **left)
        deployment.run_dry()
    assert "('1', '2')" in deployment.get(task_id)["result"]["result"]["content"][0]["text"]


# -- what a later worker may be spared ------------------------------------------------------------------


class NoLinks:
    """Links that KMS does not sign at first."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def sign(self, *link: Any) -> str:
        self.failures -= 1
        if self.failures >= 0:
            raise KeyServiceError("ThrottlingException")
        return "token"


def test_a_key_service_that_is_busy_ends_no_task() -> None:
    deployment = deployment_of(lambda ctx: ctx.signed_link("link", "https://a.example"))
    links: Any = NoLinks(2)
    make = deployment.ports

    def with_links(store: Any = None) -> Ports:
        return replace(make(store), links=lambda: links)

    deployment.ports = with_links  # type: ignore[method-assign]  # an environment with other links
    task_id = deployment.start("works")
    deployment.run_dry()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert [event for event, _ in deployment.observer.failures] == [
        "queue_message_failed",
        "queue_message_failed",
    ]


class Grudging(MemoryStore):
    """Does not write that a task has failed, at first."""

    refusals = 1

    def update(self, pk: str, sk: str, change: Any) -> Any:
        if "err" in change.set and self.refusals:
            self.refusals -= 1
            raise StoreError("ThrottlingException")
        return super().update(pk, sk, change)


def test_a_worker_that_cannot_even_write_that_the_task_has_failed_gives_the_task_back() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("large", lambda: "x" * 500_000))
    deployment.store = deployment.table.store = Grudging()
    task_id = deployment.start("works")
    deployment.deliver()
    assert deployment.task(task_id).work_state is WorkState.READY
    deployment.run_dry()
    assert deployment.task(task_id).status is Status.FAILED
