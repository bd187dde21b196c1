"""The example with a page to visit, for a client that only knows -32042."""

from __future__ import annotations

import pytest

from mcp_roundtrip_testing import load_module
from support.approval import APP, Approval
from support.legacy_client import LegacyClient

pytest_plugins = ["support.approval"]

ARGUMENTS = {"purpose": "A week in the library", "amount_eur": 1250}
EXPENSE = {"name": "request_approval", "arguments": ARGUMENTS}


@pytest.mark.parametrize(("decision", "approved"), [("approve", True), ("reject", False)])
def test_the_same_request_completes_after_the_decision(
    approval: Approval, decision: str, approved: bool
) -> None:
    client = LegacyClient.of(load_module(APP).server, "alice")
    pages = set()
    for _ in range(2):
        [asked] = client.error("tools/call", **EXPENSE)["data"]["elicitations"]
        pages.add(asked["url"])
    assert len(pages) == len(approval.mailbox.emails) == 1
    approval.decide(approval.mailbox.link(), decision)
    assert client.result("tools/call", **EXPENSE)["structuredContent"]["approved"] is approved
    assert client.error("tools/call", **EXPENSE)["code"] == -32042, "a decision applies to one call"
    other = {**EXPENSE, "arguments": {**ARGUMENTS, "amount_eur": 9}}
    assert client.error("tools/call", **other)["code"] == -32042
