"""Leases of workers: lost ones are replaced, slow ones keep their tasks, stopped ones write nothing more."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip import AsyncContext, Context, Server, StepInterrupted
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.tasks.changes import Change, Item
from mcp_roundtrip.tasks.lease import Delivery, Lease
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.heartbeat_timer import HeartbeatTimer
from support.task_deployment import LambdaContext, TaskDeployment

LEASE_S = 60
BEAT_S = LEASE_S / 3
RETRY_S = 60
"""Lambda's pause before it repeats a failed asynchronous invocation for the first time."""

RAN: list[str] = []
MEANWHILE: list[Callable[[], object]] = []
"""A function that is called while a step runs."""

server = Server("leases")


@pytest.fixture(autouse=True)
def reset() -> None:
    RAN.clear()
    MEANWHILE.clear()


def record_run(name: str) -> str:
    RAN.append(name)
    if MEANWHILE:
        with ThreadPoolExecutor(1) as thread:  # another worker must not find the step of this one
            thread.submit(MEANWHILE.pop()).result()
    return name


@server.tool(task="required")
def two_steps(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=24 * 3_600_000)
    ctx.step("first", record_run, "first")
    return ctx.step("second", record_run, "second")


@server.tool(task="required")
async def two_async_steps(ctx: AsyncContext) -> str:
    await ctx.run_as_task(ttl_ms=24 * 3_600_000)
    await ctx.step("first", record_run, "first")
    return await ctx.step("second", record_run, "second")


@server.tool(task="required")
async def two_async_branches(ctx: AsyncContext) -> str:
    await ctx.run_as_task(ttl_ms=24 * 3_600_000)

    async def runs(branch: AsyncContext) -> str:
        await branch.step("first", record_run, "first")
        return await branch.step("second", record_run, "second")

    async def asks(branch: AsyncContext) -> str:
        return await branch.elicit("name", "Who?", str)

    return str(await ctx.gather({"asks": asks, "runs": runs}))


@server.tool(task="required")
def careful_step(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=24 * 3_600_000)
    try:
        return ctx.step("first", record_run, "first", at_most_once=True)
    except StepInterrupted:
        return "interrupted"


@server.tool(task="required")
def catches_everything(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=24 * 3_600_000)
    for name in ("first", "second", "third"):
        try:
            ctx.step(name, record_run, name)
        except Exception:
            RAN.append(f"{name} was lost")
    return "done"


class LeaseDeployment(TaskDeployment):
    """A deployment whose heartbeats are fired by the test."""

    timer: HeartbeatTimer

    def __post_init__(self) -> None:
        TaskDeployment.__post_init__(self)
        self.timer = HeartbeatTimer()

    def ports(self, store: TaskStore | None = None) -> Ports:
        return replace(TaskDeployment.ports(self, store), wait_ms=self.timer)

    def invoke(self, pk: str, context: LambdaContext | None = None, store: TaskStore | None = None) -> None:
        """Invoke a worker, as for a dispatch, or as Lambda's retry with the context of the first attempt."""
        work(self.server._tool_methods, {"task": pk}, context or LambdaContext(), partial(self.ports, store))

    def begin(self, tool: str) -> tuple[str, str]:
        """Start a task; return its id and its partition key."""
        task_id = self.start(tool)
        return task_id, self.table.dispatcher.sent.popleft()[1]

    def poll_and_run(self, task_id: str) -> None:
        """Poll, and run the worker that the poll dispatched."""
        self.get(task_id)
        assert len(self.table.dispatcher.sent) == 1
        self.run_workers()

    def task(self, task_id: str) -> Task:
        task = self.table.task(task_id)
        assert task is not None
        return task

    def rows(self, pk: str) -> list[Item]:
        return list(self.store.query(pk))

    def recorded(self) -> list[str]:
        return [event for event, _ in self.observer.events if "lease" in event or "claimed" in event]


@pytest.fixture
def deployment() -> LeaseDeployment:
    return LeaseDeployment(server)


# a worker that is lost


@pytest.mark.parametrize("call", range(6))
def test_a_killed_workers_retry_continues_without_a_poll(deployment: LeaseDeployment, call: int) -> None:
    task_id, pk = deployment.begin("two_steps")
    first = LambdaContext()
    with pytest.raises(WorkerKilled):
        deployment.invoke(pk, first, CrashingStore(deployment.store, call, is_done=True))
    killed_at = deployment.clock()
    deployment.clock.advance(RETRY_S)
    deployment.invoke(pk, first)
    assert deployment.status(task_id) == "completed"
    assert deployment.clock() - killed_at < 90


