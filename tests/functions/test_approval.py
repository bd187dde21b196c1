import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcp_roundtrip.auth.callers import AuthMode, EventAuthenticator
from mcp_roundtrip_testing import Player, load_module
from support.approval import APP, PAGES
from support.mailbox import token_in

pytest_plugins = ["support.approval"]

EXPENSE = {"purpose": "A week in the library", "amount_eur": 1250}
ALICE, BOB, GRACE = (
    {"jwt": {"claims": {"iss": "https://id", "sub": user}}} for user in ("alice", "bob", "grace")
)


@pytest.fixture
def alice(approval):
    capabilities: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
    authenticator = EventAuthenticator(AuthMode.JWT)
    server = load_module(APP).server  # each environment would create clients of boto3
    return Player(server, capabilities, ALICE, ports={"auth": authenticator}, always_replay=True)


def page(asked: Any) -> str:
    """Return the URL that the client shows to the caller."""
    return str(asked.asked["page"]["params"]["url"])


@pytest.mark.parametrize(("decision", "approved"), [("approve", True), ("reject", False)])
def test_the_call_waits_until_the_approver_decides(approval, alice, decision, approved):
    asked = alice.call("request_approval", EXPENSE)
    assert asked.asked["page"]["params"]["mode"] == "url"
    assert f"€1,250 for {EXPENSE['purpose']}" in asked.asked["page"]["params"]["message"]
    again = asked.answer(page={})
    assert page(again) == page(asked), "consent to open the page is not a decision"
    approval.decide(approval.mailbox.link(), decision)
    done = again.answer(page={}).structured
    assert done["approved"] is approved
    assert page(asked).endswith(done["reference"])


def test_the_link_is_sent_to_an_approver_who_is_not_the_caller(approval, alice):
    sent = {}
    for name, user in {"alice": ALICE, "bob": BOB, "grace": GRACE}.items():
        replace(alice, authorizer=user).call("request_approval", EXPENSE)
        [sent[name], subject, _] = approval.mailbox.emails[-1]
        assert f"€1,250 for {EXPENSE['purpose']}" in subject
    assert sent == {
        "alice": "grace@example.com",
        "bob": "grace@example.com",
        "grace": "alice@example.com",
    }


def test_an_anonymous_caller_can_ask_and_the_client_never_gets_the_link_of_the_approver(approval, alice):
    asked = Player(APP).call("request_approval", EXPENSE)
    token = token_in(approval.mailbox.link())
    assert token not in json.dumps(asked.message)
    assert token not in json.dumps(asked.journal, default=str)
    approval.decide(approval.mailbox.link())
    assert asked.answer(page={}).structured["approved"]


@pytest.mark.parametrize("approvers", ["", "alice=alice@example.com"])
def test_callers_cannot_approve_their_own_expense(approval, alice, monkeypatch, approvers):
    monkeypatch.setenv("APPROVERS", approvers)
    assert "APPROVERS" in alice.call("request_approval", EXPENSE).text
    assert approval.mailbox.emails == []


@pytest.mark.parametrize(
    "capabilities", [{}, {"extensions": {"com.example/other": {}}}, {"elicitation": {"form": {}}}], ids=str
)
def test_declarations_and_answers_of_a_client_do_not_decide(approval, alice, capabilities):
    client = replace(alice, capabilities={**capabilities, "elicitation": {"form": {}, "url": {}}})
    answers = {"approval": {"approved": True}, "page": {"action": "accept", "content": {"approved": True}}}
    for asked in (
        client.call("request_approval", EXPENSE),
        client.send("request_approval", EXPENSE, answers, None),
    ):
        assert asked.asked.keys() == {"page"}
    sent = replace(alice, capabilities=capabilities).call("request_approval", EXPENSE)
    assert "/questions?token=" in sent.text, "its user reaches the page by a link"
    assert len(approval.mailbox.emails) == 1, "all these calls are about one expense"


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_client_with_the_extension_shows_the_request_in_its_own_view_which_decides_nothing(
    approval, alice, decision
):
    capabilities = {"elicitation": {"url": {}}, "extensions": {"com.example/approval": {}}}
    with_view = replace(alice, capabilities=capabilities)
    asked = with_view.call("request_approval", EXPENSE)
    [view] = asked.asked.values()
    assert view["method"] == "com.example/approval"
    assert view["params"]["url"] == page(alice.call("request_approval", EXPENSE))
    undecided = asked.answer(view={"approved": True})
    assert undecided.failed
    assert "no decision yet" in undecided.text
    approval.decide(approval.mailbox.link(), decision)
    decided = with_view.call("request_approval", EXPENSE).answer(view={"approved": decision != "approve"})
    assert decided.structured["approved"] is (decision == "approve")


def test_equal_calls_of_one_caller_share_a_request(approval, alice):
    equal = {page(alice.call("request_approval", EXPENSE)) for _ in range(2)}
    assert len(equal) == len(approval.mailbox.emails) == 1
    others = [
        (alice, {**EXPENSE, "amount_eur": 1251}),
        (alice, {**EXPENSE, "purpose": "A week in the pub"}),
        (replace(alice, authorizer=BOB), EXPENSE),
    ]
    assert len(equal | {page(play.call("request_approval", expense)) for play, expense in others}) == 4


