"""The question page through a Server's Lambda handler: its states, its headers, and attacks on it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip.auth.callers import AuthMode, Unauthorized
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.http import HttpRequest
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.question_page.style import STYLE_SOURCE
from mcp_roundtrip.server.question_page import is_question_page
from mcp_roundtrip.telemetry import LogObserver
from mcp_roundtrip_local.api_gateway.payload import to_event
from mcp_roundtrip_local.http.messages import Request
from mcp_roundtrip_local.sample_events.sources import FORMATS
from mcp_roundtrip_local.template.model import Route
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.ports import make_ports
from support.event_sources import HTTP_SOURCES
from support.html_form import BrowserForm
from support.messages import call, http_event
from support.question_links import WaitingCalls, form, url

SIZE = {
    "type": "object",
    "properties": {"vcpus": {"type": "integer", "minimum": 1, "maximum": 16, "title": "Virtual CPUs"}},
    "required": ["vcpus"],
}
FORM_TYPE = {"content-type": "application/x-www-form-urlencoded"}
BROWSER = {**FORM_TYPE, "origin": "null", "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
"""The headers of Chromium, Firefox and Safari for the page's own form, under `no-referrer`."""


@dataclass
class Page:
    """A deployment with waiting calls, as browsers and attackers reach it."""

    source: str = "http_api"
    auth: Any = None
    calls: WaitingCalls = field(default_factory=WaitingCalls)
    observer: Any = field(default_factory=RecordingObserver)

    def __post_init__(self) -> None:
        ports = make_ports(
            clock=self.calls.clock, tasks=self.calls.table, auth=self.auth, observer=self.observer
        )
        self.ports = ports
        self.handler = Server("databases", title="Databases", ports=lambda: ports).lambda_handler

    def request(
        self, method: str, query: str = "", body: str | bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, str, dict[str, str]]:
        target = "/mcp/questions" + (f"?{query}" if query else "")
        content = body.encode() if isinstance(body, str) else body
        sent = tuple({"host": "mcp.test", **(headers or {})}.items())
        request = Request(method, target, sent, content)
        route = Route(method, "/mcp/questions", "F")
        event = to_event(request, route, {}, request_id="request-1", now=self.calls.clock())
        response = self.handler(FORMATS.get(self.source, dict)(event), None)
        lists = response.get("multiValueHeaders", {})
        found = response.get("headers") or {name: value for name, [value] in lists.items()}
        return response["statusCode"], response["body"], found

    def show(self, token: str) -> tuple[int, str]:
        status, body, _ = self.request("GET", urlencode({"token": token}))
        return status, body

    def form(self, token: str) -> BrowserForm:
        status, body = self.show(token)
        assert status == 200
        return BrowserForm(body)

    def post(self, body: str | bytes, **headers: str) -> tuple[int, str]:
        status, text, _ = self.request("POST", body=body, headers={**BROWSER, **headers})
        return status, text

    def ask_size(self) -> tuple[str, Any]:
        return self.calls.ask({"size": form(SIZE)})

    def answered(self, token: str, vcpus: str = "4") -> str:
        """The body of a form that answers."""
        filled = self.form(token)
        filled.enter("0.0", vcpus)
        return filled.body()


@pytest.fixture
def page() -> Page:
    return Page()


