"""What is new in the console is in view and has the focus, unless the user is elsewhere: by positions."""

from typing import Final

import pytest

from support.console_browser import CALL, FOCUSED
from support.project import FUNCTIONS
from support.served_application import serve

pytest_plugins = ["support.console_browser"]

PHONE, TABLET, DESKTOP = (400, 700), (800, 600), (1280, 800)
ROUND: Final = ("shows", ".call[open] .round:last-child")
RECORDED: Final = ("wait", ".call[open] .round:last-child .environment")
RESULT: Final = ("wait", ".call[open] .round:last-child .result")
ASKED: Final = ("wait", ".call[open] .round:last-child .questions")
WHERE: Final = (
    "evaluate",
    "[scrollY, document.activeElement.getBoundingClientRect().top, document.activeElement.value ?? null]",
)


def window(size, **options):
    return {"viewport": {"width": size[0], "height": size[1]}, **options}


def test_questions_and_results_are_in_view_and_have_the_focus(console):
    size_of_database = (("fill", "vcpus", "4"), ("select", "zone", "c"), ("fill", "owner", "ada@example.com"))
    seen = console(
        "#/tools/new_database",
        ("fill", "name", "orders"),
        *(CALL, ASKED, RECORDED, ROUND, FOCUSED),
        *(*size_of_database, ("click", "Accept"), ("see", "Keep it?"), RECORDED, ROUND, FOCUSED),
        *(("check", "Yes"), ("click", "Accept"), RESULT, RECORDED, ROUND, FOCUSED),
        ("evaluate", "document.querySelector('.round:nth-child(2) summary').click()"),
        ("evaluate", "document.querySelector('.round:nth-child(2) .again').click()"),
        *(("shows", ".round:nth-child(2) .questions"), FOCUSED),
        *(("click", "Decline"), RESULT, RECORDED, ROUND, FOCUSED),
        ("open", "#/tools/in_one_round"),
        *(CALL, ASKED, RECORDED, ROUND, FOCUSED),
        ("open", "#/tools/open_page"),
        *(CALL, ASKED, RECORDED, ROUND, FOCUSED),
        ("open", "#/prompts/greet"),
        *(("fill", "name", "Ada"), ("click", "Get the prompt"), RESULT, RECORDED, ROUND, FOCUSED),
        options=window(PHONE, reducedMotion="no-preference"),
    )
    assert seen == [
        *("vcpus", "Yes", "Round 3", "Yes", "Round 4"),
        *("Which colour?", "Open the page", "Round 1"),
    ]


def test_errors_are_in_view_have_the_focus_and_say_what_happened(console):
    pages = [{"mode": "url", "message": "Sign in", "url": "https://example.com/", "elicitationId": "1"}]
    texts = ("texts", ".call[open] .round:last-child .result")
    logs = ("texts", ".call[open] .round:last-child .logs")
    seen = console(
        "#/tools/crash",
        *(CALL, RESULT, RECORDED, ROUND, texts, logs),
        ("answer", "tools/call", {"code": -32021, "message": "Missing <b>", "data": {"a": ["b"] * 40}}),
        *(CALL, RESULT, ROUND, texts, ("axe",)),
        ("answer", "tools/call", {"code": -32042, "message": "Open", "data": {"elicitations": pages}}),
        *(CALL, RESULT, ROUND, FOCUSED),
        ("fail", "tools/call", 502),
        *(CALL, RESULT, ROUND),
        ("abort", "tools/call"),
        *(CALL, RESULT, ROUND, FOCUSED, texts),
        ("hold", "tools/call"),
        *(CALL, ("wait", ".call[open] [data-outcome=running]"), ROUND, FOCUSED),
        *(("click", "Stop"), RESULT, ROUND, FOCUSED),
        refused=True,
        options=window(DESKTOP, colorScheme="dark"),
    )
    (reported,), (log, *_), (error,), page, aborted, (no_response,), *others = seen
    assert reported.startswith("The tool reports")
    assert "RuntimeError: boom" in log
    assert error.startswith("Error -32021 · HTTP 400\n\nMissing <b>")
    assert no_response.count("No response") == 1
    assert [page, aborted, *others] == ["Open the page", "Round 1", "Round 1", "Round 1"]


ELSEWHERE: Final = {
    "fills a field": (PHONE, ("fill", "text", "half a sen")),
    "types": (TABLET, ("focus", ".call-form textarea"), ("type", "half")),
    "scrolls": (PHONE, ("scroll", -4000)),
    "scrolls by key": (DESKTOP, ("press", "Home")),
    "reads": (TABLET, ("click", "Request")),
    "moves the focus": (DESKTOP, ("press", "Shift+Tab")),
}
DRAWN: Final = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"


