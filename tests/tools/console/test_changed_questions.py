"""A question that changes between rounds: what the terminal and the console of a real run say."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import pytest

from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.issuer.issuer import User
from mcp_roundtrip_tools.run.observation.records import Note
from support.forked_programs import python_of_functions
from support.sam_applications import SERVER_WITH_TASKS, write_application
from support.served_application import serve

pytest_plugins = ["support.console_browser"]

SOURCES = {
    "server/app.py": """
        from itertools import count
        from mcp_roundtrip import Context, Server

        server = Server("clock")
        minutes = count(10)

        @server.tool
        def by_time(ctx: Context, zone: str = "UTC") -> bool:
            return ctx.elicit("c", f"It is 19:{next(minutes)}. Go on?", bool)

        @server.tool(task="required")
        def by_time_in_task(ctx: Context) -> bool:
            ctx.run_as_task()
            return ctx.elicit("c", f"It is 19:{next(minutes)}. Go on?", bool)

        handler, worker_handler = server.lambda_handler, server.worker_handler
        """,
}

REMEDY: Final = "Use ctx.now for the time, ctx.step for other values, and sorted() for a set."
YES: Final = ("check", "Yes"), ("click", "Accept")


@dataclass
class Run:
    """A running application. `notes` are those of its terminal."""

    url: str = ""
    token: str = ""
    notes: list[str] = field(default_factory=list)

    def listen(self, event):
        if isinstance(event, Note):
            self.notes.append(event.text)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    found, folder = Run(), tmp_path_factory.mktemp("clock")
    template = write_application(folder, SERVER_WITH_TASKS, SOURCES)
    hurried = python_of_functions("fast_clock")  # a call that is asked on the page waits for an answer
    with serve(template, python=hurried, users=[User("ada")], log=None, listeners=[found.listen]) as app:
        assert app.issuer is not None
        found.url, found.token = app.url("/"), app.issuer.token("ada")
        # DynamoDB starts now: at a first request, functions with a fast clock would not wait long enough.
        app.emulator.respond(Request("GET", "/", ()))
        yield found


@pytest.fixture
def console(run, open_console):
    run.notes.clear()
    return open_console(run.url)


def test_the_terminal_and_the_round_show_both_texts_and_the_second_time_the_remedy(run, console):
    logs = [("wait", f".round:nth-child({number}) .logs:not([hidden])") for number in (2, 3)]
    visit = console(
        "#/tools/by_time",
        ("click", "Call"),
        ("wait", ".questions"),
        *YES,
        logs[0],
        ("wait", ".round:nth-child(2) .questions"),
        *YES,
        logs[1],
        ("unfold",),
        ("texts", ".question .label-name, .given dt"),
        ("texts", ".log-warning"),
        ("open", "#/activity"),
        ("see", "Waiting for a request"),
        ("check", "Show the requests of this console, too"),
        ("wait", ".activity-list li"),
        (
            "evaluate",
            "[...document.querySelectorAll('.activity-row:has(.asked)')]"
            ".find((row) => row.innerText.includes('tools/call')).click()",
        ),
        ("wait", ".activity-body .waterfall"),
        ("texts", ".changed-question"),
    )
    asked, warnings, in_activity = (found for found in visit.seen if isinstance(found, list))
    assert [each.partition("\n")[2] for each in warnings] == [
        f"The question c has changed, so the answer to the earlier one does not count: {quoted(asked[:2])}",
        f"The question c is different in every round, so no answer to it counts: {quoted(asked[1:])} "
        f"{REMEDY}",
    ]
    assert in_activity == [warnings[1].partition("\n")[2]]
    assert_notes(run, "by_time: question 'c'", asked)
    assert visit.complaints == []


def test_a_task_shows_both_texts_beside_its_question(run, console):
    visit = console(
        "#/tools/by_time_in_task",
        ("click", "Call"),
        ("wait", ".questions"),
        ("texts", ".question .label-name"),
        *YES,
        ("see", "has changed"),
        ("wait", ".questions"),
        ("texts", ".question .label-name"),
        *YES,
        ("see", "in every round"),
        ("wait", ".questions"),
        ("texts", ".question .label-name"),
        ("texts", ".changed-question"),
        ("open", "#/activity"),
        ("check", "Show the requests of this console, too"),
        ("wait", ".activity-list .asked"),
        ("evaluate", "document.querySelector('.activity-list .asked').innerText"),
    )
    assert visit.seen[-1] == "asked c~3", "the poll, too"
    *asked, shown = (found for found in visit.seen if isinstance(found, list))
    messages = [message for [message] in asked]
    assert [f"{quoted(messages[1:])} {REMEDY}" in text for text in shown] == [True]
    assert_notes(run, "question 'c'", messages)
    assert visit.complaints == []


def quoted(pair):
    return f"“{pair[0]}” before, “{pair[1]}” now."


def assert_notes(run, beginning, asked):
    """Assert that the terminal has a note for each two questions that follow each other."""
    for note, (before, after) in zip(run.notes, pairwise(asked), strict=True):
        assert note.startswith(beginning)
        assert f"{before!r} → {after!r}" in note
    assert ["ctx.now" in note for note in run.notes] == [False, True]