def title(body: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", body)
    assert found is not None
    return found[1]


ACCEPTED = {"size": {"action": "accept", "content": {"vcpus": 4}}}


def test_an_answer_is_stored_and_the_worker_is_dispatched(page: Page) -> None:
    token, task = page.ask_size()
    page.calls.table.dispatcher.sent.clear()
    status, body, headers = page.request("POST", body=page.answered(token), headers=BROWSER)
    assert (status, body, headers["location"]) == (303, "", f"?token={token}")
    assert page.calls.responses(task) == ACCEPTED
    assert list(page.calls.table.dispatcher.sent) == [("w:1", task.pk)]
    assert page.show(token)[0] == 200
    assert title(page.show(token)[1]) == "Thank you"


def test_the_page_names_the_server_and_the_tool(page: Page) -> None:
    _, body = page.show(page.ask_size()[0])
    assert title(body) == "Question from provision"
    assert "Databases" in body


def test_opening_the_link_changes_nothing(page: Page) -> None:
    token, task = page.ask_size()
    before = page.calls.table.store.query(task.pk)
    for method in ("GET", "HEAD", "GET"):
        status, body, _ = page.request(method, f"token={token}&action=accept&0.0=4")
        assert status == 200
        assert bool(body) == (method == "GET")
    assert page.calls.table.store.query(task.pk) == before


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refusal_is_stored_without_content(page: Page, action: str) -> None:
    token, task = page.ask_size()
    assert page.post(page.form(token).body(action))[0] == 303
    assert page.calls.responses(task) == {"size": {"action": action}}


def test_wrong_answers_come_back_with_errors_and_store_nothing(page: Page) -> None:
    token, task = page.ask_size()
    status, body = page.post(page.answered(token, "17"))
    assert status == 422
    again = BrowserForm(body)
    assert again.named("0.0")[0].attributes["value"] == "17"
    assert page.calls.responses(task) == {}
    again.enter("0.0", "4")
    assert page.post(again.body())[0] == 303
    assert page.calls.responses(task) == ACCEPTED


def test_a_url_question_is_confirmed(page: Page) -> None:
    token, task = page.calls.ask({"login": url("https://id.example/")})
    assert page.post(page.form(token).body())[0] == 303
    assert page.calls.responses(task) == {"login": {"action": "accept"}}


# Attacks


def test_a_replayed_form_changes_nothing(page: Page) -> None:
    token, task = page.ask_size()
    body = page.answered(token)
    first = page.post(body)
    assert (first[0], page.post(body)) == (303, first), "the same answers get the same reply"
    for replay in (
        body.replace("0.0=4", "0.0=5"),
        body.replace("0.0=4", "0.0=x"),
        body.replace("accept", "decline"),
        body.replace("version=", "version=0"),
    ):
        status, text = page.post(replay)
        assert (status, title(text)) == (409, "Already answered")
    assert page.post(body) == first
    assert page.calls.responses(task) == ACCEPTED


def test_of_two_tabs_at_the_same_time_one_counts(page: Page) -> None:
    for _ in range(10):
        token, task = page.ask_size()
        bodies = [page.answered(token, vcpus) for vcpus in ("4", "8")]
        with ThreadPoolExecutor(2) as pool:
            statuses = list(pool.map(lambda body: page.post(body)[0], bodies))
        assert sorted(statuses) == [303, 409]
        stored = page.calls.responses(task)["size"]["content"]["vcpus"]
        assert stored == (4, 8)[statuses.index(303)]


def test_the_token_of_one_call_does_not_answer_another(page: Page) -> None:
    (mine, _), (_, theirs) = page.ask_size(), page.ask_size()
    moved = page.answered(mine)
    page.post(moved)
    assert page.calls.responses(theirs) == {}


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "A" * 100_000, "../../etc", "\u0661" * 43, "a\x00b"])
def test_a_guessed_token_finds_nothing(page: Page, token: str) -> None:
    page.ask_size()
    status, body = page.show(token)
    assert (status, title(body)) == (404, "Link not found")
    assert "<form" not in body
    assert page.post(urlencode({"token": token, "action": "accept", "0.0": "4"}))[0] == 404


def test_an_expired_link_shows_no_question_and_takes_no_answer(page: Page) -> None:
    token, task = page.ask_size()
    body = page.answered(token)
    page.calls.clock.advance(3_601)
    assert page.show(token)[0] == 410
    status, text = page.post(body)
    assert (status, title(text)) == (410, "Link expired")
    assert page.calls.responses(task) == {}