def test_a_killed_worker_is_replaced_by_the_first_poll_after_its_lease(deployment: LeaseDeployment) -> None:
    task_id, pk = deployment.begin("two_steps")
    with pytest.raises(WorkerKilled):
        deployment.invoke(pk, None, CrashingStore(deployment.store, 3, is_done=True))
    deployment.clock.advance(LEASE_S)
    deployment.get(task_id)
    assert not deployment.table.dispatcher.sent, "its lease may still be renewed"
    deployment.clock.advance(1)
    deployment.poll_and_run(task_id)
    assert deployment.status(task_id) == "completed"


def test_of_a_retry_and_a_poll_one_claims_the_task_and_the_attempt_counts_once(
    deployment: LeaseDeployment,
) -> None:
    task_id, pk = deployment.begin("two_steps")
    first = LambdaContext()
    with pytest.raises(WorkerKilled):
        deployment.invoke(pk, first, CrashingStore(deployment.store, 2, is_done=True))
    deployment.clock.advance(LEASE_S + 1)
    attempts = []

    def retry() -> None:
        deployment.invoke(pk, first)
        attempts.append(deployment.task(task_id).attempts)

    MEANWHILE.append(retry)
    deployment.poll_and_run(task_id)
    assert (deployment.status(task_id), attempts) == ("completed", [2])
    assert RAN == ["first", "second"]


# a worker that is alive


@pytest.mark.parametrize("tool", ["two_steps", "two_async_steps"])
def test_a_step_that_outlasts_the_lease_by_far_keeps_the_task(deployment: LeaseDeployment, tool: str) -> None:
    task_id, pk = deployment.begin(tool)

    def ten_minutes() -> None:
        for _ in range(30):
            deployment.clock.advance(BEAT_S)
            deployment.timer.fire()
            assert deployment.status(task_id) == "working"

    MEANWHILE.append(ten_minutes)
    deployment.invoke(pk)
    assert not deployment.table.dispatcher.sent, "no poll dispatched another worker"
    assert RAN == ["first", "second"]
    assert deployment.status(task_id) == "completed"


def test_two_deliveries_of_one_invocation_run_the_task_once(deployment: LeaseDeployment) -> None:
    task_id, pk = deployment.begin("two_steps")
    delivered_twice = LambdaContext()

    def second_delivery() -> None:
        pauses: list[float] = []

        def pause(duration_ms: float) -> None:
            pauses.append(duration_ms)
            for _ in range(3):
                deployment.clock.advance(BEAT_S)
                deployment.timer.fire()  # the heartbeats of the first delivery

        ports = replace(deployment.ports(), pause_ms=pause)
        work(server._tool_methods, {"task": pk}, delivered_twice, lambda: ports)
        assert pauses == [LEASE_S * 1_000 + 1]

    MEANWHILE.append(second_delivery)
    deployment.invoke(pk, delivered_twice)
    assert RAN == ["first", "second"]
    assert deployment.status(task_id) == "completed"
    assert deployment.recorded() == ["task_not_claimed"]


def test_a_retry_that_comes_early_waits_for_the_end_of_the_lost_workers_lease(
    deployment: LeaseDeployment,
) -> None:
    task_id, pk = deployment.begin("two_steps")
    first = LambdaContext()
    with pytest.raises(WorkerKilled):
        deployment.invoke(pk, first, CrashingStore(deployment.store, 3, is_done=True))
    killed_at = deployment.clock()
    deployment.clock.advance(5)
    deployment.invoke(pk, first)
    assert deployment.status(task_id) == "completed"
    assert LEASE_S < deployment.clock() - killed_at < LEASE_S + 1


@pytest.mark.parametrize("left_ms", range(6))
def test_a_retry_at_the_end_of_the_lease_does_not_wait_for_a_time_that_is_over(
    deployment: LeaseDeployment, left_ms: int
) -> None:
    task_id, pk = deployment.begin("two_steps")
    retried = LambdaContext()
    with pytest.raises(WorkerKilled):
        deployment.invoke(pk, retried, CrashingStore(deployment.store, 3, is_done=True))
    until_ms = deployment.task(task_id).lease_until_ms
    assert until_ms is not None
    deployment.clock.advance((until_ms - left_ms) / 1_000 - deployment.clock())

    def slow_clock() -> float:
        deployment.clock.advance(0.002)
        return deployment.clock()

    def pause(duration_ms: float) -> None:
        assert duration_ms >= 0
        deployment.clock.advance(duration_ms / 1_000)

    ports = replace(deployment.ports(), clock=slow_clock, pause_ms=pause)
    work(server._tool_methods, {"task": pk}, retried, lambda: ports)
    deployment.run_workers()  # if the lease ended between the claim and the read, another one was dispatched
    assert deployment.status(task_id) == "completed"


