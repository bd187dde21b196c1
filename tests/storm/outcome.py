"""What became of a task that lost a worker: the laws, and how long tasks waited for the next worker."""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_testing.task_table import MemoryStore
from storm.deployment import Delivery
from storm.function import STEPS
from storm.plan import ENDS, Case
from storm.world import End, Event, Loss, World

AT_ONCE = 3
GOAL_S = 90.0
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


def run_all(cases: list[Case]) -> list[Outcome]:
    """Run each case in a world of its own."""
    with ThreadPoolExecutor(AT_ONCE) as several:
        return list(several.map(run, cases))


def run(case: Case, store: TaskStore | None = None) -> Outcome:
    """Run one case, with a table in memory by default."""
    return play(World(case.delivery, case.polls, case.loss, store=store or MemoryStore()), case)


def play(world: World, case: Case | None = None) -> Outcome:
    with world:
        task = world.run()
        case = case or Case(world.delivery, world.polls, "", world.loss or NO_LOSS)
        return Outcome(case, task, world.journal, world.events)


def assert_laws(outcome: Outcome) -> None:
    """The task completes once, journaled steps do not run again, and its result is that of its journal."""
    assert outcome.task.status is Status.COMPLETED, outcome
    assert [event.name for event in outcome.of_kind("ended")] == ["completed"], outcome
    assert len(outcome.runs_of("once")) <= 1, outcome
    returned = outcome.task.result["structuredContent"]
    is_interrupted = "once~begun" in outcome.journal and "once" not in outcome.journal
    assert (returned["once"] == "interrupted") == is_interrupted, outcome
    for step in STEPS:
        _assert_not_repeated(outcome, step)
        if step in outcome.journal:
            assert returned[step] == outcome.journal[step], outcome
            assert returned[step] in outcome.runs_of(step), outcome
        else:
            assert (step, returned[step]) == ("once", "interrupted"), outcome


def _assert_not_repeated(outcome: Outcome, step: str) -> None:
    entries = {f"put_new J#{step}", f"put_new_and_update J#{step}"}
    journaled = False
    for event in outcome.events:
        journaled = journaled or (event.kind == "written" and event.name in entries)
        assert not journaled or (event.kind, event.name) != ("begin_step", step), outcome


def slowest_claims(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], list[float]]:
    """Return the longest time to the next claim, in whole seconds, by delivery and polls, for each end.

    Leaves out workers that were lost before the message that started them was hidden for a lease.
    """
    measured = [
        (outcome.case, seconds)
        for outcome in outcomes
        if (seconds := outcome.seconds_to_next_claim) is not None and not outcome.case.precedes_lease
    ]
    return {
        (str(delivery), "yes" if polls else "no"): [
            max(
                math.floor(s + 0.5)
                for c, s in measured
                if (c.delivery, c.polls, c.loss.end) == (delivery, polls, end)
            )
            for end in ENDS
        ]
        for delivery in Delivery
        for polls in (True, False)
    }


def as_table(outcomes: Iterable[Outcome]) -> str:
    rows = ["| Delivery | Polls | SIGKILL, s | Out of memory, s | Timeout, s |", "|---|---|--:|--:|--:|"]
    for (delivery, polls), figures in slowest_claims(outcomes).items():
        rows.append(f"| `{delivery}` | {polls} | {' | '.join(f'{figure:.0f}' for figure in figures)} |")
    return "\n".join(rows)
