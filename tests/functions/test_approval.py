from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mcp_roundtrip.auth import Authenticator, AuthMode
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.local.http_server import HttpServer
from mcp_roundtrip.local.model import Reply
from mcp_roundtrip.testing import CANCEL, DECLINE, Player
from mcp_roundtrip.testing.environment import make_ports
from support.approvals import ApprovalSystem
from support.functions import FUNCTIONS

APP = FUNCTIONS / "approval/app.py"
APPROVAL = "com.example/approval"

EXPENSE = {"purpose": "A week in the library", "amount_eur": 1250}
ALICE, BOB = ({"jwt": {"claims": {"iss": "https://id", "sub": user}}} for user in ("alice", "bob"))


@pytest.fixture
def extended() -> Player:
    return Player(APP, {"extensions": {APPROVAL: {}}}, always_replay=True)


class Browser:
    """A client that opens pages, and what the page does for its visitor."""

    def __init__(self, system: ApprovalSystem) -> None:
        self.system = system
        jwt = Authenticator(AuthMode.JWT)
        self.play = Player(APP, {"elicitation": {"url": {}}}, ALICE, ports={"auth": jwt}, always_replay=True)

    def decide(self, url: str, visitor: Any, *, approved: bool) -> None:
        ports = make_ports(key=self.play.key, clock=self.play.clock)
        [token] = parse_qs(urlsplit(url).query)["mcp_link"]
        principal = Authenticator(AuthMode.JWT).caller({}, visitor).principal
        ports.links().open(principal.canonical() if principal else None, token)
        self.system.decisions[urlsplit(url).path.rpartition("/")[2]] = approved


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    system = ApprovalSystem()
    server = HttpServer(system, max_body=0).start()
    monkeypatch.setenv("APPROVALS_URL", f"{server.url}/requests/")
    yield Browser(system)
    server.close()


@pytest.mark.parametrize("approved", [True, False])
def test_a_client_with_the_extension_is_asked_through_it(extended: Player, approved: bool) -> None:
    asked = extended.call("approve_expense", EXPENSE)
    request = asked.asked["approval"]
    assert request["method"] == APPROVAL
    assert request["params"]["amountEur"] == 1250
    decision = asked.answer(approval={"approved": approved}).structured
    assert (decision["approved"], decision["decided"]) == (approved, "in the client")
    assert decision["reference"] == request["params"]["reference"]


@pytest.mark.parametrize("answer", [{}, {"approved": "yes"}, {"approved": None}])
def test_an_answer_that_decides_nothing_is_a_tool_error(extended: Player, answer: object) -> None:
    assert extended.call("approve_expense", EXPENSE, approval=answer).failed


@pytest.mark.parametrize("approved", [True, False])
def test_any_other_client_is_sent_to_the_page_until_there_is_a_decision(
    browser: Browser, approved: bool
) -> None:
    asked = browser.play.call("approve_expense", EXPENSE)
    page = asked.asked["page"]["params"]
    assert page["mode"] == "url"
    assert "1,250" in page["message"]
    again = asked.answer(page={})
    assert again.asked["page"]["params"]["url"] == page["url"], "consent is no decision"
    browser.decide(page["url"], ALICE, approved=approved)
    decision = again.answer(page={}).structured
    assert (decision["approved"], decision["decided"]) == (approved, "on the page")


def test_the_link_is_good_for_the_caller_alone(browser: Browser) -> None:
    url = browser.play.call("approve_expense", EXPENSE).asked["page"]["params"]["url"]
    with pytest.raises(StateRejected):
        browser.decide(url, BOB, approved=True)
    assert browser.system.decisions == {}


def test_two_requests_have_two_references(browser: Browser) -> None:
    urls = [browser.play.call("approve_expense", EXPENSE).asked["page"]["params"]["url"] for _ in range(2)]
    assert len({urlsplit(url).path for url in urls}) == 2


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
def test_without_an_approval_system_nobody_is_sent_anywhere(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("APPROVALS_URL", url)
    refused = browser.play.call("approve_expense", EXPENSE)
    assert refused.failed
    assert "APPROVALS_URL" in refused.text


def test_nobody_is_sent_to_the_page_without_having_signed_in() -> None:
    assert Player(APP).call("approve_expense", EXPENSE).failed


def test_a_client_with_neither_way_is_told_what_is_missing(browser: Browser) -> None:
    refused = replace(browser.play, capabilities={}).call("approve_expense", EXPENSE)
    assert refused.error["code"] == -32021
    assert refused.error["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}}


@pytest.mark.parametrize(
    "arguments",
    [
        {"purpose": " ", "amount_eur": 1},
        {"purpose": "Books", "amount_eur": 0},
        {"purpose": "Books", "amount_eur": 1_000_001},
        {"purpose": "Books", "amount_eur": 1.5},
    ],
)
def test_an_expense_that_is_none_is_a_tool_error(extended: Player, arguments: Any) -> None:
    assert extended.call("approve_expense", arguments).failed
