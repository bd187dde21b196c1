"""Tasks with queue delivery and without polls: messages are late, repeated or lost with a worker."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
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
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip_testing.task_table import CrashingStore, RecordingDispatcher, WorkerKilled
from support.heartbeat_timer import HeartbeatTimer
from support.task_deployment import LambdaContext, TaskDeployment, accepted

HOUR_MS = 3_600_000
VISIBILITY_S = 930
LEASE_S = 60
MARGIN_S = 5
MAX_DELAY_S = 900
MAX_WORKERS = 100


@dataclass(slots=True, eq=False)
class Message:
    """A message of the queue, which can be received from `visible_at` on (epoch seconds)."""

    id: str
    visible_at: float
    body: str


@dataclass(slots=True)
class Queue(RecordingDispatcher):
    """The messages of a queue. The receipt handle of a message is its id."""

    now: Callable[[], float] = lambda: 0.0
    messages: list[Message] = field(default_factory=list)
    is_refusing: bool = False

    def dispatch(self, worker: str, pk: str) -> None:
        self.pks[pk.partition("#")[2]] = pk
        self.send(self.now(), {"task": pk, "queue": worker})

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        self.send(min(math.ceil(at_ms / 1000), self.now() + MAX_DELAY_S), {"task": pk, "wake": at_ms})

    def send(self, due: float, body: Any) -> None:
        self.count += 1
        self.messages.append(Message(f"message-{self.count}", due, json.dumps(body)))

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None:
        assert queue == "worker:1"
        if self.is_refusing:
            raise StoreError("AccessDenied")
        [message] = [message for message in self.messages if message.id == receipt_handle]
        message.visible_at = self.now() + duration_s


class QueueDeployment(TaskDeployment):
    """A deployment with a queue that delivers due messages and redelivers those of failed workers."""

    queue: Queue
    workers = 0
    timer: HeartbeatTimer | None = None

    def __post_init__(self) -> None:
        TaskDeployment.__post_init__(self)
        self.queue = Queue(now=self.clock)
        self.table.dispatcher = self.queue

    def ports(self, store: TaskStore | None = None) -> Ports:
        ports = TaskDeployment.ports(self, store)
        port = replace(ports.tasks(), hide_message=self.queue.hide_message)
        return replace(ports, tasks=lambda: port, wait_ms=self.timer or ports.wait_ms)

    def task(self, task_id: str) -> Task:
        item = self.table.store.get(self.queue.pks[task_id], TASK)
        assert item is not None
        return Task.from_item(item)

    def deliver(self, *, crashes_at: int | None = None) -> None:
        """Deliver the next message at its time. Kill its worker at call `crashes_at` of the store."""
        message = min(self.queue.messages, key=lambda message: message.visible_at)
        self.clock.advance(max(0.0, message.visible_at - self.clock()))
        store = None if crashes_at is None else CrashingStore(self.store, crashes_at, is_done=False)
        with suppress(WorkerKilled):
            self.receive(message, store)

    def receive(self, message: Message, store: TaskStore | None = None) -> None:
        """Receive a message, which is also possible while it is hidden: SQS delivers at least once."""
        self.workers += 1
        message.visible_at = self.clock() + VISIBILITY_S
        record = {"messageId": message.id, "receiptHandle": message.id, "body": message.body}
        event = {"Records": [record]}
        answer = work(self.server._tool_methods, event, LambdaContext(), partial(self.ports, store))
        if not answer["batchItemFailures"] and message in self.queue.messages:
            self.queue.messages.remove(message)

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
    [message] = deployment.queue.messages
    deployment.queue.dispatch("worker:1", deployment.task(task_id).pk)  # by a poll, for example
    deployment.deliver(crashes_at=2)
    deployment.queue.messages.remove(message)  # the message of the lost worker is gone
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert deployment.workers == 4, "lost, too early, its wake-up, finished"


def test_messages_of_an_ended_task_are_deleted() -> None:
    deployment = deployment_of(lambda ctx: "done")
    task_id = deployment.start("works")
    for _ in range(4):
        deployment.queue.dispatch("worker:1", deployment.task(task_id).pk)
    deployment.deliver_all()
    assert (deployment.task(task_id).status, deployment.workers) == (Status.COMPLETED, 5)


# -- visibility -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", range(6))
def test_the_message_of_a_lost_worker_returns_soon_after_its_lease(call: int) -> None:
    deployment = deployment_of(lambda ctx: [ctx.step(name, int) for name in "abc"])
    task_id = deployment.start("works")
    deployment.deliver(crashes_at=call)
    killed_at = deployment.clock()
    deployment.deliver()
    assert deployment.clock() - killed_at == LEASE_S + MARGIN_S
    assert deployment.task(task_id).status is Status.COMPLETED


def test_the_message_of_a_running_worker_stays_hidden_and_its_lease_is_renewed() -> None:
    timer = HeartbeatTimer()

    def ten_minutes() -> None:
        [message] = deployment.queue.messages
        for _ in range(30):
            deployment.clock.advance(LEASE_S / 3)
            timer.fire()
            assert message.visible_at == deployment.clock() + LEASE_S + MARGIN_S
        leased_until.append(deployment.task(task_id).lease_until_ms)

    deployment = deployment_of(lambda ctx: ctx.step("long", ten_minutes))
    deployment.timer = timer
    leased_until: list[int | None] = []
    task_id = deployment.start("works")
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.COMPLETED
    assert leased_until == [round(deployment.clock() * 1000) + LEASE_S * 1000]


def test_a_message_that_is_delivered_twice_stays_in_the_queue_until_its_worker_has_ended() -> None:
    def second_delivery() -> None:
        [message] = deployment.queue.messages
        deployment.receive(message)
        left.extend(deployment.queue.messages)

    deployment = deployment_of(lambda ctx: ctx.step("work", second_delivery))
    left: list[Message] = []
    task_id = deployment.start("works")
    deployment.deliver()
    assert len(left) == 1
    assert deployment.task(task_id).status is Status.COMPLETED
    assert [event for event, _ in deployment.observer.events if event.endswith(("finished", "claimed"))] == [
        "task_not_claimed",
        "worker_finished",
    ]


def test_a_message_that_returns_before_the_lease_is_over_returns_again_right_after_it() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("work", int))
    task_id = deployment.start("works")
    deployment.deliver(crashes_at=2)
    killed_at = deployment.clock()
    [message] = deployment.queue.messages
    deployment.clock.advance(50)
    deployment.receive(message)
    assert deployment.task(task_id).status is Status.WORKING
    deployment.deliver()
    assert deployment.clock() - killed_at == LEASE_S + MARGIN_S
    assert deployment.task(task_id).status is Status.COMPLETED


def test_a_worker_that_may_not_hide_its_message_says_so_and_works() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("work", int))
    deployment.queue.is_refusing = True
    task_id = deployment.start("works")
    deployment.deliver(crashes_at=2)
    killed_at = deployment.clock()
    deployment.deliver()
    assert deployment.clock() - killed_at == VISIBILITY_S
    assert deployment.task(task_id).status is Status.COMPLETED
    assert [event for event, _ in deployment.observer.events].count("message_not_hidden") == 2


def test_a_message_of_the_previous_revision_names_no_queue_and_is_worked_on() -> None:
    deployment = deployment_of(lambda ctx: ctx.step("work", int))
    task_id = deployment.start("works")
    [message] = deployment.queue.messages
    message.body = json.dumps({"task": deployment.task(task_id).pk})
    deployment.deliver_all()
    assert deployment.task(task_id).status is Status.COMPLETED


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


# -- messages that an operator moves from the dead-letter queue -------------------------------------------


class Redriven(TaskDeployment):
    """A deployment whose worker is a function. `receive` is a worker's queue with a message."""

    def receive(self, body: Any, **members: Any) -> list[Any]:
        record = {"messageId": "m", "receiptHandle": "m", "body": json.dumps(body), **members}
        no_tools = Server("another")._tool_methods
        answer = work(no_tools, {"Records": [record]}, LambdaContext(), self.ports)
        return list(answer["batchItemFailures"])


