"""What became of a task that lost a worker."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_testing.task_table import MemoryStore
from storm.losses import End, Loss
from storm.plan import Case
from storm.processes import Zygote
from storm.world import Event, World

AT_ONCE = 3
NO_LOSS = Loss(End.STOP, -1)


@dataclass(frozen=True)
class Outcome:
    """The end of a task, and the events until then."""

    case: Case
    task: Task
    journal: dict[str, str]
    events: list[Event]

    @property
    def losses(self) -> list[Event]:
        return self.of_kind("lost")

    @property
    def seconds_to_next_claim(self) -> float | None:
        """Lambda's time from the loss to the next claim; None if the task needed no worker then."""
        [lost] = self.losses
        if not lost.detail:
            return None
        later = self.events[self.events.index(lost) :]
        return next((event.at_s - lost.at_s for event in later if event.kind == "claimed"), float("inf"))

    def of_kind(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def runs_of(self, step: str) -> list[str]:
        """Return the values of each run of a step, also of those that were lost."""
        return [event.detail for event in self.of_kind("begin_step") if event.name == step]


def run_all(zygote: Zygote, cases: list[Case]) -> list[Outcome]:
    """Run each case in a world of its own."""
    with ThreadPoolExecutor(AT_ONCE) as several:
        return list(several.map(partial(run, zygote), cases))


def run(zygote: Zygote, case: Case, store: TaskStore | None = None) -> Outcome:
    """Run one case, with a table in memory by default."""
    return play(World(zygote, case.delivery, case.polls, case.loss, store=store or MemoryStore()), case)


def play(world: World, case: Case | None = None) -> Outcome:
    """Run the task of a world."""
    with world:
        task = world.run()
        case = case or Case(world.delivery, world.polls, "", world.loss or NO_LOSS)
        return Outcome(case, task, world.journal, world.events)