def test_a_form_that_is_posted_after_the_call_ended_stores_nothing(page: Page) -> None:
    token, task = page.ask_size()
    body = page.answered(token)
    page.calls.tasks.cancel("alice", task.task_id)
    assert page.show(token)[0] == 410
    status, text = page.post(body)
    assert (status, title(text)) == (410, "Call ended")
    assert page.calls.responses(task) == {}


def test_an_answer_to_other_questions_than_were_shown_stores_nothing(page: Page) -> None:
    token, task = page.calls.ask({"first": form(SIZE), "second": form(SIZE, "And now?")})
    filled = page.form(token)
    filled.enter("0.0", "1")
    filled.enter("1.0", "2")
    page.calls.tasks.store_responses(task.pk, {"first": {"action": "decline"}}, channels=("page",))
    status, text = page.post(filled.body())
    assert (status, title(text)) == (409, "Question changed")
    assert page.calls.responses(task).keys() == {"first"}


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
def test_a_form_of_another_site_is_refused(page: Page, headers: dict[str, str], status: int) -> None:
    token, task = page.ask_size()
    got, _, _ = page.request("POST", body=page.answered(token), headers={**FORM_TYPE, **headers})
    assert got == status
    assert bool(page.calls.responses(task)) == (status == 303)


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_a_link_from_any_site_is_shown(page: Page, headers: dict[str, str]) -> None:
    token, _ = page.ask_size()
    assert page.request("GET", f"token={token}", headers=headers)[0] == 200


@pytest.mark.parametrize(
    "body", ["a=%zz", "a=%ff", b"a=\xff\xfe", "0.0=4&0.0=5", "&" * 30_000, "action=accept" * 2]
)
def test_a_body_that_is_not_the_pages_form_stores_nothing(page: Page, body: str | bytes) -> None:
    token, task = page.ask_size()
    prefix = page.form(token).body().replace("0.0=&", "").encode()
    content = body.encode() if isinstance(body, str) else body
    status, _ = page.post(prefix + b"&" + content)
    assert status in (400, 422)
    assert page.calls.responses(task) == {}


@pytest.mark.parametrize("size", [1_000_001, 4_000_000])
def test_a_body_over_a_megabyte_is_refused_unread(page: Page, size: int) -> None:
    token, task = page.ask_size()
    status, body = page.post(page.answered(token) + "&x=" + "x" * size)
    assert (status, title(body)) == (413, "Answer too large")
    assert page.calls.responses(task) == {}


def test_an_answer_that_the_table_cannot_hold_comes_back(page: Page) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    token, task = page.calls.ask({"text": form(schema)})
    filled = page.form(token)
    filled.enter("0.0", "x" * 500_000)
    status, body = page.post(filled.body())
    assert status == 413
    assert BrowserForm(body).named("0.0")[0].text.strip() == "x" * 500_000
    assert page.calls.responses(task) == {}


@pytest.mark.parametrize(
    "content_type", ["text/plain", "multipart/form-data; boundary=x", "application/json", ""]
)
def test_another_content_type_is_refused(page: Page, content_type: str) -> None:
    token, _ = page.ask_size()
    assert page.post(page.answered(token), **{"content-type": content_type})[0] == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_another_method_is_refused(page: Page, method: str) -> None:
    status, _, headers = page.request(method)
    assert (status, headers["allow"]) == (405, "GET, HEAD, POST")
    assert not [name for name in headers if name.startswith("access-control")]


def test_a_question_that_does_not_fit_into_a_response_is_not_shown() -> None:
    page = Page("alb")
    schema = {"type": "object", "properties": {"x": {"type": "string", "enum": ["&" * 200_000]}}}
    token, _ = page.calls.ask({"q": form(schema)})
    status, body = page.show(token)
    assert (status, title(body)) == (500, "Question too large")


class BrokenStore:
    def get(self, pk: str, sk: str) -> Any:
        raise StoreError("timeout")