def test_a_dispatch_by_a_poll_does_not_wait_for_another_worker(deployment: LeaseDeployment) -> None:
    task_id, pk = deployment.begin("two_steps")
    began = deployment.clock()
    MEANWHILE.append(lambda: deployment.invoke(pk))
    deployment.invoke(pk)
    assert (deployment.status(task_id), deployment.clock()) == ("completed", began)
    assert RAN == ["first", "second"]


# a worker that was stopped, and continues after its lease was taken


@pytest.mark.parametrize("tool", ["two_steps", "catches_everything"])
@pytest.mark.parametrize(
    "beats_first", [False, True], ids=["the pass wakes first", "the heartbeat wakes first"]
)
def test_a_worker_that_was_stopped_writes_nothing_and_starts_no_step(
    deployment: LeaseDeployment, tool: str, beats_first: bool
) -> None:
    task_id, pk = deployment.begin(tool)
    timer, left = deployment.timer, list[Item]()

    def stopped() -> None:
        deployment.clock.advance(LEASE_S + 1)
        deployment.timer = HeartbeatTimer()  # of the second worker
        deployment.poll_and_run(task_id)
        assert deployment.status(task_id) == "completed"
        left.extend(deployment.rows(pk))
        RAN.append("continues")
        assert not beats_first or not timer.fire()

    MEANWHILE.append(stopped)
    deployment.invoke(pk)
    assert deployment.rows(pk) == left
    assert not {"first", "second", "third"} & set(RAN[RAN.index("continues") :])
    assert deployment.recorded() == ["lease_lost"]
    assert not deployment.observer.failures


@pytest.mark.parametrize("tool", ["two_async_steps", "two_async_branches"])
def test_an_async_worker_that_was_stopped_writes_nothing_and_starts_no_step(
    deployment: LeaseDeployment, tool: str
) -> None:
    _, pk = deployment.begin(tool)
    left = list[Item]()

    def stopped() -> None:
        deployment.clock.advance(LEASE_S + 1)
        given = Delivery("", LEASE_S * 1_000, LEASE_S * 1_000)
        now_ms = int(deployment.clock() * 1000)
        assert Lease(deployment.store, pk, "another", given, lambda: now_ms).claim() is not None
        left.extend(deployment.rows(pk))

    MEANWHILE.append(stopped)
    deployment.invoke(pk)
    assert deployment.rows(pk) == left
    assert RAN == ["first"]
    assert deployment.recorded() == ["lease_lost"]
    assert not deployment.observer.failures


class StoppingStore(CrashingStore):
    """A store whose worker is stopped at one call, before the request or after it, while `meanwhile` runs."""

    def __init__(
        self, store: TaskStore, call: int, meanwhile: Callable[[], object], *, is_done: bool
    ) -> None:
        CrashingStore.__init__(self, store, call, is_done)
        self.meanwhile = meanwhile

    def _call(self, name: str, operation: Callable[[], Any]) -> Any:
        number, self.calls = self.calls, self.calls + 1
        if number != self.killed_call:
            return operation()
        result = operation() if self.is_done else None
        with ThreadPoolExecutor(1) as thread:
            thread.submit(self.meanwhile).result()
        RAN.append("continues")
        return result if self.is_done else operation()


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(1, 7))  # claim, query, get, put, get, put, complete
@pytest.mark.parametrize("tool", ["two_steps", "careful_step"])
def test_a_worker_that_was_stopped_in_a_request_writes_nothing_and_starts_no_step(
    deployment: LeaseDeployment, tool: str, call: int, is_done: bool
) -> None:
    task_id, pk = deployment.begin(tool)
    left = list[Item]()

    def stopped() -> None:
        deployment.clock.advance(LEASE_S + 1)
        deployment.timer = HeartbeatTimer()
        deployment.get(task_id)
        deployment.run_workers()
        assert deployment.status(task_id) == "completed"
        left.extend(deployment.rows(pk))

    deployment.invoke(pk, None, StoppingStore(deployment.store, call, stopped, is_done=is_done))
    if left:  # the tool makes so many calls
        assert deployment.rows(pk) == left
        assert not {"first", "second"} & set(RAN[RAN.index("continues") :])
        assert RAN.count("first") <= (1 if tool == "careful_step" else 2)


