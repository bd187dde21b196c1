"""Experiments of the console are branches: the call keeps its state, and each shows its own outcome."""

from typing import Any, Final

import pytest

from mcp_roundtrip_tools.run.issuer.issuer import make_users
from support.console_browser import DECLARE_NOTHING, DONE
from support.project import FUNCTIONS
from support.served_application import serve

pytest_plugins = ["support.console_browser"]

SCOPES: Final = "weather:read provision:write tasks"
ASKED: Final = ("wait", ".round:last-child .questions")
HEAD: Final = ("texts", ".call-head .chip, .call-head .facts")
OUTCOMES: Final = (
    "evaluate",
    "[...document.querySelectorAll('.timeline > .round:not(.worker)')].map((each) => each.dataset.outcome)",
)
CARDS: Final = (
    "evaluate",
    "[...document.querySelectorAll('.branch .chip.experiment')].map((each) => each.textContent)",
)
INDIA: Final = "Hyderabad, Telangana, India"
PAKISTAN: Final = "Hyderabad, Sindh, Pakistan"


@pytest.fixture(scope="module")
def console(open_console):
    users = make_users("ada bob", SCOPES)
    with serve(FUNCTIONS.parent / "template.yaml", users=users) as app:
        yield open_console(f"{app.console_url}")


def ended(number):
    """Return the step that waits until the round with this number has its response."""
    return ("wait", f".timeline > .round:nth-child({number}):not(.worker):not([data-outcome=running])")


def click_in(number, *labels):
    """Return the step that clicks buttons on the card of a round, each by its label or by how that begins."""
    card = f"document.querySelector('.timeline > .round:nth-child({number})')"
    find = f"(test) => [...{card}.querySelectorAll('button')].find(({{ textContent }}) => test(textContent))"
    click = "(find((text) => text === label) ?? find((text) => text.startsWith(label))).click()"
    opened = f"{card}.querySelector('details').open = true"
    return (
        "evaluate",
        f"(() => {{ {opened}; const find = {find}; for (const label of {list(labels)}) {click}; }})()",
    )


def experiments(number, rounds, *labels):
    """Return the steps that carry out experiments with a round of a call that has this number of rounds."""
    steps: list[tuple[Any, ...]] = [click_in(number, "Experiments")]
    for new, label in enumerate(labels, rounds + 1):
        steps += [click_in(number, label), ended(new)]
    return steps


def as_another_client(page, number, rounds):
    """Return the steps that send a round as a client that declares nothing."""
    change = [("open", "#/client"), DECLARE_NOTHING, ("see", "declares nothing"), ("open", page)]
    return [*change, *experiments(number, rounds, "Send as 2026-07-28")]


def facts(head):
    """Return the state and the numbers of rounds in the head of a call."""
    state, numbers = head
    return state, " · ".join(numbers.split(" · ")[:2])


ALL: Final = ("Send again", "Change and send", "Send as bob", "Send this round to the version")
MARKS: Final = ["resent", "damaged state", "other user", "other version"]
WEATHER: Final = "#/tools/get_weather"
PROVISION: Final = "#/tools/provision_database"
ASK_FOR_PLACE: Final = (("fill", "location", "Hyderabad"), ("click", "Call"), ASKED)


def test_a_completed_call_stays_completed(console):
    given, head, marks, outcomes = console(
        WEATHER,
        *(*ASK_FOR_PLACE, ("check", INDIA), ("click", "Accept"), ended(2)),
        *experiments(2, 2, *ALL),
        ("axe",),
        *(click_in(1, "Answer differently"), ("check", PAKISTAN), ("click", "Accept"), ended(7)),
        *(click_in(1, "Answer differently"), click_in(1, "Decline"), ended(8)),
        *(click_in(1, "Answer differently"), click_in(1, "Cancel"), ended(9)),
        *as_another_client(WEATHER, 2, 9),
        *(("unfold",), ("texts", ".given dd"), HEAD, CARDS, OUTCOMES),
        refused=True,
    )
    assert facts(head) == ("completed", "2 rounds · 8 experiments")
    assert given == [INDIA, PAKISTAN, "declined", "cancelled"]
    assert marks == [*MARKS, "older state", "older state", "older state", "other client"]
    assert outcomes[:7] == ["asking", "completed", "completed", "failed", "failed", "completed", "completed"]
    assert outcomes[7:9] == ["failed", "failed"]