def test_a_table_that_fails_is_a_friendly_page_that_says_to_try_again(page: Page) -> None:
    token, _ = page.ask_size()
    body = page.answered(token)
    page.calls.table.store = BrokenStore()  # type: ignore[assignment]  # it fails at the first call
    page_after = Page(calls=page.calls, observer=page.observer)
    for method, query, content in (("GET", f"token={token}", ""), ("POST", "", body)):
        status, text, headers = page_after.request(method, query, content, BROWSER)
        assert (status, title(text), headers["retry-after"]) == (503, "Temporarily unavailable", "10")
    assert "task_table_unavailable" in {name for name, _ in page.observer.events}


def test_a_table_that_cannot_be_written_gives_the_form_back(page: Page) -> None:
    token, task = page.ask_size()
    body = page.answered(token)
    store = page.calls.table.store

    class ReadOnly:
        get, query = store.get, store.query

        def __getattr__(self, name: str) -> Any:
            raise StoreError("timeout")

    page.calls.table.store = ReadOnly()  # type: ignore[assignment]  # writes fail
    status, text = Page(calls=page.calls).post(body)
    assert status == 503
    again = BrowserForm(text)
    assert again.named("0.0")[0].attributes["value"] == "4"
    page.calls.table.store = store
    assert Page(calls=page.calls).post(again.body())[0] == 303
    assert page.calls.responses(task) == ACCEPTED


def test_a_fault_is_logged_and_its_page_tells_nothing(page: Page) -> None:
    token, _ = page.ask_size()
    body = page.answered(token)

    class Faulty:
        def get(self, pk: str, sk: str) -> Any:
            raise RuntimeError("secret detail")

    page.calls.table.store = Faulty()  # type: ignore[assignment]  # a defect
    for method, query in (("GET", f"token={token}"), ("POST", "")):
        status, text, _ = Page(calls=page.calls, observer=page.observer).request(method, query, body, BROWSER)
        assert (status, title(text)) == (500, "Something went wrong")
        assert "secret" not in text
    assert [name for name, _ in page.observer.events].count("internal_error") == 2


# Headers and logs


def test_no_response_is_cached_framed_scripted_or_tells_another_site_its_address(page: Page) -> None:
    token, _ = page.ask_size()
    body = page.answered(token)
    responses = [
        page.request("GET", f"token={token}"),
        page.request("GET", "token=guessed"),
        page.request("POST", body=body.replace("0.0=4", "0.0=99"), headers=BROWSER),
        page.request("POST", body=body, headers={**BROWSER, "sec-fetch-site": "cross-site"}),
        page.request("POST", body=body, headers=BROWSER),
        page.request("PUT"),
    ]
    assert [status for status, _, _ in responses] == [200, 404, 422, 403, 303, 405]
    for _, _, headers in responses:
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert headers["content-security-policy"] == (
            f"default-src 'none'; style-src {STYLE_SOURCE}; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        )
        assert "set-cookie" not in headers


def test_no_token_and_no_answer_is_logged(page: Page) -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 9}}}
    token, _ = page.calls.ask({"text": form(schema)})
    filled = page.form(token)
    filled.enter("0.0", "hunter2")
    for typed in ("hunter2hunter2", "hunter2", "hunter2", "hunter22"):
        page.post(filled.body().replace("hunter2", typed))
    assert "hunter2" not in repr(page.observer.events)
    assert token not in repr(page.observer.events)
    outcomes = [fields.get("outcome") for name, fields in page.observer.events if name == "request_completed"]
    assert outcomes == [
        "question_page_shown",
        "question_page_invalid",
        "question_page_answered",
        "question_page_answered",
        "question_page_late",
    ]


