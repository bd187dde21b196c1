"""The approval page: shows a request, and lets the approver decide it.

Only the approver's e-mail has the link's token. Opening the link changes nothing, because mail scanners open
links; the form posts the token. The page has no scripts.
"""

import re
from base64 import b64decode, b64encode
from hashlib import sha256
from hmac import compare_digest
from html import escape
from typing import Any
from urllib.parse import parse_qsl

import approvals
from approvals import APPROVED, PENDING, REJECTED, Request, digest

STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .5rem 1.5rem }
dt { color: #57606a } dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap }
button { font: inherit; padding: .5rem 1.25rem; margin-right: .5rem; border: 1px solid; border-radius: .4rem }
.approve { background: #1a7f37; color: #fff } .reject { background: #fff; color: #a40e26 }
"""

HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "same-origin",  # with no-referrer, browsers post the form with `Origin: null`
    "x-content-type-options": "nosniff",
}

REFERENCE = re.compile("[0-9a-f]{32}")

STATUS = {PENDING: "Waiting for the approver", APPROVED: "Approved", REJECTED: "Rejected"}


def respond(event: dict[str, Any]) -> dict[str, Any]:
    """Answer a request of the HTTP API (payload format 2.0) for the page of one request for approval."""
    reference = event["pathParameters"]["reference"]
    event["rawQueryString"] = ""  # instrumentation of the handler would write the token into a span
    if not REFERENCE.fullmatch(reference):
        return show(None, "")
    match event["requestContext"]["http"]["method"]:
        case "GET" | "HEAD":
            token = (event.get("queryStringParameters") or {}).get("token", "")
            return show(approvals.find(reference), token)
        case "POST":
            return take_decision(reference, form(event))
    return html(405, "Method not allowed", "<p>This page answers GET and POST.</p>", allow="GET, POST")


def show(request: Request | None, token: str) -> dict[str, Any]:
    """Return the page of a request, with the form for the approver while it is pending."""
    if request is None or request.status not in STATUS or request.is_expired:
        return html(404, "Not found", "<p>There is no such request, or it has expired.</p>")
    rows = {
        "Purpose": request.expense.purpose,
        "Amount": f"€{request.expense.amount_eur:,}",
        "Requested by": request.expense.requester or "an anonymous caller",
        "Approver": request.approver,
        "Status": STATUS[request.status],
    }
    details = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in rows.items())
    may_decide = request.status == PENDING and compare_digest(digest(token), request.token_digest)
    return html(200, "Expense approval", f"<dl>{details}</dl>{decision_form(token) if may_decide else ''}")


def decision_form(token: str) -> str:
    return (
        f'<form method="post" action="?"><input type="hidden" name="token" value="{escape(token)}">'
        '<button class="approve" name="decision" value="approve">Approve</button>'
        '<button class="reject" name="decision" value="reject">Reject</button></form>'
    )


def take_decision(reference: str, fields: dict[str, str]) -> dict[str, Any]:
    """Record the decision, and redirect to the page, so that reloading it does not post again."""
    decision = fields.get("decision")
    if decision not in ("approve", "reject"):
        return html(400, "Bad request", "<p>Choose Approve or Reject.</p>")
    if not approvals.decide(reference, fields.get("token", ""), approved=decision == "approve"):
        return html(403, "Not allowed", "<p>The link is not valid, or the request has been decided.</p>")
    return {"statusCode": 303, "headers": {**HEADERS, "location": approvals.page_url(reference)}, "body": ""}


def form(event: dict[str, Any]) -> dict[str, str]:
    """Return the fields of an application/x-www-form-urlencoded body, none if it has more than a form's."""
    body = event.get("body") or ""
    text = b64decode(body).decode("utf-8", "replace") if event.get("isBase64Encoded") else body
    try:
        return dict(parse_qsl(text, max_num_fields=2))
    except ValueError:
        return {}


def html(status: int, title: str, content: str, **headers: str) -> dict[str, Any]:
    """Return an HTML page as a response of payload format 2.0."""
    body = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{title}</h1>{content}</main></body></html>"
    )
    return {"statusCode": status, "headers": {**HEADERS, **headers}, "body": body}
