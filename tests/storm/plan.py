"""The cases of the storm: where, how and in which deployment a worker is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from storm.deployment import Delivery
from storm.function import STEPS
from storm.world import End, Loss, World

ENDS = (End.KILL, End.MEMORY, End.TIMEOUT)
SIDES = ("before", "after")
IN_STEP_S = (1.0, 19.0, 21.0, 39.0, 41.0, 49.0)
"""Times within a long step at which a worker is killed: before the first renewal, and between renewals."""

BEFORE_THE_LEASE = "hide_message"
"""The first call for a message, which sets the end of its visibility timeout."""


@dataclass(frozen=True)
class Case:
    """A task that loses one worker. `call` is the name of the call at which it is lost."""

    delivery: Delivery
    polls: bool
    call: str
    loss: Loss

    @property
    def precedes_lease(self) -> bool:
        """Whether the worker is lost before its message is hidden for the length of a lease."""
        return self.call == BEFORE_THE_LEASE and self.loss.side == "before"


def calls_of(delivery: Delivery) -> dict[bool, list[str]]:
    """Return the calls of the workers of a task that loses none; those of heartbeats have the key True."""
    with World(delivery) as world:
        world.run()
    kinds = {False: "call", True: "heartbeat"}
    return {key: [event.name for event in world.events if event.kind == kind] for key, kind in kinds.items()}


def all_cases() -> list[Case]:
    """Return each call, each way of losing a worker, each deployment."""
    places, in_steps = _places()
    cases = [case(end, polls) for case in places for end, polls in product(ENDS, (True, False))]
    return [*dict.fromkeys(cases), *in_steps]


def sample(size: int) -> list[Case]:
    """Return `size` cases: each call, side and deployment, with the ways of losing a worker in turn."""
    # Consecutive pairs contain each way and each habit of polling equally often.
    ways = [(End.KILL, True), (End.MEMORY, False), (End.TIMEOUT, True)]
    ways += [(End.KILL, False), (End.MEMORY, True), (End.TIMEOUT, False)]
    places, in_steps = _places()
    left = size - len(places)
    chosen = [case(*ways[number % 6]) for number, case in enumerate(places)]
    assert left >= 0
    others = [case(*ways[(number + 3) % 6]) for number, case in enumerate(places)] + in_steps
    return chosen + [others[len(others) * number // left] for number in range(left)]


MakeCase = Callable[[End, bool], Case]


def _places() -> tuple[list[MakeCase], list[Case]]:
    """Return the cases at each call, and those within steps."""
    places: list[MakeCase] = []
    in_steps: list[Case] = []
    for delivery in Delivery:
        calls = calls_of(delivery)
        for in_heartbeat, names in calls.items():
            for (place, call), side in product(enumerate(names), SIDES):
                places.append(partial(_case, delivery, call, place, side, in_heartbeat))
        in_steps += _cases_in_steps(delivery, calls[False])
    return places, in_steps


def _case(
    delivery: Delivery, call: str, place: int, side: str, in_heartbeat: bool, end: End, polls: bool
) -> Case:
    if in_heartbeat and end is End.TIMEOUT:  # a heartbeat that hangs does not end the process
        end = End.KILL
    name = f"heartbeat {call}" if in_heartbeat else call
    return Case(delivery, polls, name, Loss(end, place, side, in_heartbeat=in_heartbeat))


def _cases_in_steps(delivery: Delivery, calls: Sequence[str]) -> Iterator[Case]:
    for step, duration_s in STEPS.items():
        place = calls.index(f"begin_step {step}")
        for after_s, polls in product(IN_STEP_S, (True, False)):
            if after_s < duration_s:
                loss = Loss(End.KILL, place, "after", after_s)
                yield Case(delivery, polls, f"{step} at {after_s:g} s", loss)