def test_an_answer_is_redacted_in_the_traceback_of_a_fault(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    token, _ = page.calls.ask({"text": form({"type": "object", "properties": {"text": {"type": "string"}}})})
    filled = page.form(token)
    filled.enter("0.0", "hunter2-hunter2")
    store = page.calls.table.store

    class Faulty:
        get, query = store.get, store.query

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"{filled.values} {token}")

    page.calls.table.store = Faulty()  # type: ignore[assignment]  # a defect that quotes the answer
    assert Page(calls=page.calls, observer=LogObserver()).post(filled.body())[0] == 500
    logged = capsys.readouterr().out
    assert "internal_error" in logged
    assert "[redacted]" in logged
    assert "hunter2-hunter2" not in logged
    assert token not in logged


# Deployments


class Refusing:
    def authenticate(self, headers: Any, authorizer: Any) -> Any:
        raise Unauthorized("missing_principal")


@pytest.mark.parametrize("mode", [*AuthMode])
@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_the_page_needs_no_authorization_behind_any_source_and_mode(source: str, mode: AuthMode) -> None:
    auth = EventAuthenticator(mode, "sub") if mode is not AuthMode.BEARER else Refusing()
    page = Page(source, auth)
    token, task = page.ask_size()
    assert page.post(page.answered(token))[0] == 303
    assert page.calls.responses(task) == ACCEPTED


@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_a_base64_form_is_read(source: str) -> None:
    page = Page(source)
    token, task = page.ask_size()
    received: list[Any] = []
    handler = page.handler
    page.handler = lambda event, context: (received.append(event), handler(event, context))[1]
    body = page.answered(token)
    page.post(body)
    event = received[-1]
    assert event["isBase64Encoded"] is True
    assert event["body"] == b64encode(body.encode()).decode()
    assert page.calls.responses(task) == ACCEPTED
    broken = handler({**event, "body": event["body"] + "="}, None)
    assert broken["statusCode"] == 400


@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_a_query_with_a_second_token_has_none(source: str) -> None:
    page = Page(source)
    token, _ = page.ask_size()
    assert page.request("GET", f"x=%26token%3D1&token={token}")[0] == 200
    if source != "alb":  # its events have the last of several values
        assert page.request("GET", f"token={token}&token={token}")[0] == 404


def test_the_front_door_serves_the_page(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.json"
    catalog.write_text('{"tools": []}')
    page = Page()
    front_door = FrontDoor("front", catalog, title="Databases", ports=lambda: page.ports)
    page.handler = front_door.lambda_handler
    token, task = page.ask_size()
    assert page.post(page.answered(token))[0] == 303
    assert page.calls.responses(task) == ACCEPTED


def test_without_a_table_there_is_no_page() -> None:
    ports = make_ports()
    page = Page()
    page.handler = Server("databases", ports=lambda: ports).lambda_handler
    assert page.request("GET", "token=x")[0] == 405


@pytest.mark.parametrize(
    ("audience", "path", "is_page"),
    [
        ("https://mcp.test/mcp", "/mcp/questions", True),
        ("https://mcp.test/mcp/", "/mcp/questions", True),
        ("https://mcp.test", "/questions", True),
        ("https://api.test/prod/mcp", "/mcp/questions", True),  # a REST API leaves out its stage
        ("https://api.test/base/mcp", "/base/mcp/questions", True),
        ("https://mcp.test/mcp", "/other/questions", False),
        ("https://mcp.test/mcp", "/mcp/mcp/questions", False),
        ("https://mcp.test/mcp", "questions", False),
        ("urn:mcp:test", "/questions", False),
    ],
)
def test_the_page_is_below_the_audience(audience: str, path: str, is_page: bool) -> None:
    assert is_question_page(HttpRequest("GET", {}, "", path=path), audience) is is_page


def test_other_paths_are_no_pages(page: Page) -> None:
    token, _ = page.ask_size()
    event = http_event(call("missing"))
    for path in ("/mcp", "/other/questions", "/mcp/questions/", "/tools/x/questions", "mcp/questions"):
        context = {**event["requestContext"], "http": {**event["requestContext"]["http"], "method": "GET"}}
        got = page.handler(
            {**event, "rawPath": path, "rawQueryString": f"token={token}", "requestContext": context}, None
        )
        assert got["statusCode"] == 405
