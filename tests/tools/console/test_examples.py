"""The examples of template.yaml in the console: journals, experiments, tasks, clients, and copied texts."""

from contextlib import closing
from threading import Event
from typing import Final

import pytest

from mcp_roundtrip.protocol.constants import META_CLIENT_INFO
from mcp_roundtrip_tools.run.http.messages import Request as Message
from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.stand_ins import load_respond
from support.console_browser import ASKED, DECLARE_NOTHING, FOCUSED
from support.project import FUNCTIONS
from support.sam_applications import ONE_SERVER, rpc, write_application
from support.served_application import serve

pytest_plugins = ["support.console_browser"]

PROJECT: Final = FUNCTIONS.parent
DATABASES: Final = PROJECT / "development/stand_ins/databases.py"


def first_creation_waits_for_the_second(respond):
    """Return a provider whose first creation of a database ends only when a second one has been requested.

    So the worker that requests the first one is at work until it is killed, however slow the browser is.
    """
    is_requested_again, is_first = Event(), iter([True])

    def respond_late(request: Message) -> Response:
        if (request.method, request.target) == ("POST", "/v1/databases"):
            if next(is_first, False):
                is_requested_again.wait(60)
            else:
                is_requested_again.set()
        return respond(request)

    return respond_late


@pytest.fixture(scope="module")
def examples():
    provider = first_creation_waits_for_the_second(load_respond(DATABASES))
    with closing(HttpServer(provider, max_body=10_000).start()) as server:
        variables = {"DATABASES_API_URL": server.url}
        with serve(
            PROJECT / "template.yaml",
            parameters={"AuthMode": "none"},
            variables=variables,
        ) as app:
            yield app


@pytest.fixture(scope="module")
def console(examples, open_console):
    return open_console(examples.url("/"))


def test_each_entry_of_the_journal_has_a_mark_and_what_travelled_is_shown(console):
    seen = console(
        "#/tools/provision_database",
        ("fill", "name", "orders"),
        ("click", "Call"),
        ASKED,
        ("check", "small"),
        ("click", "Accept"),
        ("see", "In which region"),
        ("wait", ".journal-strip"),
        ("texts", ".journal-strip .chip"),
        ("click", "Journal"),
        ("texts", ".entry-head"),
        ("texts", ".state-facts dt"),
        ("axe",),
    )
    strip, rows, facts = seen
    assert [text.split() for text in strip] == [["replayed", "prices"], ["answered", "size"]]
    assert [row.split()[:3] for row in rows] == [
        ["replayed", "prices", "step"],
        ["answered", "size", "answer"],
        ["asked", "region", "question"],
    ]
    assert facts[:4] == ["Size", "Round", "Issued", "Expires"]


@pytest.fixture(scope="module")
def task_of_two_workers(console):
    """What is seen while a worker is killed, the next one asks, and the task is cancelled."""
    return console(
        "#/tools/provision_database",
        ("fill", "name", "orders"),
        ("fill", "region", "eu-west-1"),
        ("click", "Call"),
        ASKED,
        ("check", "small"),
        ("click", "Accept"),
        ("see", "Creating orders"),  # before its lease, a lost worker is an invocation that Lambda repeats
        ("click", "Kill this worker now"),
        ("see", "The worker is lost."),
        *(("shows", ".lost"), FOCUSED),
        ("click", "Do not wait for the lease"),
        ("wait", ".worker:nth-child(2)"),
        *(("shows", ".worker:nth-child(2)"), FOCUSED),
        ("see", "Keep it?"),
        *(("shows", ".task-body .questions"), FOCUSED),
        ("texts", ".worker .chips"),
        ("texts", ".worker:last-child .entry-head"),
        ("axe",),
        ("size", 320, 640),
        ("fits",),
        ("click", "Cancel the task"),
        ("gone", ".task-body .questions"),
        ("open", "#/tasks"),
        ("wait", ".tasks .rows li"),
        ("texts", ".tasks .rows li"),
        *(("fits",), ("axe",)),
        *(("open", "#/activity"), ("wait", "main h1"), ("fits",), ("axe",)),
        *(("open", "#/client"), ("wait", "main h1"), ("fits",), ("axe",)),
        options={"viewport": {"width": 400, "height": 700}, "colorScheme": "dark"},
    )


