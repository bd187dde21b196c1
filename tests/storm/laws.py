"""The laws of every task, also of one that loses workers."""

from __future__ import annotations

from mcp_roundtrip.tasks.model import Status
from storm.function import STEPS
from storm.outcome import Outcome


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
