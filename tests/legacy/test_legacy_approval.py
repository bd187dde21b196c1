"""The example with a page to visit, for a client that only knows -32042."""

import pytest

from mcp_roundtrip_testing import load_module
from support.approval import APP
from support.deployment import legacy

pytest_plugins = ["support.approval"]

EXPENSE = {"purpose": "A week in the library", "amount_eur": 1250}


@pytest.mark.parametrize(("decision", "approved"), [("approve", True), ("reject", False)])
def test_the_same_request_completes_after_the_decision(approval, decision, approved):
    client = legacy(load_module(APP).server, user="alice")
    pages = set()
    for _ in range(2):
        [asked] = client.call_error("request_approval", **EXPENSE)["data"]["elicitations"]
        pages.add(asked["url"])
    assert len(pages) == len(approval.mailbox.emails) == 1
    approval.decide(approval.mailbox.link(), decision)
    assert client.call("request_approval", **EXPENSE)["structuredContent"]["approved"] is approved
    assert client.call_error("request_approval", **EXPENSE)["code"] == -32042, (
        "a decision applies to one call"
    )
    other = {**EXPENSE, "amount_eur": 9}
    assert client.call_error("request_approval", **other)["code"] == -32042