def redriven(body: Callable[[Context], Any]) -> tuple[Redriven, str, str]:
    """Return a deployment whose first dispatch Lambda gave up, the task id, and the partition key."""
    deployment = Redriven(deployment_of(body).server)
    task_id = deployment.start("works")
    [(_, pk)] = deployment.table.dispatcher.sent
    deployment.table.dispatcher.sent.clear()
    deployment.clock.advance(HOUR_MS / 1000)
    return deployment, task_id, pk


OF_LAMBDA = {"messageAttributes": {"RequestID": {"stringValue": "request-1", "dataType": "String"}}}
HERE = {"eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:shop_other_tasks"}
MOVED = {
    "an event that Lambda gave up": ({}, {**HERE, **OF_LAMBDA}),
    "a message of another queue": ({"queue": "https://sqs.test/123456789012/shop_works_tasks"}, HERE),
}


@pytest.mark.parametrize("moved", MOVED)
def test_a_moved_message_dispatches_the_worker_of_its_task_from_any_queue(moved: str) -> None:
    members, record = MOVED[moved]
    deployment, task_id, pk = redriven(lambda ctx: "done")
    assert deployment.receive({"task": pk, **members}, **record) == []
    assert deployment.table.dispatcher.sent == deque([("worker:1", pk)])
    deployment.run_workers()
    assert deployment.status(task_id) == "completed"


def test_a_moved_wake_up_wakes_its_task_from_any_queue() -> None:
    deployment, task_id, pk = redriven(lambda ctx: ctx.sleep("night", HOUR_MS))
    deployment.table.dispatcher.dispatch("worker:1", pk)
    deployment.run_workers()
    assert deployment.table.task(task_id).work_state is WorkState.SLEEPING
    wake_at_ms = deployment.table.task(task_id).wake_at_ms
    deployment.clock.advance(2 * HOUR_MS / 1000)
    queue = {"queue": "https://sqs.test/123456789012/shop_works_tasks"}
    assert deployment.receive({"task": pk, "wake": wake_at_ms, **queue}, **HERE) == []
    assert deployment.table.dispatcher.sent == deque([("worker:1", pk)])


def test_a_moved_message_changes_no_task_that_has_ended() -> None:
    deployment, task_id, pk = redriven(lambda ctx: "done")
    deployment.cancel(task_id)
    deployment.table.dispatcher.sent.clear()
    assert deployment.receive({"task": pk}, **OF_LAMBDA) == []
    assert deployment.receive({"task": pk.replace(task_id, "A" * 32)}, **OF_LAMBDA) == []
    assert not deployment.table.dispatcher.sent
    assert deployment.status(task_id) == "cancelled"


def test_a_moved_message_expires_an_overdue_task() -> None:
    deployment, task_id, pk = redriven(lambda ctx: "done")
    deployment.clock.advance(23.5 * HOUR_MS / 1000)
    assert deployment.receive({"task": pk}, **OF_LAMBDA) == []
    assert not deployment.table.dispatcher.sent
    assert deployment.table.task(task_id).is_terminal
