"""Answers are stored whole: two submissions in every order of their operations, and with every crash."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import pytest

from mcp_roundtrip.tasks.model import CLIENT, Status, Task, WorkState
from mcp_roundtrip.tasks.parked_calls import ParkedCalls
from mcp_roundtrip.tasks.question_page_tokens import APP, PAGE, QuestionLinks
from support.interleavings import Crash, Program, every_order
from support.stored_tasks import StoredTasks, form

pytest_plugins = ["support.task_stores"]

SCHEMA: Final = {"type": "object", "properties": {"value": {"type": "string"}}}
KEYS: Final = ("account", "amount", "memo")

Answers = Mapping[str, Any]


def answers(name, *keys):
    return {key: {"action": "accept", "content": {"value": f"{key} of {name}"}} for key in keys or KEYS}


ADA, BOB = answers("ada"), answers("bob")


@dataclass
class Waiting:
    """A call that waits for three answers. Its store is that of the whole test."""

    calls: StoredTasks
    channel: str = PAGE
    token: str = ""
    task: Task = field(init=False)

    def __post_init__(self):
        requests = {key: form(SCHEMA, f"{key}?") for key in KEYS}
        self.token, self.task = self.calls.ask(requests, channel=self.channel)
        self.calls.table.dispatcher.sent.clear()

    def tasks(self, store):
        return self.calls.table.tasks(store)

    def on_page(self, given):
        """Return a program that posts a form of the page, and returns whether it is told "stored"."""
        found = self.calls.links.find(self.token)
        return lambda store: QuestionLinks(self.tasks(store)).answer(found, given) == "stored"

    def in_view(self, given):
        """Return a program that sends the form of a view, and returns whether it is told "stored"."""
        waiting = self.stored
        return lambda store: ParkedCalls(self.tasks(store)).answer(waiting, given, "app")

    def by_client(self, given):
        """Return a program that calls `tasks/update`, and returns True: it is acknowledged."""
        return lambda store: self.tasks(store).update("alice", self.task.task_id, given) is None

    def by_model(self, given):
        """Return a program that stores the answers of a model, which are acknowledged, too."""

        def program(store):
            self.tasks(store).store_responses(self.task.pk, given, channels=("model",), via="model")
            return True

        return program

    @property
    def stored(self):
        return self.calls.stored(self.task)

    @property
    def received(self):
        """What the next pass over the tool receives."""
        return self.calls.responses(self.task)

    def check_resumed(self):
        task, sent = self.stored, self.calls.table.dispatcher.sent
        assert (task.status, task.work_state) == (Status.WORKING, WorkState.READY)
        assert (task.requests, task.link) == ({}, None)
        assert len(sent) <= 1


Submit = Callable[[Waiting, Answers], Program]
in_memory = pytest.mark.parametrize("task_store", ["memory"], indirect=True)


def ids(value):
    return getattr(value, "__name__", None) or str(value)


FORMS: Final[Sequence[tuple[str, Submit, Submit]]] = [
    (PAGE, Waiting.on_page, Waiting.on_page),
    (APP, Waiting.in_view, Waiting.in_view),
    (APP, Waiting.on_page, Waiting.in_view),
]
"""The channel of the questions, and two ways to send a form."""

UPDATES: Final[Sequence[tuple[str, Submit, Submit]]] = [
    (CLIENT, Waiting.by_client, Waiting.by_client),
    ("model", Waiting.by_model, Waiting.by_model),
]


def moments():
    """Yield the moment before each operation, and the one after it."""
    return (Crash(number, is_done) for number in count() for is_done in (False, True))


@pytest.fixture
def calls(task_store):
    return StoredTasks.over(task_store)


def ends(calls, channel, submissions, crash=None):
    """Yield each end of the submissions to a call, for each order of their operations."""
    worlds: list[Waiting] = []

    def new_world():
        worlds.append(waiting := Waiting(calls, channel))
        return calls.store, [submit(waiting, given) for submit, given in submissions]

    for processes in every_order(new_world, crash):
        yield worlds[-1], processes


@pytest.mark.parametrize("task_store", ["ministack"], indirect=True)
def test_of_two_forms_one_is_stored_whole_and_only_its_sender_is_told_so(calls):
    """The test of repetitions below has the same orders in memory: in its last round, nothing crashes."""
    winners = set()
    for waiting, (ada, bob) in ends(calls, APP, [(Waiting.in_view, ADA), (Waiting.in_view, BOB)]):
        assert waiting.received in (ADA, BOB)
        assert (ada.result, bob.result) == (waiting.received == ADA, waiting.received == BOB)
        waiting.check_resumed()
        winners.add(ada.result)
    assert winners == {True, False}, "the orders include those in which each of them is first"


@pytest.mark.parametrize(("channel", "one", "other"), FORMS, ids=ids)
@in_memory
def test_two_equal_forms_get_the_same_reply(calls, channel, one, other):
    for waiting, (first, second) in ends(calls, channel, [(one, ADA), (other, ADA)]):
        assert (first.result, second.result, waiting.received) == (True, True, ADA)
        waiting.check_resumed()


@pytest.mark.parametrize(("channel", "one", "other"), UPDATES, ids=ids)
@in_memory
def test_updates_of_some_questions_complete_each_other(calls, channel, one, other):
    ada, bob = answers("ada", "account", "amount"), answers("bob", "amount", "memo")
    for waiting, _ in ends(calls, channel, [(one, ada), (other, bob)]):
        assert waiting.received in ({**ada, **bob}, {**bob, **ada})
        waiting.check_resumed()


def test_an_answer_is_equal_to_one_with_members_that_are_null(calls):
    waiting = Waiting(calls, APP)
    declined: Answers = {key: {"action": "decline"} for key in KEYS}
    assert waiting.in_view({key: {"action": "decline", "content": None} for key in KEYS})(calls.store) is True
    assert waiting.received == declined
    for again in (declined, {key: {"_meta": None, "action": "decline", "content": None} for key in KEYS}):
        assert waiting.in_view(again)(calls.store) is True
    assert waiting.in_view(dict.fromkeys(KEYS, None))(calls.store) is False


@pytest.mark.parametrize(("channel", "one", "other"), [*FORMS, *UPDATES], ids=ids)
@in_memory
def test_a_submission_that_is_repeated_after_a_crash_is_told_whether_it_was_stored(
    calls, channel, one, other
):
    has_verdict = (channel, one, other) in FORMS
    for crash in moments():
        has_crashed = False
        for waiting, (ada, bob) in ends(calls, channel, [(one, ADA), (other, BOB)], crash):
            has_crashed = has_crashed or ada.has_crashed
            told = one(waiting, ADA)(calls.store) if ada.has_crashed else ada.result
            assert waiting.received in (ADA, BOB)
            if has_verdict:
                assert (told, bob.result) == (waiting.received == ADA, waiting.received == BOB)
            waiting.check_resumed()
        if not has_crashed:
            break
    assert crash.operation >= 2, "each operation was tried"


@pytest.mark.parametrize("later", [ADA, BOB], ids=["the same", "others"])
def test_after_a_crash_without_another_submission_the_answers_are_stored_or_not(calls, later):
    kept = set()
    for crash in moments():
        [(waiting, [ada])] = ends(calls, APP, [(Waiting.in_view, ADA)], crash)
        if not ada.has_crashed:
            break
        assert waiting.received in ({}, ADA)
        kept.add(bool(waiting.received))
        told = waiting.in_view(later)(calls.store)
        assert waiting.received in (ADA, later)
        assert told == (waiting.received == later)
    assert kept == {False, True}