def test_a_worker_is_killed_and_the_next_one_replays_both_in_view_and_with_the_focus(task_of_two_workers):
    lost, second, question, chips, journal, tasks = task_of_two_workers
    assert "lost" in lost
    assert (second, question) == ("Worker 2", "Yes")
    assert [" ".join(text.split()) for text in chips] == ["lost replayed 2", "ended replayed 2 ran 1 asked 1"]
    assert [row.split()[:3] for row in journal] == [
        ["replayed", "prices", "step"],
        ["replayed", "size", "answer"],
        ["ran", "create", "step"],
        ["asked", "keep", "question"],
    ]
    assert tasks[0].split()[:3] == [
        "provision_database",
        '{"name":"orders","region":"eu-west-1"}',
        "cancelled",
    ]


@pytest.mark.usefixtures("task_of_two_workers")
def test_a_refused_poll_does_not_hide_the_task_and_a_final_one_is_not_polled_again(console):
    seen = console(
        "#/tasks",
        ("wait", ".rows a"),
        ("answer", "tasks/get", {"code": -32602, "message": "Unknown task"}),
        ("evaluate", "document.querySelector('.rows a').click()"),
        ("see", "The poll was refused: Unknown task"),
        ("texts", ".task-head .chip"),
        refused=True,
    )
    assert seen == [["cancelled"]]


@pytest.mark.usefixtures("task_of_two_workers")
def test_requests_of_other_clients_and_workers_are_listed(console, examples):
    another = {META_CLIENT_INFO: {"name": "curl-like", "version": "1"}}
    rpc(examples.url("/mcp"), "tools/call", meta=another, name="get_weather", arguments={"location": "Tokyo"})
    seen = console(
        "#/activity",
        ("see", "curl-like"),
        ("texts", ".activity-row"),
        ("check", "Show the requests of this console, too"),
        ("see", "mcp-roundtrip-console"),
        ("evaluate", "document.querySelector('.activity-list > li:not(.own) summary').click()"),
        ("wait", ".server-rows"),
        ("texts", ".server-rows .row-label"),
        ("axe",),
    )
    found, labels = seen
    rows = [" ".join(row.split()) for row in found]
    assert "tools/call get_weather curl-like weather-" in rows[0]
    assert any(row.split()[1:3] == ["asynchronous", "local_provision_worker"] for row in rows)
    assert not any("mcp-roundtrip-console" in row for row in rows)
    assert [label.split()[0].rpartition("-")[0] for label in labels] == ["front_door", "weather"]


def test_clients_that_show_no_forms_are_asked_on_a_page(console):
    seen = console(
        "#/client",
        ("wait", "main h1"),
        ("axe",),
        ("check", "2025-11-25, opens with initialize"),
        ("see", "opens with initialize"),
        ("open", "#/tools/get_weather"),
        ("fill", "location", "Hyderabad"),
        ("click", "Call"),
        ("see", "The question is on a page"),
        ("axe",),
        ("open", "#/client"),
        ("check", "2026-07-28"),
        DECLARE_NOTHING,
        ("see", "declares nothing"),
        ("open", "#/tools/get_weather"),
        ("fill", "location", "Hyderabad"),
        ("click", "Call"),
        ("see", "The question is on a page"),
        ("click", "Call again with the same arguments"),
        ("see", "2 rounds"),
        ("texts", ".round .address"),
    )
    [addresses] = seen
    assert "/mcp/questions?token=" in addresses[-1]
    assert len({*addresses[-2:]}) == 1, (
        "the second call, of a caller without an identity, continues the first"
    )


MODEL_APP = """
    from mcp_roundtrip import Context, Server

    server = Server("greet")

    @server.tool(channels=("model",))
    def greet(ctx: Context) -> str:
        return "Hello " + ctx.elicit("name", "Who are you?", str)

    handler = server.lambda_handler
    """

ANSWERED: Final = '{"input_responses": {"name": {"action": "accept", "content": {"value": "Ada"}}}}'


def test_a_client_that_shows_no_forms_is_asked_through_the_model(open_console, tmp_path):
    template = write_application(tmp_path, ONE_SERVER, {"f/app.py": MODEL_APP})
    with serve(template) as app:
        open_console(f"{app.console_url}")(
            "#/client",
            DECLARE_NOTHING,
            ("see", "declares nothing"),
            ("open", "#/tools/greet"),
            ("click", "Call"),
            ("see", "The model has to ask the user"),
            ("click", "Edit as JSON"),
            ("fill", "Arguments", ANSWERED),
            ("click", "Call"),
            ("see", "Hello Ada"),
        )
