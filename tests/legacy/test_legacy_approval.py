"""The example with a page to visit, for a client that only knows -32042."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_testing import load_module
from support.approval_system import ApprovalSystem
from support.legacy_client import LegacyClient
from support.project import FUNCTIONS

ARGUMENTS = {"purpose": "A week in the library", "amount_eur": 1250}
EXPENSE = {"name": "approve_expense", "arguments": ARGUMENTS}
ALICE = {"jwt": {"claims": {"iss": "https://id", "sub": "alice"}}}


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApprovalSystem]:
    system = ApprovalSystem()
    server = HttpServer(system, max_body=0).start()
    monkeypatch.setenv("APPROVALS_URL", f"{server.url}/requests/")
    yield system
    server.close()


@pytest.mark.parametrize("approved", [True, False])
def test_the_same_request_resumes_once_there_is_a_decision(system: ApprovalSystem, approved: bool) -> None:
    client = LegacyClient.of(load_module(FUNCTIONS / "approval/app.py").server, "alice")
    for _ in range(2):
        [asked] = client.error("tools/call", **EXPENSE)["data"]["elicitations"]
        url = urlsplit(asked["url"])
    [token] = parse_qs(url.query)["mcp_link"]
    principal = client.ports.config.authenticator.caller({}, ALICE).principal
    assert client.ports.links().open(caller_binding(principal), token)
    system.decisions[url.path.rpartition("/")[2]] = approved
    decision = client.result("tools/call", **EXPENSE)["structuredContent"]
    assert decision["approved"] is approved
    assert client.error("tools/call", **EXPENSE)["code"] == -32042, "a decision counts for one call"
    other = {**EXPENSE, "arguments": {**ARGUMENTS, "amount_eur": 9}}
    assert client.error("tools/call", **other)["code"] == -32042
