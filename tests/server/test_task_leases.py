"""Leases of workers: lost ones are replaced, slow ones keep their tasks, stopped ones write nothing more."""

import sys

import pytest

from mcp_roundtrip import AsyncContext, Context, Server
from mcp_roundtrip.engine.deadline import retries_end_at_ms
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.lease import MARGIN_MS, Delivery, Lease
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.client_requests import TASKS
from support.deployment import Deployment
from support.faulty_store import FaultyStore
from support.heartbeat_timer import HeartbeatTimer
from support.lambda_context import LambdaContext
from support.task_tools import meanwhile, ran, run_step, task_server

LEASE_S = 60

server = Server("leases")


@server.tool(task="required")
def two_steps(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=24 * 3_600_000)
    ctx.step("first", run_step, "first")
    return ctx.step("second", run_step, "second")


@server.tool(task="required")
async def two_async_steps(ctx: AsyncContext) -> str:
    await ctx.run_as_task(ttl_ms=24 * 3_600_000)
    await ctx.step("first", run_step, "first")
    return await ctx.step("second", run_step, "second")


@server.tool(task="required")
async def two_async_branches(ctx: AsyncContext) -> str:
    await ctx.run_as_task(ttl_ms=24 * 3_600_000)

    async def runs(branch: AsyncContext) -> str:
        await branch.step("first", run_step, "first")
        return await branch.step("second", run_step, "second")

    async def asks(branch: AsyncContext) -> str:
        return await branch.elicit("name", "Who?", str)

    return str(await ctx.gather({"asks": asks, "runs": runs}))


@server.tool(task="required")
def catches_everything(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=24 * 3_600_000)
    for name in ("first", "second", "third"):
        try:
            ctx.step(name, run_step, name)
        except Exception:
            ran.append(f"{name} was lost")
    return "done"


@server.tool(task="required")
def asks_on_a_page(ctx: Context) -> str:
    ctx.run_as_task(ttl_ms=24 * 3_600_000)
    run_step("first")
    return ctx.elicit("name", "Who?", str)


@server.tool(task="required")
def looks_for_a_context(ctx: Context) -> None:
    ctx.run_as_task(ttl_ms=24 * 3_600_000)
    ctx.step("look", lambda: ran.append(repr(sys.exception())))


class StartedTask:
    """A task that waits for its first worker. The test fires the heartbeats of its workers with `timer`."""

    def __init__(self, tool="two_steps", **facets):
        self.deployment = Deployment(server, **facets)
        self.clock, self.store = self.deployment.clock, self.deployment.store
        self.timer = HeartbeatTimer()
        self.id = self.deployment.start(tool)
        _, self.pk = self.deployment.sent.popleft()

    @property
    def status(self):
        return self.deployment.status(self.id)

    @property
    def stored(self):
        return self.deployment.task(self.id)

    def rows(self):
        """Return the items of the task, and of the call that it may leave in the table."""
        return dict(self.store._items)

    def recorded(self):
        return [event for event in self.deployment.events if "lease" in event or "claimed" in event]

    def invoke(self, context=None, **facets):
        """Invoke a worker, as for a dispatch, or as Lambda's retry with the context of the first attempt."""
        facets = {**facets, "replaced_ports": {"wait_ms": self.timer, **facets.get("replaced_ports", {})}}
        self.deployment.by(**facets).work({"task": self.pk}, context)

    def lose_worker(self, call):
        """Kill a worker after a call of the store, and return the context that its retry has."""
        context = LambdaContext(self.clock)
        with pytest.raises(WorkerKilled):
            self.invoke(context, store=CrashingStore(self.store, call, is_done=True))
        return context


@pytest.fixture
def task():
    return StartedTask()


@pytest.mark.parametrize("lease_s", [30, 120])
def test_the_length_of_a_lease_is_a_setting(lease_s):
    task = StartedTask(replaced_settings={"task_lease_s": lease_s})
    task.lose_worker(1)
    assert task.stored.lease_until_ms == int(task.clock() * 1000) + lease_s * 1000