def test_a_nonrepeatable_step_of_a_stopped_worker_is_not_run_again(deployment: LeaseDeployment) -> None:
    task_id, pk = deployment.begin("careful_step")

    def stopped() -> None:
        deployment.clock.advance(LEASE_S + 1)
        deployment.timer = HeartbeatTimer()
        deployment.poll_and_run(task_id)

    MEANWHILE.append(stopped)
    deployment.invoke(pk)
    assert RAN == ["first"]
    result = deployment.get(task_id)["result"]["result"]
    assert result["content"][0]["text"] == "interrupted"


def test_a_stopped_worker_whose_task_nobody_took_continues(deployment: LeaseDeployment) -> None:
    task_id, pk = deployment.begin("two_steps")
    MEANWHILE.append(lambda: deployment.clock.advance(10 * LEASE_S))
    deployment.invoke(pk)
    assert deployment.status(task_id) == "completed"
    assert RAN == ["first", "second"]
    assert "lease_lost" not in deployment.recorded()


# cancellation


@pytest.mark.parametrize("tool", ["two_steps", "two_async_steps"])
def test_a_cancelled_worker_keeps_its_lease_until_its_step_ends_and_starts_no_other(
    deployment: LeaseDeployment, tool: str
) -> None:
    task_id, pk = deployment.begin(tool)
    leases = []

    def cancelled() -> None:
        deployment.cancel(task_id)
        for _ in range(6):
            deployment.clock.advance(BEAT_S)
            deployment.timer.fire()
        leases.append(deployment.task(task_id).lease_until_ms)

    MEANWHILE.append(cancelled)
    deployment.invoke(pk)
    assert RAN == ["first"]
    assert leases == [int(deployment.clock() * 1000) + LEASE_S * 1_000]
    task = deployment.task(task_id)
    assert (task.status.value, task.lease_until_ms) == ("cancelled", None)
    assert "lease_lost" not in deployment.recorded()


# a table that does not answer


class ThrottledRenewals(MemoryStore):
    """A store that refuses the next `refusals` renewals."""

    refusals = 0

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        if change.set.keys() == {"lu"} and self.refusals:
            self.refusals -= 1
            raise StoreError("ThrottlingException")
        return super().update(pk, sk, change)


def test_a_renewal_that_fails_is_logged_and_the_task_completes() -> None:
    store = ThrottledRenewals()
    deployment = LeaseDeployment(server, store=store)
    task_id, pk = deployment.begin("two_steps")

    def throttled() -> None:
        store.refusals = 2
        for _ in range(3):
            deployment.clock.advance(5)
            assert deployment.timer.fire()

    MEANWHILE.append(throttled)
    deployment.invoke(pk)
    assert [event for event, _ in deployment.observer.failures] == 2 * ["lease_renewal_failed"]
    assert deployment.status(task_id) == "completed"


def test_a_worker_that_cannot_prove_its_lease_fails_before_it_writes_and_its_retry_repeats_the_step() -> None:
    store = ThrottledRenewals()
    deployment = LeaseDeployment(server, store=store)
    task_id, pk = deployment.begin("two_steps")
    first = LambdaContext()

    def stopped() -> None:
        store.refusals = 1
        deployment.clock.advance(LEASE_S)

    MEANWHILE.append(stopped)
    with pytest.raises(StoreError):
        deployment.invoke(pk, first)
    deployment.invoke(pk, first)
    assert RAN == ["first", "first", "second"]
    assert deployment.status(task_id) == "completed"


# other revisions


def test_the_lease_of_a_revision_without_renewals_is_left_alone_until_it_ends(
    deployment: LeaseDeployment,
) -> None:
    task_id, pk = deployment.begin("two_steps")
    until_ms = int(deployment.clock() * 1000) + 905_000
    held = {"rn": "L", "lo": "previous revision", "lu": until_ms, "att": 1, "ver": 2}
    [item] = [item for item in deployment.rows(pk) if item["sk"] == "M"]
    store: Any = deployment.store
    store._items[pk, "M"] = {**item, **held}
    began = deployment.clock()
    deployment.invoke(pk)
    assert (RAN, deployment.clock()) == ([], began)
    deployment.clock.advance(906)
    deployment.poll_and_run(task_id)
    assert deployment.status(task_id) == "completed"