def test_news_leaves_a_user_alone_who_is_elsewhere(console):
    steps = []
    for size, *elsewhere in ELSEWHERE.values():
        steps += [
            ("size", *size),
            *(("open", "#/"), ("open", "#/tools/hostile"), ("hold", "tools/call")),
            *(CALL, ("wait", ".call[open] [data-outcome=running]"), ROUND),
            *elsewhere,
            ("evaluate", DRAWN),
            ("evaluate", "window.before = document.activeElement; null"),
            WHERE,
            ("release",),
            *(ASKED, RECORDED, ("wait", ".call[open] .logs")),
            WHERE,
            ("evaluate", "window.before === document.activeElement"),
        ]
    seen = iter(console("#/client", *steps))
    for name, before, after, has_same_focus in zip(ELSEWHERE, seen, seen, seen, strict=True):
        assert has_same_focus, name
        # The browser itself scrolls by what is new above the place at which the user reads.
        assert after[0] == before[0] or after[1] == pytest.approx(before[1], abs=1), name
        assert after[2] == before[2], name


def test_rounds_without_a_question_are_in_view_until_the_console_stops(console):
    count, state = ("count", ".round"), ("texts", ".call-title .chip")
    seen = console(
        "#/tools/tool_error",
        ("answer", "tools/call", {"resultType": "input_required", "requestState": "saved"}),
        *(CALL, ("see", "The console stopped here."), ROUND, FOCUSED, count, state),
        ("answer", "tools/call", {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}),
        *(("click", "Go on"), RESULT, ROUND, FOCUSED, count, state),
        refused=True,
        options=window((400, 700)),
    )
    assert seen == ["Round 61", 61, ["stopped"], "Round 62", 62, ["completed"]]


QUESTION: Final = ("shows", ".task-body .questions")
FORM: Final = (("fill", "name", "orders"), ("fill", "region", "eu-west-1"), ("click", "Call"))
TO_TASK: Final = (*FORM, ("wait", ".questions"), ("check", "small"), ("click", "Accept"))
KEEP: Final = ("wait", ".task-body .questions")


@pytest.fixture(scope="module")
def examples(open_console):
    """Open the console of the examples, which have tasks."""
    with serve(FUNCTIONS.parent / "template.yaml", parameters={"AuthMode": "none"}) as app:
        yield open_console(app.url("/"))


def test_what_a_task_asks_returns_and_refuses_is_in_view_and_has_the_focus(examples):
    seen = examples(
        "#/tools/provision_database",
        *(*TO_TASK, KEEP, QUESTION, FOCUSED),
        *(("check", "Yes"), ("click", "Accept")),
        *(("wait", ".task-body .result"), ("shows", ".task-body [data-news=result]"), FOCUSED),
        ("size", 1280, 800),
        *(*TO_TASK, KEEP, QUESTION),
        ("evaluate", "location.hash = document.querySelector('.became-task a').hash"),
        *(("wait", ".task > .task-body .questions"), QUESTION, FOCUSED),
        ("answer", "tasks/update", {"code": -32602, "message": "Refused."}),
        *(("check", "No"), ("click", "Accept"), ("see", "Refused.")),
        *(("shows", ".task-body > .error:not([hidden])"), FOCUSED),
        # The same refusal again is news, too.
        *(("click", "Accept"), ("shows", ".task-body > .error:not([hidden])")),
        *(("click", "Cancel the task"), ("gone", ".task-body .questions"), ("see", "cancelled")),
        *(("shows", ".task-status"), FOCUSED),
        ("axe",),
        refused=True,
        options=window(PHONE),
    )
    keep, result, address, *others = seen
    assert (keep, result) == ("Yes", "Result")
    assert address.startswith("#/tasks/")
    assert others == ["Yes", "Refused.", "cancelled"]


def test_a_task_that_asks_leaves_a_user_alone_who_is_elsewhere(examples):
    seen = examples(
        "#/tools/provision_database",
        ("hold", "tasks/get"),
        *(*TO_TASK, ("wait", ".became-task"), ("shows", ".timeline > .round:last-child")),
        *(("fill", "name", "invoi"), ("evaluate", "window.scrollTo(0, 0)"), WHERE),
        *(("release",), KEEP, ("texts", "#announcements"), ("type", "ces"), WHERE),
        options=window(PHONE),
    )
    before, announced, after = seen
    assert [line[:13] for line in announced] == ["The task asks"]
    assert after[:2] == before[:2]
    assert (before[2], after[2]) == ("invoi", "invoices")
