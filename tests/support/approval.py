"""functions/approval in the process of the test, with its table, its page and the approvers' mailbox.

A pytest plugin: the fixture `approval` configures the function through the environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from mcp_roundtrip_testing import load_module
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.aws_clients import FUNCTION
from support.dynamodb_clients import new_table
from support.mailbox import APPROVERS, Mailbox, token_in
from support.project import FUNCTIONS

pytest_plugins = ["support.ministack"]

APP = FUNCTIONS / "approval/app.py"
PAGES = "https://api.example/approvals"


class Approval:
    """The view of the approvers. `mailbox` has their e-mails."""

    def __init__(self) -> None:
        self.mailbox = Mailbox()
        self.handler = load_module(APP).handler

    def visit(self, url: str) -> Any:
        """Return the response to a GET request for the page."""
        return self.request("GET", url)

    def decide(self, url: str, decision: str = "approve", **more: str) -> Any:
        """Submit the form of the page behind a link, and return the response."""
        return self.request("POST", url, {"token": token_in(url), "decision": decision, **more})

    def request(self, method: str, url: str, fields: dict[str, str] | None = None) -> Any:
        """Send any request to the page, and return the response."""
        assert url.startswith(PAGES)
        parts = urlsplit(url)
        event = {
            "version": "2.0",
            "routeKey": "ANY /approvals/{reference}",
            "pathParameters": {"reference": parts.path.rpartition("/")[2]},
            "queryStringParameters": {"token": token_in(url)} if parts.query else None,
            "requestContext": {"http": {"method": method}},
            "body": None if fields is None else urlencode(fields),
            "isBase64Encoded": False,
        }
        return self.handler(event, None)


@pytest.fixture
def approval(ministack: str, ministack_dynamodb: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Approval]:
    found = Approval()
    with closing(HttpServer(found.mailbox, max_body=10_000).start()) as ses:
        for name, value in {
            "APPROVALS_URL": PAGES,
            "APPROVAL_SENDER": "approvals@example.com",
            "APPROVAL_TABLE": new_table(ministack_dynamodb),
            "APPROVERS": APPROVERS,
            "AWS_ENDPOINT_URL_DYNAMODB": ministack,
            "AWS_ENDPOINT_URL_SESV2": ses.url,
            **FUNCTION,
        }.items():
            monkeypatch.setenv(name, value)
        yield found
