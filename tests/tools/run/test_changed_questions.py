"""Which questions of a recorded response were asked in another way before."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from mcp_roundtrip_tools.client.terminal_text import Styles
from mcp_roundtrip_tools.run.observation.changed_questions import (
    ChangedQuestion,
    changed_questions,
    note_changed_questions,
    open_changed_questions,
)
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import Event, HttpExchange, Note, RecordedInvocation
from mcp_roundtrip_tools.run.terminal.terminal import Terminal

TASK = "t" * 32
REFUSED = "\n\nThe previous answer was not accepted. size: hunter2 is taken"


def form(message: str, kind: str = "boolean") -> dict[str, Any]:
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": {"properties": {"value": {"type": kind}}}},
    }


def sampling(text: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 10}}


class Run:
    """A recorder whose clock advances by 1 ms with each event. `notes` are those of its terminal."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.notes: list[str] = []
        self.written: list[str] = []
        terminal = Terminal(self.written.append, Styles(False))
        self.recorder = RunRecorder(
            terminal,
            self._listen,
            lambda event: note_changed_questions(event, self.recorder),
            now_ms=lambda: self.now_ms,
        )
        self._ids = map(str, count())

    def _listen(self, event: Event) -> None:
        if isinstance(event, Note):
            self.notes.append(event.text)

    def invoke(self, caller: str | None, *changed: str, payload: bytes = b"{}") -> None:
        """Record an invocation that logs the keys of changed questions."""
        self.now_ms += 1
        trigger = "async" if caller is None else "http"
        record = RecordedInvocation(
            next(self._ids), "", "clock", "clock-1", False, trigger, caller, self.now_ms, payload
        )
        invocation = self.recorder.begin_invocation(record)
        for key in changed:
            line = {"level": "WARNING", "message": "question_changed", "timestamp": "", "service": "clock"}
            line |= {"tool": "clock", "key": key, "changed": "message"}
            self.recorder.add_line(invocation, json.dumps(line), function="clock", environment_id="clock-1")
        self.recorder.end_invocation(invocation, b"{}", error=None, init_ms=None)

    def exchange(self, params: Any, result: Any, *changed: str) -> HttpExchange:
        """Record a request and its response."""
        self.now_ms += 1
        exchange_id = next(self._ids)
        body = json.dumps({"method": "tools/call", "id": 1, "params": params}).encode()
        self.recorder.begin_exchange(HttpExchange(exchange_id, self.now_ms, "POST", "/mcp", (), body))
        self.invoke(exchange_id, *changed)
        response = json.dumps({"id": 1, "result": result}).encode()
        self.recorder.end_exchange(exchange_id, 200, (("content-type", "application/json"),), response)
        found = self.recorder.exchange(exchange_id)
        assert found is not None
        return found

    def round(self, number: int, requests: dict[str, Any], *changed: str) -> tuple[ChangedQuestion, ...]:
        """Record a round, which sends the state of the round before."""
        params = {"name": "clock", **({"requestState": f"state-{number - 1}."} if number > 1 else {})}
        result = {"inputRequests": requests, "requestState": f"state-{number}."}
        return changed_questions(self.exchange(params, result, *changed), self.recorder)

    def poll(self, **requests: Any) -> tuple[ChangedQuestion, ...]:
        """Record a poll of a task that asks."""
        result = {"taskId": TASK, "status": "input_required", "inputRequests": requests}
        return changed_questions(self.exchange({"taskId": TASK}, result), self.recorder)

    def work(self, *changed: str) -> None:
        """Record a worker of the task."""
        self.invoke(None, *changed, payload=json.dumps({"task": f"digest#{TASK}"}).encode())


@pytest.fixture
def run() -> Run:
    return Run()


def test_the_remedy_follows_when_a_question_changes_in_two_rounds_after_each_other(run: Run) -> None:
    assert run.round(1, {"c": form("10 EUR?")}) == ()
    assert run.round(2, {"c": form("11 EUR?")}, "c") == (ChangedQuestion("c", "10 EUR?", "11 EUR?", False),)
    assert run.round(3, {"c": form("11 EUR?")}) == ()
    assert run.round(4, {"c": form("12 EUR?")}, "c") == (ChangedQuestion("c", "11 EUR?", "12 EUR?", False),)
    assert run.round(5, {"c": form("13 EUR?")}, "c") == (ChangedQuestion("c", "12 EUR?", "13 EUR?", True),)
    assert ["ctx.now" in note for note in run.notes] == [False, False, True]
    assert all("does not count" in note for note in run.notes[:2])