def test_a_decision_after_the_end_of_a_call_applies_to_the_next_one(approval, alice):
    client = replace(alice, always_replay=False)
    asked = client.call("request_approval", EXPENSE)
    url, began = page(asked), client.clock()
    rounds = 0
    while not asked.failed:
        asked = asked.answer(page={})
        rounds += 1
    assert 240 <= client.clock() - began <= 300
    assert rounds <= 10, "no released client answers more"
    assert urlsplit(url).path in asked.text
    assert "it continues from" in asked.text
    approval.decide(approval.mailbox.link())
    assert client.call("request_approval", EXPENSE, page={}).structured["approved"]


def test_a_decision_counts_for_one_call(approval, alice):
    first, second = (alice.call("request_approval", EXPENSE) for _ in range(2))
    approval.decide(approval.mailbox.link())
    for _ in range(2):  # the response was lost, and the client repeats the round
        assert first.answer(page={}).structured["approved"]
    assert second.answer(page={}).asked.keys() == {"page"}
    assert len(approval.mailbox.emails) == 2, "the second call needs another decision"
    approval.decide(approval.mailbox.link(), "reject")
    assert second.answer(page={}).structured["approved"] is False


def test_an_email_that_failed_is_sent_by_the_next_call(approval, alice):
    play = replace(alice, always_replay=False)
    approval.mailbox.broken = True
    assert play.call("request_approval", EXPENSE).failed
    approval.mailbox.broken = False
    asked = play.call("request_approval", EXPENSE)
    assert len(approval.mailbox.emails) == 1
    approval.decide(approval.mailbox.link())
    assert asked.answer(page={}).structured["approved"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"purpose": " ", "amount_eur": 1},
        {"purpose": "x" * 501, "amount_eur": 1},
        {"purpose": "Books", "amount_eur": 0},
        {"purpose": "Books", "amount_eur": 1_000_001},
        {"purpose": "Books", "amount_eur": 1.5},
    ],
)
def test_an_expense_without_purpose_or_amount_is_a_tool_error(approval, alice, arguments):
    assert alice.call("request_approval", arguments).failed
    assert approval.mailbox.emails == []


def test_the_page_shows_the_expense_escaped(approval, alice):
    purpose = '<script>alert(1)</script> & "quotes"'
    alice.call("request_approval", {"purpose": purpose, "amount_eur": 1250})
    body = approval.visit(approval.mailbox.link())["body"]
    assert "<script" not in body
    for text in ("&lt;script&gt;", "&amp; &quot;quotes&quot;", "€1,250", "alice", "Waiting for the approver"):
        assert text in body


def test_only_the_link_in_the_email_has_the_form_whose_decision_is_final(approval, alice):
    alice.call("request_approval", {**EXPENSE, "amount_eur": 9})
    of_another = token_in(approval.mailbox.link())
    url = page(alice.call("request_approval", EXPENSE))
    link = approval.mailbox.link()
    assert "<form" in approval.visit(link)["body"]
    for other in (url, f"{url}?token=guessed", f"{url}?token=", f"{url}?token={of_another}"):
        assert "<form" not in approval.visit(other)["body"], other
        assert approval.decide(other)["statusCode"] == 403, other
    assert "<form" not in approval.visit(f"{url}?token=\ud800")["body"]
    assert "Waiting" in approval.visit(url)["body"]
    decided = approval.decide(link, "reject")
    assert (decided["statusCode"], decided["headers"]["location"]) == (303, url)
    assert approval.decide(link, "approve")["statusCode"] == 403
    body = approval.visit(link)["body"]
    assert "Rejected" in body
    assert "<form" not in body


def test_a_link_is_valid_for_a_day(approval, alice, monkeypatch):
    alice.call("request_approval", EXPENSE)
    link = approval.mailbox.link()
    monkeypatch.setattr("time.time", lambda: 4_000_000_000.0)
    assert approval.visit(link)["statusCode"] == 404
    assert approval.decide(link)["statusCode"] == 403


def test_a_foreign_form_and_an_unknown_request_are_refused(approval, alice):
    for reference in ("0" * 32, "nothing", "..%2F"):
        assert approval.visit(f"{PAGES}/{reference}")["statusCode"] == 404, reference
    alice.call("request_approval", EXPENSE)
    link = approval.mailbox.link()
    assert approval.decide(link, "perhaps")["statusCode"] == 400
    assert approval.decide(link, more="fields", than="two")["statusCode"] == 400
    refused = approval.request("DELETE", link)
    assert (refused["statusCode"], refused["headers"]["allow"]) == (405, "GET, POST")


def test_responses_of_the_page_forbid_caching_framing_and_scripts(approval, alice):
    url = page(alice.call("request_approval", EXPENSE))
    link = approval.mailbox.link()
    responses = [
        approval.visit(link),
        approval.visit(f"{PAGES}/nothing"),
        approval.decide(f"{url}?token=guessed"),
        approval.decide(link),
    ]
    assert [each["statusCode"] for each in responses] == [200, 404, 403, 303]
    for response in responses:
        headers = response["headers"]
        assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "same-origin")
        policy = headers["content-security-policy"]
        assert re.fullmatch(
            r"default-src 'none'; style-src 'sha256-[\w+/]{43}='; form-action 'self'; base-uri 'none'; "
            r"frame-ancestors 'none'",
            policy,
        )
