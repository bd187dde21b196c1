"""The approval page in a browser without JavaScript, opened from the link in the approver's e-mail."""

import os
from pathlib import Path

import pytest

from mcp_roundtrip_tools.events import call, post
from support.examples import APPROVAL
from support.mailbox import Mailbox
from support.sam_applications import http
from support.served_application import serve_for_alice

pytest_plugins = ["support.browser"]

PROGRAM = Path(__file__).parents[1] / "support/approval_page.mjs"
PURPOSE = "<b>A week</b> in the library"


@pytest.mark.parametrize(("button", "status"), [("Approve", "Approved"), ("Reject", "Rejected")])
def test_the_approver_decides_with_one_click(run_in_browser, button, status):
    mailbox = Mailbox()
    with serve_for_alice(mailbox) as served:
        event = post(APPROVAL, call("request_approval", {"purpose": PURPOSE, "amount_eur": 1250}))
        headers = {name: value for name, value in event["headers"].items() if name != "host"}
        asked = http(
            served.url.replace("/mcp", APPROVAL), method="POST", body=event["body"].encode(), headers=headers
        )
        assert asked.json()["result"]["resultType"] == "input_required"
        screenshots = os.environ.get("SCREENSHOTS", "")
        given = {"link": mailbox.link(), "button": button, "screenshots": screenshots}
        seen = run_in_browser(PROGRAM, given)
    for text in (PURPOSE, "€1,250", "alice", "Waiting for the approver", "Approve"):
        assert text in seen["before"]
    assert status in seen["after"]
    assert (seen["buttons"], seen["complaints"]) == (0, [])
    assert "token" not in seen["url"]
