"""What holds for every tool: programs, answers and interruptions made up by Hypothesis."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Context, Elicit
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.engine.outcome import Checkpointed, Done, NeedsInput
from support.passes import Passes, accept

VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
OPERATIONS = st.tuples(st.sampled_from(["step", "ask", "ask two", "now", "random"]), VALUES)
PROGRAMS = st.lists(OPERATIONS, max_size=8)

Program = list[tuple[str, Any]]


def tool(program: Program, ran: Counter[str]) -> Callable[[Context], list[Any]]:
    """A tool that does the operations and returns everything it saw; `ran` counts its effects."""

    def effect(key: str, value: Any) -> Any:
        ran[key] += 1
        return value

    def do(ctx: Context, key: str, kind: str, value: Any) -> Any:
        match kind:
            case "step":
                return ctx.step(key, effect, key, value)
            case "ask":
                return ctx.elicit(key, f"{key}?", int)
            case "ask two":
                return list(ctx.ask(Elicit(f"{key}a", "a?", int), Elicit(f"{key}b", "b?", int)))
            case "now":
                return ctx.now(key).isoformat()
            case _:
                return ctx.random(key)

    def body(ctx: Context) -> list[Any]:
        return [do(ctx, f"k{index}", *operation) for index, operation in enumerate(program)]

    return body


def answers(asked: Any) -> dict[str, Any]:
    """Answer each question by its key."""
    return {key: accept(sum(key.encode())) for key in asked}


def play(call: Passes, *, answered: int = 100, remaining_ms: float = 30_000) -> tuple[Any, list[Journal]]:
    """Play to the end, answering at most `answered` questions a round; returns the end and every journal."""
    journals = []
    inputs: dict[str, Any] = {}
    call.remaining_ms = remaining_ms
    for _ in range(200):
        outcome = call(**inputs)
        if isinstance(outcome, Done):
            return outcome.value, journals
        assert isinstance(outcome, NeedsInput | Checkpointed), outcome
        journals.append(outcome.journal)
        asked = list(outcome.requests)[:answered] if isinstance(outcome, NeedsInput) else []
        inputs = answers(asked)
    raise AssertionError("it never ended")


@given(PROGRAMS)
def test_no_step_runs_twice_in_a_call(program: Program) -> None:
    ran: Counter[str] = Counter()
    play(Passes(tool(program, ran)))
    assert set(ran.values()) <= {1}
    assert len(ran) == sum(kind == "step" for kind, _ in program)


@given(PROGRAMS, st.integers(1, 2), st.sampled_from([0, 30_000]))
def test_a_call_that_is_interrupted_anywhere_has_the_same_result(
    program: Program, answered: int, remaining_ms: float
) -> None:
    ran: Counter[str] = Counter()
    straight, _ = play(Passes(tool(program, Counter())))
    interrupted, _ = play(Passes(tool(program, ran)), answered=answered, remaining_ms=remaining_ms)
    assert interrupted == straight
    assert set(ran.values()) <= {1}


@given(PROGRAMS, st.data())
def test_a_journal_cut_anywhere_and_resumed_has_the_same_result(
    program: Program, data: st.DataObject
) -> None:
    fixed = [operation for operation in program if operation[0] != "random"]  # a new value after the cut
    ran: Counter[str] = Counter()
    end, journals = play(Passes(tool(fixed, ran)))
    if not journals:
        return
    journal = data.draw(st.sampled_from(journals))
    length = data.draw(st.integers(0, len(journal.entries)))
    ran.clear()
    cut = replace(journal, entries=journal.entries[:length])
    again, _ = play(Passes(tool(fixed, ran), journal=cut))
    assert again == end
    kept = {entry.key for entry in cut.entries}
    assert not kept & ran.keys()


@given(PROGRAMS)
def test_a_finished_journal_runs_no_step_and_asks_nothing(program: Program) -> None:
    ran: Counter[str] = Counter()
    body = tool([*program, ("ask", None)], ran)
    call = Passes(body)
    end, _ = play(call)
    assert call.run is not None
    finished = call.run.to_journal()
    ran.clear()
    assert Passes(body, journal=finished)() == Done(end)
    assert not ran


@given(PROGRAMS)
def test_a_pass_without_answers_changes_nothing(program: Program) -> None:
    call = Passes(tool([*program, ("ask", None)], Counter()))
    first = call()
    assert isinstance(first, NeedsInput)
    second = call()
    assert second == first


FINGERPRINTS = st.builds(Fingerprint, st.text(), st.text())
KEYS = st.text(min_size=1)
ENTRIES = st.builds(Entry, KEYS, st.just(Kind.ANSWER), VALUES, FINGERPRINTS) | st.builds(
    Entry, KEYS, st.just(Kind.STEP), VALUES
)


@given(
    st.builds(
        Journal,
        flow_id=st.text(st.characters(codec="ascii"), min_size=1),
        entries=st.lists(ENTRIES, max_size=5, unique_by=lambda entry: entry.key).map(tuple),
        outstanding=st.dictionaries(st.text(), FINGERPRINTS, max_size=3),
        unused_responses=st.dictionaries(st.text(), VALUES, max_size=3),
    )
)
def test_a_journal_survives_its_travel(journal: Journal) -> None:
    assert Journal.from_json(json.loads(json.dumps(journal.to_json()))) == journal
