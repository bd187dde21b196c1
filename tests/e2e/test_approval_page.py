"""The approval page in a browser without JavaScript, opened from the link in the approver's e-mail."""

import os
from pathlib import Path

from mcp_roundtrip_tools.events import call, post
from support.examples import APPROVAL
from support.mailbox import Mailbox
from support.sam_applications import http
from support.served_application import serve_for_alice

pytest_plugins = ["support.browser"]

PROGRAM = Path(__file__).parents[1] / "support/approval_page.mjs"
PURPOSE = "<b>A week</b> in the library"


def test_the_approver_decides_with_one_click(run_in_browser):
    mailbox = Mailbox()
    screenshots = os.environ.get("SCREENSHOTS", "")
    with serve_for_alice(mailbox) as served:
        for button, status, amount in (("Approve", "Approved", 1250), ("Reject", "Rejected", 1251)):
            event = post(APPROVAL, call("request_approval", {"purpose": PURPOSE, "amount_eur": amount}))
            headers = {name: value for name, value in event["headers"].items() if name != "host"}
            asked = http(
                served.url.replace("/mcp", APPROVAL),
                method="POST",
                body=event["body"].encode(),
                headers=headers,
            )
            assert asked.json()["result"]["resultType"] == "input_required"
            given = {"link": mailbox.link(), "button": button, "screenshots": screenshots}
            seen = run_in_browser(PROGRAM, given)
            for text in (PURPOSE, f"€{amount:,}", "alice", "Waiting for the approver", "Approve"):
                assert text in seen["before"]
            assert status in seen["after"]
            assert (seen["buttons"], seen["complaints"]) == (0, [])
            assert "token" not in seen["url"]
