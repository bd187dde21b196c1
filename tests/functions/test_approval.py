from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip_local.http.messages import Reply
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_testing import CANCEL, DECLINE, Player
from mcp_roundtrip_testing.ports import make_ports
from support.approval_system import ApprovalSystem
from support.project import FUNCTIONS

APP = FUNCTIONS / "approval/app.py"

EXPENSE = {"purpose": "A week in the library", "amount_eur": 1250}
ALICE, BOB = ({"jwt": {"claims": {"iss": "https://id", "sub": user}}} for user in ("alice", "bob"))


class Browser:
    """A client that opens pages, and what the page does for its visitor."""

    def __init__(self, system: ApprovalSystem) -> None:
        self.system = system
        jwt = EventAuthenticator(AuthMode.JWT)
        self.play = Player(APP, {"elicitation": {"url": {}}}, ALICE, ports={"auth": jwt}, always_replay=True)

    def decide(self, url: str, visitor: Any, *, approved: bool) -> None:
        ports = make_ports(key=self.play.key, clock=self.play.clock)
        [token] = parse_qs(urlsplit(url).query)["mcp_link"]
        principal = EventAuthenticator(AuthMode.JWT).caller({}, visitor).principal
        ports.links().open(principal.canonical() if principal else None, token)
        self.system.decisions[urlsplit(url).path.rpartition("/")[2]] = approved


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    system = ApprovalSystem()
    server = HttpServer(system, max_body=0).start()
    monkeypatch.setenv("APPROVALS_URL", f"{server.url}/requests/")
    yield Browser(system)
    server.close()


@pytest.mark.parametrize(
    "capabilities", [{}, {"extensions": {"com.example/approval": {}}}, {"elicitation": {"form": {}}}], ids=str
)
def test_no_client_decides_by_what_it_declares_or_answers(browser: Browser, capabilities: Any) -> None:
    client = replace(browser.play, capabilities={**capabilities, "elicitation": {"form": {}, "url": {}}})
    answers = {"approval": {"approved": True}, "page": {"action": "accept", "content": {"approved": True}}}
    for asked in (
        client.call("approve_expense", EXPENSE),
        client.send("approve_expense", EXPENSE, answers, None),
    ):
        assert asked.asked.keys() == {"page"}
    refused = replace(browser.play, capabilities=capabilities).call("approve_expense", EXPENSE)
    assert refused.error["code"] == -32021
    assert refused.error["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}}


@pytest.mark.parametrize("approved", [True, False])
def test_the_user_is_sent_to_the_page_until_there_is_a_decision(browser: Browser, approved: bool) -> None:
    asked = browser.play.call("approve_expense", EXPENSE)
    page = asked.asked["page"]["params"]
    assert page["mode"] == "url"
    assert "1,250" in page["message"]
    again = asked.answer(page={})
    assert again.asked["page"]["params"]["url"] == page["url"], "consent is no decision"
    browser.decide(page["url"], ALICE, approved=approved)
    decision = again.answer(page={}).structured
    assert decision["approved"] is approved
    assert decision["reference"] in page["url"]


def test_the_link_opens_only_for_the_caller(browser: Browser) -> None:
    url = browser.play.call("approve_expense", EXPENSE).asked["page"]["params"]["url"]
    with pytest.raises(StateRejected):
        browser.decide(url, BOB, approved=True)
    assert browser.system.decisions == {}


def reference(asked: Any) -> str:
    return urlsplit(asked.asked["page"]["params"]["url"]).path.rpartition("/")[2]


def test_equal_requests_of_one_caller_have_one_reference_and_no_others_do(browser: Browser) -> None:
    equal = {reference(browser.play.call("approve_expense", EXPENSE)) for _ in range(2)}
    assert len(equal) == 1
    others = [
        (browser.play, {**EXPENSE, "amount_eur": 1251}),
        (browser.play, {**EXPENSE, "purpose": "A week in the pub"}),
        (replace(browser.play, authorizer=BOB), EXPENSE),
    ]
    assert len(equal | {reference(play.call("approve_expense", expense)) for play, expense in others}) == 4


def test_a_decision_after_the_call_was_given_up_is_found_by_the_next_one(browser: Browser) -> None:
    client = replace(browser.play, always_replay=False)
    asked = client.call("approve_expense", EXPENSE)
    url = asked.asked["page"]["params"]["url"]
    began = client.clock()
    while not asked.failed:
        asked = asked.answer(page={})
    assert 240 <= client.clock() - began <= 300
    assert sum(browser.system.looks.values()) <= client.clock() - began
    assert urlsplit(url).path in asked.text
    assert "call the tool again with the same arguments" in asked.text
    browser.decide(url, ALICE, approved=True)
    assert client.call("approve_expense", EXPENSE, page={}).structured["approved"]


def test_a_decision_counts_for_one_call(browser: Browser) -> None:
    first, second = (browser.play.call("approve_expense", EXPENSE) for _ in range(2))
    browser.decide(first.asked["page"]["params"]["url"], ALICE, approved=True)
    for _ in range(2):  # the response got lost, and the client sends the round again
        assert first.answer(page={}).structured["approved"]
    assert second.answer(page={}).asked.keys() == {"page"}
    assert browser.play.call("approve_expense", EXPENSE, page={}).asked.keys() == {"page"}


def test_a_decision_that_another_call_takes_at_the_same_time_is_a_tool_error(browser: Browser) -> None:
    asked = browser.play.call("approve_expense", EXPENSE)
    browser.decide(asked.asked["page"]["params"]["url"], ALICE, approved=True)
    browser.system.answered = lambda request: browser.system.decisions.clear()
    refused = asked.answer(page={})
    assert refused.failed
    assert "Another call" in refused.text


@pytest.mark.parametrize("refusal", [DECLINE, CANCEL])
def test_a_user_who_does_not_go_to_the_page_ends_the_call_in_a_tool_error(
    browser: Browser, refusal: Any
) -> None:
    assert browser.play.call("approve_expense", EXPENSE).answer(page=refusal).failed


@pytest.mark.parametrize(
    "broken",
    [Reply(500), Reply(200, body=b"{}"), Reply(200, body=b"[]"), Reply(200, body=b"<html>")],
    ids=str,
)
def test_an_approval_system_that_is_broken_ends_the_call_in_a_tool_error(
    browser: Browser, broken: Reply
) -> None:
    asked = browser.play.call("approve_expense", EXPENSE)
    browser.system.broken = broken
    assert asked.answer(page={}).failed


@pytest.mark.parametrize("url", ["", "http://approvals.example", "file:///etc/passwd"])
def test_without_an_approval_system_no_link_is_sent(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("APPROVALS_URL", url)
    refused = browser.play.call("approve_expense", EXPENSE)
    assert refused.failed
    assert "APPROVALS_URL" in refused.text


def test_no_caller_gets_the_page_without_having_signed_in() -> None:
    assert Player(APP).call("approve_expense", EXPENSE).failed


@pytest.mark.parametrize(
    "arguments",
    [
        {"purpose": " ", "amount_eur": 1},
        {"purpose": "Books", "amount_eur": 0},
        {"purpose": "Books", "amount_eur": 1_000_001},
        {"purpose": "Books", "amount_eur": 1.5},
    ],
)
def test_an_expense_that_is_none_is_a_tool_error(browser: Browser, arguments: Any) -> None:
    assert browser.play.call("approve_expense", arguments).failed