def test_the_aws_calls_of_a_worker_are_repeated_until_its_invocation_ends():
    ends_ms = []
    look = task_server(lambda ctx: ctx.step("look", lambda: ends_ms.append(retries_end_at_ms.get())))
    deployment = Deployment(look)
    deployment.start("works")
    [(_, pk)] = deployment.sent
    context = LambdaContext(deployment.clock)
    deployment.work({"task": pk}, context)
    assert ends_ms == [deployment.clock.monotonic_ms() + context.get_remaining_time_in_millis()]


@pytest.mark.parametrize("left_ms", range(6))
def test_a_retry_at_the_end_of_the_lease_does_not_wait_for_a_time_that_is_over(task, left_ms):
    retried = task.lose_worker(3)
    until_ms = task.stored.lease_until_ms
    task.clock.advance((until_ms - left_ms) / 1_000 - task.clock())

    def slow_clock():
        task.clock.advance(0.002)
        return task.clock()

    def pause(duration_ms):
        assert duration_ms >= 0
        task.clock.advance(duration_ms / 1_000)

    task.invoke(retried, replaced_ports={"clock": slow_clock, "pause_ms": pause})
    task.deployment.run_workers()  # one, if the lease ended between the claim and the read
    assert task.status == "completed"


def test_a_retry_waits_no_longer_than_a_lease_whose_end_another_clock_wrote(task):
    retried, pauses = task.lose_worker(3), []
    task.clock.advance(-1_000)
    task.invoke(retried, replaced_ports={"pause_ms": pauses.append})
    assert pauses == [LEASE_S * 1_000 + MARGIN_MS]


@pytest.mark.parametrize(
    "tool", ["two_steps", "catches_everything", "two_async_steps", "two_async_branches", "asks_on_a_page"]
)
@pytest.mark.parametrize("beats", [False, True], ids=["the pass wakes first", "the heartbeat wakes first"])
def test_a_worker_that_was_stopped_writes_nothing_and_starts_no_step(tool, beats):
    task, left = StartedTask(tool, capabilities=TASKS), {}

    def stopped():
        task.clock.advance(LEASE_S + 1)
        given = Delivery("", LEASE_S * 1_000, LEASE_S * 1_000)
        now_ms = int(task.clock() * 1000)
        assert Lease(task.store, task.pk, "another", given, lambda: now_ms).claim() is not None
        left.update(task.rows())
        assert not beats or not task.timer.fire()

    meanwhile.append(stopped)
    task.invoke()
    assert task.rows() == left
    assert [each for each in ran if "lost" not in each] == ["first"]
    assert task.recorded() == ["lease_lost"]
    assert not task.deployment.failures


def test_a_retry_that_cannot_reach_the_table_after_it_waited_fails_and_is_repeated():
    task = StartedTask(store=FaultyStore(times=0))
    retried = task.lose_worker(3)

    def pause(duration_ms):
        task.clock.advance(duration_ms / 1_000)
        task.store.times = 1

    with pytest.raises(StoreError):
        task.invoke(retried, replaced_ports={"pause_ms": pause})
    task.invoke(retried)
    assert task.status == "completed"


def test_exceptions_of_a_tool_have_no_context_after_its_worker_waited_for_a_lease():
    task = StartedTask("looks_for_a_context")
    task.invoke(task.lose_worker(1))
    assert ran == ["None"]


def test_a_worker_that_fails_after_its_task_was_cancelled_releases_its_lease():
    task = StartedTask(store=FaultyStore(times=0))

    def cancel():
        task.deployment.cancel(task.id)
        task.store.times = 1

    meanwhile.append(cancel)
    with pytest.raises(StoreError):
        task.invoke()
    assert task.stored.is_terminal
    assert task.stored.lease_owner is None


def test_the_log_names_the_tool_of_a_worker_that_was_lost(task):
    retried = task.lose_worker(3)
    task.clock.advance(LEASE_S + 1)
    task.invoke(retried)
    assert ("task_retried", {"tool": "two_steps", "attempt": 2}) in task.deployment.observer.events
    assert task.deployment.observer.tags["task"] == task.id