def test_a_question_is_found_in_an_older_round_and_another_call_is_not(run: Run) -> None:
    run.exchange({"name": "clock"}, {"inputRequests": {"price": form("1 EUR?")}, "requestState": "other."})
    run.round(1, {"price": form("10 EUR?"), "name": form("Who?", "string")})
    run.exchange({"name": "clock"}, {"inputRequests": {"price": form("2 EUR?")}, "requestState": "newer."})
    run.round(2, {"name": form("Who?", "string")})
    assert run.round(3, {"price": form("11 EUR?")}, "price") == (
        ChangedQuestion("price", "10 EUR?", "11 EUR?", False),
    )


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        (form("Sure?" + REFUSED), form("Really?"), ("Sure?", "Really?")),
        (form("One\n\n  two"), form("One three"), ("One two", "One three")),
        (form("Size?", "integer"), form("Size?", "string"), ('"integer"', '"string"')),
        (sampling("It is 19:55"), sampling("It is 19:56"), ("19:55", "19:56")),
        (form("a" * 500 + "b" + "d" * 500), form("a" * 500 + "c"), ("…" + "a" * 40 + "b", "a" * 40 + "c")),
        ({"method": "roots/list"}, form("Sure?"), ("null", "Sure?")),
    ],
)
def test_the_texts_are_one_line_around_the_first_difference(
    run: Run, before: Any, after: Any, texts: tuple[str, str]
) -> None:
    run.round(1, {"c": before})
    [changed] = run.round(2, {"c": after}, "c")
    for shown, expected in zip((changed.before, changed.after), texts, strict=True):
        assert expected in shown
        assert "\n" not in shown
        assert len(shown) <= 82
        assert "hunter2" not in shown


def test_control_characters_of_a_question_do_not_reach_the_terminal(run: Run) -> None:
    run.round(1, {"c": form("Sure?")})
    run.round(2, {"c": form("\x1b[2JSure?\u202e")}, "c")
    assert "question 'c' has changed" in run.written[-1]
    assert not {"\x1b", "\u202e"} & {*run.written[-1]}


def test_a_question_that_only_has_the_reason_of_a_refusal_has_not_changed(run: Run) -> None:
    run.round(1, {"c": form("Sure?")})
    assert run.round(2, {"c": form("Sure?" + REFUSED)}) == ()
    run.poll(c=form("Sure?"))
    run.work()
    assert run.poll(**{"c~2": form("Sure?" + REFUSED)}) == ()
    assert run.notes == []


def test_a_change_of_a_task_is_noted_in_the_first_poll_that_asks_the_question(run: Run) -> None:
    run.work()
    assert run.poll(c=form("19:55?")) == ()
    run.work("c")
    changed = (ChangedQuestion("c", "19:55?", "19:56?", False),)
    assert run.poll(**{"c~2": form("19:56?")}) == changed
    assert run.poll(**{"c~2": form("19:56?")}) == ()
    assert open_changed_questions(TASK, run.recorder) == changed
    run.work("c")
    assert open_changed_questions(TASK, run.recorder) == changed, "the next question is not asked yet"
    changed = (ChangedQuestion("c", "19:56?", "19:57?", True),)
    assert run.poll(**{"c~3": form("19:57?")}) == changed
    assert open_changed_questions(TASK, run.recorder) == changed
    assert ["ctx.now" in note for note in run.notes] == [False, True]


def test_without_the_earlier_round_nothing_is_said(run: Run) -> None:
    assert run.round(2, {"c": form("Sure?")}, "c") == ()
    assert open_changed_questions(TASK, run.recorder) == ()


@pytest.mark.parametrize("state", [None, 1, "", "\ud800", ["state-1."]])
@pytest.mark.parametrize(
    "requests", [None, [], {"c": None}, {"c~2": None}, {"c": {"params": []}}, {"c~2": form("?")}]
)
def test_malformed_messages_are_harmless(run: Run, state: Any, requests: Any) -> None:
    run.round(1, {"c": form("Really?")})
    exchange = run.exchange({"requestState": state}, {"inputRequests": requests, "taskId": state}, "c")
    assert changed_questions(exchange, run.recorder) == ()
    run.round(1, requests)
    assert len(run.round(2, {"c": form("Sure?")}, "c")) <= 1


@pytest.mark.parametrize("content", [None, [], [None], ["- a"], [{"text": 1}], [{"text": "nothing"}]])
@pytest.mark.parametrize("meta", [None, 1, {"mcp-roundtrip/questions": 1}, {"mcp-roundtrip/questions": {}}])
def test_malformed_results_of_parked_calls_are_harmless(run: Run, content: Any, meta: Any) -> None:
    run.exchange({"name": "clock"}, {"content": [{"text": "- Sure?"}]})
    result = {"content": content, "_meta": meta}
    assert changed_questions(run.exchange({"name": "clock"}, result, "c"), run.recorder) == ()
