"""Which questions of a recorded response were asked in another way before."""

import json
from itertools import count

import pytest

from mcp_roundtrip_tools.client.terminal_text import Styles
from mcp_roundtrip_tools.run.observation.changed_questions import (
    ChangedQuestion,
    changed_questions,
    note_changed_questions,
    open_changed_questions,
)
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import HttpExchange, Note
from mcp_roundtrip_tools.run.terminal.terminal import Terminal

TASK = "t" * 32
REFUSED = "\n\nThe previous answer was not accepted. size: hunter2 is taken"


def form(message, kind="boolean"):
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": {"properties": {"value": {"type": kind}}}},
    }


def sampling(text):
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 10}}


class Run:
    """A recorder whose clock advances by 1 ms with each event. `notes` are those of its terminal."""

    def __init__(self):
        self.notes: list[str] = []
        self.written: list[str] = []
        ticks = count()
        terminal = Terminal(self.written.append, Styles(False))
        self.recorder = RunRecorder(
            terminal,
            self._listen,
            lambda event: note_changed_questions(event, self.recorder),
            now_ms=lambda: next(ticks),
        )
        self._ids = map(str, count())

    def _listen(self, event):
        if isinstance(event, Note):
            self.notes.append(event.text)

    def exchange(self, params, result):
        """Record a request and its response; return the questions that changed."""
        body = json.dumps({"method": "tools/call", "id": 1, "params": params}).encode()
        exchange = HttpExchange(next(self._ids), self.recorder.now_ms(), "POST", "/mcp", (), body)
        self.recorder.begin_exchange(exchange)
        response = json.dumps({"id": 1, "result": result}).encode()
        self.recorder.end_exchange(exchange, 200, (("content-type", "application/json"),), response)
        return changed_questions(exchange, self.recorder)

    def round(self, number, requests):
        """Record a round, which sends the state of the round before."""
        params = {"name": "clock", **({"requestState": f"state-{number - 1}."} if number > 1 else {})}
        return self.exchange(params, {"inputRequests": requests, "requestState": f"state-{number}."})

    def poll(self, **requests):
        """Record a poll of a task that asks."""
        result = {"taskId": TASK, "status": "input_required", "inputRequests": requests}
        return self.exchange({"taskId": TASK}, result)


@pytest.fixture
def run():
    return Run()


def test_the_remedy_follows_when_a_question_changes_in_two_rounds_after_each_other(run):
    assert run.round(1, {"c": form("10 EUR?")}) == ()
    assert run.round(2, {"c": form("11 EUR?")}) == (ChangedQuestion("c", "10 EUR?", "11 EUR?", False),)
    assert run.round(3, {"c": form("11 EUR?")}) == ()
    assert run.round(4, {"c": form("12 EUR?")}) == (ChangedQuestion("c", "11 EUR?", "12 EUR?", False),)
    assert run.round(5, {"c": form("13 EUR?")}) == (ChangedQuestion("c", "12 EUR?", "13 EUR?", True),)
    assert ["ctx.now" in note for note in run.notes] == [False, False, True]
    assert all("does not count" in note for note in run.notes[:2])


def test_a_question_is_found_in_an_older_round_and_another_call_is_not(run):
    run.exchange({"name": "clock"}, {"inputRequests": {"price": form("1 EUR?")}, "requestState": "other."})
    run.round(1, {"price": form("10 EUR?"), "name": form("Who?", "string")})
    run.exchange({"name": "clock"}, {"inputRequests": {"price": form("2 EUR?")}, "requestState": "newer."})
    run.round(2, {"name": form("Who?", "string")})
    changed = run.round(3, {"price": form("11 EUR?")})
    assert changed == (ChangedQuestion("price", "10 EUR?", "11 EUR?", False),)


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        (form("Sure?" + REFUSED), form("Really?"), ("Sure?", "Really?")),
        (form("One\n\n  two"), form("One three"), ("One two", "One three")),
        (form("Size?", "integer"), form("Size?", "string"), ('"integer"', '"string"')),
        (sampling("It is 19:55"), sampling("It is 19:56"), ("19:55", "19:56")),
        (form("a" * 500 + "b" + "d" * 500), form("a" * 500 + "c"), ("…" + "a" * 40 + "b", "a" * 40 + "c")),
        ({"method": "roots/list"}, form("Sure?"), ("null", "Sure?")),
        (form("Sure?"), form("\x1b[2JSure?\u202e"), ("Sure?", "Sure?")),
    ],
)
def test_the_texts_are_one_line_around_the_first_difference(run, before, after, texts):
    run.round(1, {"c": before})
    [changed] = run.round(2, {"c": after})
    for shown, expected in zip((changed.before, changed.after), texts, strict=True):
        assert expected in shown
        assert "\n" not in shown
        assert len(shown) <= 82
        assert "hunter2" not in shown
    assert "question 'c' has changed" in run.written[-1]
    assert not {"\x1b", "\u202e"} & {*run.written[-1]}


def test_a_question_that_only_has_the_reason_of_a_refusal_has_not_changed(run):
    run.round(1, {"c": form("Sure?")})
    assert run.round(2, {"c": form("Sure?" + REFUSED)}) == ()
    run.poll(c=form("Sure?"))
    assert run.poll(**{"c~2": form("Sure?" + REFUSED)}) == ()
    assert run.notes == []


def test_a_change_of_a_task_is_noted_in_the_first_poll_that_asks_the_question(run):
    assert run.poll(c=form("19:55?")) == ()
    for number, is_repeated in ((2, False), (3, True)):
        changed = (ChangedQuestion("c", f"19:5{number + 3}?", f"19:5{number + 4}?", is_repeated),)
        for _ in range(2):
            assert run.poll(**{f"c~{number}": form(f"19:5{number + 4}?")}) == changed
        assert open_changed_questions(TASK, run.recorder) == changed
    assert ["ctx.now" in note for note in run.notes] == [False, True]


def test_without_the_earlier_round_nothing_is_said(run):
    assert run.round(2, {"c": form("Sure?")}) == ()
    assert open_changed_questions(TASK, run.recorder) == ()


@pytest.mark.parametrize("state", [None, 1, "", "\ud800", ["state-1."]])
@pytest.mark.parametrize(
    "requests", [None, [], {"c": None}, {"c~2": None}, {"c": {"params": []}}, {"c~2": form("?")}]
)
def test_malformed_messages_are_harmless(run, state, requests):
    run.round(1, {"c": form("Really?")})
    assert len(run.exchange({"requestState": state}, {"inputRequests": requests, "taskId": state})) <= 1
    run.round(1, requests)
    assert len(run.round(2, {"c": form("Sure?")})) <= 1
