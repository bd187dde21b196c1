"""Two workers at once: a delivery that comes twice, late heartbeats, and processes that stop and continue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storm.deployment import Delivery
from storm.outcome import Outcome, assert_laws, play
from storm.plan import SIDES, calls_of
from storm.processes import WorkerProcess
from storm.world import End, Event, Loss, World

DELIVERIES = list(Delivery)


def played(world: World) -> Outcome:
    """Run the task of a world, and check the laws."""
    outcome = play(world)
    assert_laws(outcome)
    return outcome


def in_first_step(world: World, act: Callable[[WorkerProcess], None]) -> None:
    """Act once, when the first worker begins the step "first"."""
    seen: list[WorkerProcess] = []

    def on_step(step: str, process: WorkerProcess) -> None:
        if not seen:
            seen.append(process)
            act(process)

    world.on_step = on_step


def after(outcome: Outcome, kind: str) -> tuple[int, list[Event]]:
    """Return the process of the first event of this kind, and what this process did from then on."""
    [first] = outcome.of_kind(kind)
    place = outcome.events.index(first)
    return first.pid, [event for event in outcome.events[place + 1 :] if event.pid == first.pid]


def owners(outcome: Outcome) -> list[str]:
    return [event.name for event in outcome.of_kind("claimed")]


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("after_s", [10, 25, 45])
def test_a_process_that_stops_in_a_step_and_continues_writes_nothing_and_begins_no_step(delivery, after_s):
    world = World(delivery)
    in_first_step(world, lambda process: world.stop(process, after_s, duration_s=150))
    outcome = played(world)
    stopped, later = after(outcome, "continued")
    assert outcome.of_kind("claimed")[1].pid != stopped
    assert len(set(owners(outcome))) == len(owners(outcome)) >= 3
    assert [event for event in later if event.kind in ("written", "claimed", "begin_step")] == []
    assert len(outcome.runs_of("first")) == 2


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_process_that_stops_for_less_than_its_lease_keeps_its_task(delivery):
    world = World(delivery)
    in_first_step(world, lambda process: world.stop(process, 10, duration_s=45))
    outcome = played(world)
    assert len(outcome.runs_of("first")) == 1
    assert len(owners(outcome)) == 2  # one for each pass


@pytest.mark.parametrize("side", SIDES)
def test_a_process_that_stops_at_any_call_does_no_harm(side):
    """A request that is under way when the process stops arrives when it continues."""
    calls = calls_of(Delivery.INVOKE)[False]
    for place, call in enumerate(calls):
        outcome = played(World(loss=Loss(End.STOP, place, side)))
        _, later = after(outcome, "continued")
        taken = outcome.of_kind("claimed")[1].at_s < outcome.of_kind("continued")[0].at_s
        written = [event.name for event in later if event.kind == "written"]
        assert not taken or written in ([], [call]), outcome
        assert not taken or not any(event.kind == "begin_step" for event in later[1:]), outcome


@pytest.mark.parametrize("polls", [True, False])
def test_of_two_deliveries_of_an_invocation_at_once_one_claims_the_task(polls):
    outcome = played(World(Delivery.INVOKE, polls, deliveries=2))
    assert len({event.pid for event in outcome.events if event.kind == "call"}) >= 2
    assert len(owners(outcome)) == 2  # one for each pass
    assert all(len(outcome.runs_of(step)) == 1 for step in ("first", "once", "last"))


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("after_s", [0, 10, 30, 49])
def test_a_second_delivery_during_a_step_leaves_its_worker_alone(delivery, after_s):
    world = World(delivery, polls=False)
    in_first_step(
        world,
        lambda process: world.time.call_at(world.time.now_s() + after_s, world.deployment.deliver_again),
    )
    outcome = played(world)
    assert len({event.pid for event in outcome.events if event.kind == "call"}) == 2
    assert len(owners(outcome)) == 2
    assert all(len(outcome.runs_of(step)) == 1 for step in ("first", "once", "last"))


def test_a_second_delivery_takes_over_when_the_first_is_killed():
    world = World(Delivery.INVOKE, polls=False, deliveries=2, loss=Loss(End.KILL, 6, "after"))
    outcome = played(world)
    assert len(outcome.losses) == 1
    assert outcome.seconds_to_next_claim is not None
    assert outcome.seconds_to_next_claim <= 60.001


@pytest.mark.parametrize(("late_s", "first_s"), [(5, 170), (25, 170), (39, 170), (10_000, 50)])
def test_a_worker_whose_heartbeat_is_late_or_never_comes_keeps_its_task(late_s, first_s):
    steps = {"first": first_s, "once": 5, "last": 50}
    outcome = played(World(heartbeat_delay_s=late_s, steps=steps))
    assert len(owners(outcome)) == 2
    assert len(outcome.runs_of("first")) == 1


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_worker_whose_heartbeat_comes_after_its_lease_writes_nothing(delivery):
    steps = {"first": 100, "once": 5, "last": 5}
    outcome = played(World(delivery, heartbeat_delay_s=10_000, steps=steps))
    claims = outcome.of_kind("claimed")
    lost, taken = claims[0], claims[1]
    later = outcome.events[outcome.events.index(taken) :]
    until_next_claim = later[: next(i for i, e in enumerate(later) if e.kind == "claimed" and i)]
    assert taken.pid != lost.pid
    assert [e for e in until_next_claim if e.pid == lost.pid and e.kind in ("written", "begin_step")] == []
