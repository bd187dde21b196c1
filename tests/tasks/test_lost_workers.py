"""Tasks that lose workers: at every call that workers make, in steps, and several in a row."""

from collections.abc import Iterator
from itertools import product

import pytest

from mcp_roundtrip.tasks.lost_workers import MAX_REDISPATCH_MS, REDISPATCH_MS
from mcp_roundtrip.tasks.model import Status
from mcp_roundtrip.tasks.transitions import MAX_ATTEMPTS
from support.lost_workers import STEPS, TIMEOUT_S, Loss, Worker, World
from support.stored_tasks import StoredTasks

DELIVERIES = ("invoke", "queue")
SLOWEST_S = {"invoke": 60, "queue": 65}
"""The longest time until a worker is replaced, as in docs/explanation/how-tasks-run.md."""


def assert_laws(world: World) -> None:
    """The task completes once, journaled steps do not run again, and its result is that of its journal."""
    assert world.task.status is Status.COMPLETED, world
    assert world.ended == [Status.COMPLETED], world
    assert world.repeated == [], world
    assert world.runs.count("once") <= 1, world
    journal, result = world.journal, world.task.result["structuredContent"]
    is_interrupted = "once~begun" in journal and "once" not in journal
    assert result == {step: journal.get(step, "interrupted") for step in STEPS}, world
    assert (result["once"] == "interrupted") == is_interrupted, world


def seconds_to_next_claims(world: World) -> list[int]:
    """Return the time from each loss to the next claim, without losses that left no work."""
    return [
        round(min(at_s for at_s, _ in world.claims if at_s > lost_s) - lost_s)
        for lost_s, needs_worker in world.lost
        if needs_worker
    ]


def losses(delivery: str) -> Iterator[tuple[str, Loss]]:
    """Return each call of the workers of a task, and a loss before it and after it."""
    calls = World(delivery).play().calls
    for in_heartbeat, names in calls.items():
        for (number, name), is_done in product(enumerate(names), (False, True)):
            yield name, Loss(number, is_done, in_heartbeat)


@pytest.mark.parametrize("polls", [True, False])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_worker_that_is_killed_at_any_call_is_soon_replaced_and_no_journaled_step_is_repeated(
    delivery, polls
):
    for name, loss in losses(delivery):
        world = World(delivery, polls, loss).play()
        assert len(world.lost) == 1, loss
        assert_laws(world)
        if name == "hide_message" and not (loss.is_done or loss.in_heartbeat or polls):
            assert seconds_to_next_claims(world) == [930], "the visibility timeout of the queue"
        else:
            assert max(seconds_to_next_claims(world), default=0) <= SLOWEST_S[delivery], (loss, world)


def kill_in_steps(world: World, step: str, after_s: int, workers: int = 1) -> None:
    """Kill so many workers, each so long after it began the step. After `TIMEOUT_S`, its time is over."""

    def kill(worker: Worker, begun: str) -> None:
        if begun == step and len(world.lost) < workers:
            world.timers.call_at(world.timers.now_s() + after_s, worker.kill)
            worker.pass_time(after_s)

    world.on_step = kill


@pytest.mark.parametrize("polls", [True, False])
@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("after_s", [1, 19, 21, 39, 41, 49, TIMEOUT_S])
@pytest.mark.parametrize("step", STEPS)
def test_a_worker_that_is_killed_in_a_step_is_soon_replaced(step, after_s, delivery, polls):
    world = World(delivery, polls)
    kill_in_steps(world, step, after_s)
    assert_laws(world.play())
    [seconds] = seconds_to_next_claims(world)
    assert seconds <= SLOWEST_S[delivery]


@pytest.mark.parametrize("polls", [True, False])
@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize(
    ("workers", "slowest_s"), [(4, 90), (MAX_ATTEMPTS - 1, MAX_REDISPATCH_MS / 1000)], ids=["four", "nine"]
)
def test_workers_that_are_lost_one_after_the_other_are_replaced_and_the_last_one_completes_the_task(
    workers, slowest_s, delivery, polls
):
    """All are lost in the same step, late enough for a renewal. The pause grows with their number."""
    world = World(delivery, polls)
    kill_in_steps(world, "first", 45, workers)
    assert_laws(world.play())
    waits = seconds_to_next_claims(world)
    assert len(waits) == workers
    assert max(waits) <= slowest_s


def test_a_task_whose_workers_make_no_further_progress_is_abandoned():
    """The first worker makes progress; the second one notices that, and counts as the first attempt."""
    world = World()
    kill_in_steps(world, "last", 1, workers=100)
    world.play()
    assert world.task.status is Status.FAILED
    assert world.runs.count("last") == MAX_ATTEMPTS + 1


@pytest.mark.parametrize("stopped_s", [45, 200])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_worker_that_stops_at_any_call_does_no_harm(delivery, stopped_s):
    """A request that is under way when its process stops arrives when it continues."""
    for _, loss in losses(delivery):
        world = World(delivery, loss=loss, stopped_s=stopped_s).play()
        assert_laws(world)
        [place] = [number for number, (_, act) in enumerate(world.acts) if act == "continued"]
        stopped, _ = world.acts[place]
        others = [at_s for at_s, worker in world.claims if worker is not stopped]
        is_replaced = any(0 <= stopped.stopped_until_s - at_s <= stopped_s for at_s in others)
        later = [act for worker, act in world.acts[place + 1 :] if worker is stopped]
        assert not is_replaced or len(later) <= 1, (loss, later)


@pytest.mark.parametrize("polls", [True, False])
def test_of_two_deliveries_of_an_invocation_at_once_one_claims_the_task(polls):
    world = World(polls=polls, deliveries=2).play()
    assert_laws(world)
    assert len(world.claims) == 2, "one for each pass"
    assert sorted(world.runs) == sorted(STEPS)
    assert STEPS.keys() <= world.journal.keys()


def test_a_late_wake_up_replaces_the_worker_that_a_poll_has_dispatched_if_its_lease_is_over():
    table = StoredTasks()
    task = table.create()
    table.claim(task)
    table.clock.advance(REDISPATCH_MS / 1000 + 1)
    table.tasks.wake(task.pk, task.dispatched_at_ms)
    assert [*table.table.dispatcher.sent] == [("worker:1", task.pk)] * 2


def test_a_second_delivery_takes_over_when_the_first_is_killed():
    world = World(polls=False, deliveries=2)
    kill_in_steps(world, "first", 10)
    assert_laws(world.play())
    [seconds] = seconds_to_next_claims(world)
    assert seconds <= SLOWEST_S["invoke"]
