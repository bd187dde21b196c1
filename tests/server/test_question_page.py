"""The question page through a Server's Lambda handler: its states, its headers, and attacks on it."""

import re
from base64 import b64encode
from urllib.parse import urlencode

import pytest
from opentelemetry.trace import SpanKind

from mcp_roundtrip import Server
from mcp_roundtrip.observing.logs_and_metrics import LogObserver
from mcp_roundtrip.protocol.http import HttpRequest
from support.audit_lines import AuditLines
from support.deployment import Deployment
from support.event_sources import HTTP_SOURCES, event_of, response_of
from support.faulty_store import FaultyStore, Operation
from support.html_form import BrowserForm
from support.page_user import HEADERS
from support.question_page import PATH, QuestionPage
from support.stored_tasks import form
from support.traces import MemoryTracer

SIZE = {
    "type": "object",
    "properties": {"vcpus": {"type": "integer", "minimum": 1, "maximum": 16, "title": "Virtual CPUs"}},
    "required": ["vcpus"],
}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
ACCEPTED = {"size": {"action": "accept", "content": {"vcpus": 4}}}

server = Server("databases", title="Databases")


def served(source="http_api", **facets):
    return QuestionPage(Deployment(server, source=source, user=None, **facets))


@pytest.fixture
def page():
    return served()


def ask_size(page):
    """Return the token of a link, and the task that waits."""
    return page.calls.ask({"size": form(SIZE)})


def title(response):
    found = re.search(r"<h1[^>]*>(.*?)</h1>", response.body)
    assert found is not None
    return response.status, found[1]


@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_the_token_is_not_in_the_span_of_the_handler_nor_in_the_event_that_may_be_read_for_it(source):
    """OpenTelemetry's instrumentation of Lambda reads the query before the handler runs, or afterwards."""
    tracer = MemoryTracer()
    page = served(source, tracer=tracer)
    token, _ = ask_size(page)
    event = event_of(source, HttpRequest("GET", {}, b"", path=PATH, query={"token": token}), 0)
    target = {"http.target": f"{PATH}?token={token}"}
    with tracer.span("handler", SpanKind.SERVER, target):
        assert response_of(page.deployment.invoke(event)).status == 200
    assert token not in str(event)
    assert [dict(span.attributes or {}) for span in tracer.spans] == [{"http.target": PATH}]


def test_a_replayed_form_changes_nothing(page):
    token, task = ask_size(page)
    body = page.form(token, "4").body()
    assert page.post(body.replace("action=accept", "action=other")).status == 400
    first = page.post(body)
    assert (first.status, page.post(body)) == (303, first), "the same answers get the same reply"
    for replay in (
        body.replace("0.0=4", "0.0=5"),
        body.replace("0.0=4", "0.0=x"),
        body.replace("accept", "decline"),
        body.replace("version=", "version=0"),
    ):
        assert title(page.post(replay)) == (409, "Already answered")
    assert page.post(body) == first
    assert page.calls.responses(task) == ACCEPTED


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "A" * 100_000, "../../etc", "\u0661" * 43, "a\x00b"])
def test_a_guessed_token_finds_nothing(page, token):
    ask_size(page)
    shown = page.show(token)
    assert title(shown) == (404, "Link not found")
    assert "<form" not in shown.body
    head = page.request("HEAD", urlencode({"token": token}))
    assert (head.status, head.body) == (404, "")
    assert page.post(urlencode({"token": token, "action": "accept", "0.0": "4"})).status == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "https://evil.example", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "null", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "null", "sec-fetch-site": "same-site"}, 403),
        ({"origin": "https://mcp.test.evil.example"}, 403),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 303),
        ({"origin": "https://mcp.test", "sec-fetch-site": "same-origin"}, 303),
        ({"origin": "https://mcp.test"}, 303),
        ({"origin": "null"}, 303),
        ({}, 303),
    ],
)
def test_a_form_of_another_site_is_refused(page, headers, status):
    token, task = ask_size(page)
    sent = {"content-type": HEADERS["content-type"], **headers}
    assert page.request("POST", body=page.form(token, "4").body(), headers=sent).status == status
    assert bool(page.calls.responses(task)) == (status == 303)


def test_an_answer_that_is_too_large_stores_nothing_and_comes_back_if_it_was_read():
    log = AuditLines()
    page = served(audit=log)
    token, task = page.calls.ask({"text": form(TEXT)})
    body = page.form(token, "x" * 500_000).body()
    refused = page.post(body)
    assert refused.status == 413
    assert 'role="alert"' in refused.body
    assert BrowserForm(refused.body).named("0.0")[0].text.strip() == "x" * 500_000
    for size in (1_000_001, 4_000_000):
        assert title(page.post(body + "&x=" + "x" * size)) == (413, "Answer too large")
    assert page.calls.responses(task) == {}
    assert [record.get("answered") for record in log.records()] == [None]


def test_a_question_that_does_not_fit_into_a_response_is_not_shown():
    page = served("alb")
    schema = {"type": "object", "properties": {"x": {"type": "string", "enum": ["&" * 200_000]}}}
    token, _ = page.calls.ask({"q": form(schema)})
    assert title(page.show(token)) == (500, "Question too large")


def failing(page, error, *, at_writes=False):

    def fail(operation: Operation) -> None:
        raise error

    def matches(operation: Operation) -> bool:
        return not at_writes or not operation.is_read

    return page.by(store=FaultyStore(page.calls.store, matches, before=fail))


def test_no_token_and_no_answer_is_logged(page):
    schema = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 9}}}
    token, _ = page.calls.ask({"text": form(schema)})
    filled = page.form(token, "hunter2").body()
    for typed in ("hunter2hunter2", "hunter2", "hunter2", "hunter22"):
        page.post(filled.replace("hunter2", typed))
    events = page.deployment.observer.events
    assert "hunter2" not in repr(events)
    assert token not in repr(events)
    outcomes = [fields.get("outcome") for name, fields in events if name == "request_completed"]
    seen = ("shown", "invalid", "answered", "answered", "late")
    assert outcomes == [f"question_page_{outcome}" for outcome in seen]


def test_an_answer_is_redacted_in_the_traceback_of_a_fault(page, capsys):
    token, _ = page.calls.ask({"text": form(TEXT)})
    filled = page.form(token, "hunter2-hunter2")
    broken = failing(page, RuntimeError(f"{filled.values} {token}"), at_writes=True)
    assert broken.by(observer=LogObserver()).post(filled.body()).status == 500
    logged = capsys.readouterr().out
    assert "internal_error" in logged
    assert "[redacted]" in logged
    assert "hunter2-hunter2" not in logged
    assert token not in logged


@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_a_base64_form_is_read(source):
    page = served(source)
    token, task = ask_size(page)
    body = page.form(token, "4").body()
    event = event_of(source, HttpRequest("POST", HEADERS, body, path=PATH), page.calls.clock())
    assert event["isBase64Encoded"] is True
    assert event["body"] == b64encode(body.encode()).decode()
    assert page.deployment.invoke({**event, "body": event["body"] + "="})["statusCode"] == 400
    assert page.deployment.invoke(event)["statusCode"] == 303
    assert page.calls.responses(task) == ACCEPTED