def test_a_call_that_waits_is_still_answered_after_experiments(console):
    head, marks, outcomes = console(
        WEATHER,
        *ASK_FOR_PLACE,
        *experiments(1, 1, *ALL),
        # The experiment asks, too: what answers it continues the experiment.
        *(ASKED, ("check", PAKISTAN), ("click", "Accept"), ended(6)),
        *(HEAD, CARDS, OUTCOMES),
        refused=True,
    )
    assert facts(head) == ("waiting for an answer", "1 round · 4 experiments")
    assert marks == [*MARKS, "continues round 5"]
    assert outcomes == ["asking", "asking", "failed", "asking", "asking", "completed"]
    head, *marks_and_outcomes = console(
        WEATHER,
        *ASK_FOR_PLACE,
        *experiments(1, 1, "Send again", "Send as bob"),
        ("evaluate", "document.querySelector('.round input').click()"),
        *(click_in(1, "Accept"), ended(4)),
        *(HEAD, CARDS, OUTCOMES),
    )
    assert facts(head) == ("completed", "2 rounds · 2 experiments")
    assert marks_and_outcomes == [["resent", "other user"], ["asking", "asking", "asking", "completed"]]


def test_a_call_that_became_a_task_stays_that_task(console):
    tasks, head, marks, outcomes = console(
        PROVISION,
        *(("fill", "name", "orders"), ("click", "Call"), ASKED, ("check", "small"), ("click", "Accept")),
        *(("see", "In which region"), ("check", "eu-west-1"), ("click", "Accept"), ("see", "Keep it?")),
        *experiments(3, 3, "Send", "Change and send", "Send as bob"),
        *(click_in(1, "Answer differently"), click_in(1, "Cancel"), ended(7)),
        ("texts", ".became-task a"),
        ("see", "The call has become this task before."),
        *(HEAD, CARDS, OUTCOMES),
        refused=True,
    )
    assert facts(head) == ("became a task", "3 rounds · 4 experiments")
    assert marks[1:] == ["damaged state", "other user", "older state"]
    assert outcomes == ["asking", "asking", "task", "task", "failed", "failed", "task"]
    assert tasks == tasks[:1] * 3, "the task of the call, and that of both experiments"


def test_another_user_cannot_continue_a_call_and_each_round_can_be_copied(console):
    """test_copy_as.py runs what is copied."""
    (curl,), (program,), (test,) = console(
        WEATHER,
        *(*ASK_FOR_PLACE, ("check", INDIA), ("click", "Accept"), DONE),
        ("click", "Experiments"),
        ("click", "Send as bob"),
        ("see", "reason=wrong_principal"),
        ("click", "Copy as"),
        ("texts", ".copy-as pre"),
        ("click", "Python client"),
        ("texts", ".copy-as pre"),
        ("click", "Player test"),
        ("texts", ".copy-as pre"),
        *(click_in(1, "Experiments", "Send as bob"), ended(4)),
        ASKED,
        ("check", INDIA),
        ("click", "Accept"),  # as bob, whom the round asked
        ("wait", ".round:nth-child(5) .result:not(.failed)"),
        ("open", "#/client"),
        ("see", "no token"),
        ("check", "bob"),
        ("see", "tasks · bob"),
        ("axe",),
        refused=True,
    )
    assert curl.startswith("curl ")
    assert INDIA in program
    assert '"sub": "ada"' in test
