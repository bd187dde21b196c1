"""The mailbox of the approvers of functions/approval, and their decisions on the linked page."""

import json
import re
from urllib.parse import urlencode, urlsplit

from mcp_roundtrip_tools.run.http.messages import Request, Response
from support.sam_applications import http

APPROVERS = "grace=grace@example.com,alice=alice@example.com"


class Mailbox:
    """A stand-in for Amazon SES that stores e-mails."""

    def __init__(self) -> None:
        self.emails: list[tuple[str, str, str]] = []
        self.broken = False

    def __call__(self, request: Request) -> Response:
        if self.broken:
            return Response(400, (("x-amzn-errortype", "MessageRejected"),), b"{}")
        email = json.loads(request.body)
        content = email["Content"]["Simple"]
        [recipient] = email["Destination"]["ToAddresses"]
        self.emails.append((recipient, content["Subject"]["Data"], content["Body"]["Text"]["Data"]))
        return Response(200, (("content-type", "application/json"),), b'{"MessageId": "1"}')

    def link(self, number: int = -1) -> str:
        """Return the link in an e-mail, the last one if no number is given."""
        [found] = re.findall(r"https?://\S+", self.emails[number][2])
        return str(found)


def token_in(link: str) -> str:
    return urlsplit(link).query.removeprefix("token=")


def decide(link: str, *, approved: bool) -> None:
    """Submit the form of the linked page."""
    fields = {"token": token_in(link), "decision": "approve" if approved else "reject"}
    assert http(link.partition("?")[0], method="POST", body=urlencode(fields).encode()).status == 200
