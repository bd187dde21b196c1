from typing import Final

import pytest

from support.console_browser import FOCUSED
from support.project import FUNCTIONS
from support.served_application import serve

pytest_plugins = ["support.console_browser"]

WINDOW: Final = {"viewport": {"width": 400, "height": 700}}
QUESTION: Final = ("shows", ".task-body .questions")
FORM: Final = (("fill", "name", "orders"), ("fill", "region", "eu-west-1"), ("click", "Call"))
TO_TASK: Final = (*FORM, ("wait", ".questions"), ("check", "small"), ("click", "Accept"))
KEEP: Final = ("wait", ".task-body .questions")
WHERE: Final = (
    "evaluate",
    "[scrollY, document.activeElement.getBoundingClientRect().top, document.activeElement.value]",
)


@pytest.fixture(scope="module")
def examples():
    template = FUNCTIONS.parent / "template.yaml"
    with serve(template, parameters={"AuthMode": "none"}) as app:
        yield app


@pytest.fixture(scope="module")
def console(examples, open_console):
    return open_console(examples.url("/"))


def test_what_a_task_asks_returns_and_refuses_is_in_view_and_has_the_focus(console):
    seen = console(
        "#/tools/provision_database",
        *(*TO_TASK, KEEP, QUESTION, FOCUSED),
        *(("check", "Yes"), ("click", "Accept")),
        *(("wait", ".task-body .result"), ("shows", ".task-body [data-news=result]"), FOCUSED),
        ("size", 1280, 800),
        *(
            *TO_TASK,
            KEEP,
            QUESTION,
            ("evaluate", "location.hash = document.querySelector('.became-task a').hash"),
        ),
        *(("wait", ".task > .task-body .questions"), QUESTION, FOCUSED),
        ("answer", "tasks/update", {"code": -32602, "message": "This answer is refused."}),
        *(("check", "No"), ("click", "Accept"), ("see", "This answer is refused.")),
        *(("shows", ".task-body > .error:not([hidden])"), FOCUSED),
        # The same refusal again is news, too.
        *(("click", "Accept"), ("shows", ".task-body > .error:not([hidden])")),
        *(
            ("click", "Cancel the task"),
            ("gone", ".task-body .questions"),
            ("shows", ".task-status"),
            FOCUSED,
        ),
        ("axe",),
        refused=True,
        options=WINDOW,
    )
    keep, result, address, *others = seen
    assert (keep, result) == ("Yes", "Result")
    assert address.startswith("#/tasks/")
    assert others == ["Yes", "This answer is refused.", "cancelled"]


def test_a_task_that_asks_leaves_a_user_alone_who_is_elsewhere(console):
    seen = console(
        "#/tools/provision_database",
        ("hold", "tasks/get"),
        *(*TO_TASK, ("wait", ".became-task"), ("shows", ".timeline > .round:last-child")),
        *(("fill", "name", "invoi"), ("evaluate", "window.scrollTo(0, 0)"), WHERE),
        *(("release",), KEEP, ("texts", "#announcements"), ("type", "ces"), WHERE),
        options=WINDOW,
    )
    before, announced, after = seen
    assert announced == ["The task asks a question."]
    assert after[:2] == before[:2]
    assert (before[2], after[2]) == ("invoi", "invoices")
