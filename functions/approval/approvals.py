"""Requests for approval in a DynamoDB table.

Each request is decided once, by the person whose e-mail has the link's token, and its decision is used by one
call. The table keeps a digest of the token, so that reading the table does not allow a decision.
"""

import os
import secrets
import time
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import mail
from mcp_roundtrip import ToolError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

TTL_S = 86_400

USED = "Another call has used this decision. Call the tool again to request a new one."

UNDECIDED = "There is no decision yet. Call the tool again with the same arguments later."

UNSENT, PENDING, APPROVED, REJECTED = "unsent", "pending", "approved", "rejected"


@dataclass(frozen=True, slots=True)
class Expense:
    """`requester` is the caller's subject, empty for an anonymous caller."""

    purpose: str
    amount_eur: int
    requester: str

    @property
    def summary(self) -> str:
        return f"€{self.amount_eur:,} for {' '.join(self.purpose.split())}"


@dataclass(frozen=True, slots=True)
class Request:
    """An item of the table. `used_by` is the call that has used the decision, empty if none has."""

    expense: Expense
    approver: str
    status: str
    token_digest: str
    used_by: str
    expires_at: int

    def is_open_to(self, call: str) -> bool:
        """Whether this call may wait for the decision, or has used it."""
        return self.status != UNSENT and self.used_by in ("", call) and not self.is_expired

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= time.time()  # DynamoDB deletes expired items days later


def page_url(reference: str) -> str:
    """Return the address of the page that shows a request."""
    return f"{os.environ['APPROVALS_URL']}/{reference}"


def submit(reference: str, call: str, expense: Expense) -> bool:
    """Send the expense to an approver, unless that was done before. Return False if there is no approver."""
    approver = approver_for(expense.requester)
    present = find(reference)
    if approver is None or (present is not None and present.is_open_to(call)):
        return approver is not None
    token = secrets.token_urlsafe(32)
    request = Request(expense, approver, UNSENT, digest(token), "", int(time.time()) + TTL_S)
    if write(reference, request, replacing=present):
        mail.send(approver, f"Approve {expense.summary}?", f"{page_url(reference)}?token={token}\n")
        # If the e-mail cannot be sent, the request stays unsent, and the next call sends it.
        update(reference, {"status": PENDING}, only_if={"token_digest": request.token_digest})
    return True


def approver_for(requester: str) -> str | None:
    """Return the e-mail address of the first approver who is not the requester.

    APPROVERS is a list such as `ada=ada@example.com,grace=grace@example.com`, of subjects and addresses.
    """
    pairs = (entry.strip().partition("=") for entry in os.environ.get("APPROVERS", "").split(","))
    return next((address for subject, _, address in pairs if address and subject != requester), None)


def is_decided(reference: str, call: str) -> bool:
    """Return whether there is a decision that this call may use, or has used."""
    request = find(reference)
    return request is not None and request.is_open_to(call) and request.status in (APPROVED, REJECTED)


def use(reference: str, call: str) -> bool:
    """Reserve the decision for this call and return it. Idempotent. Raises ToolError if there is none."""
    request = find(reference)
    if request is None or not request.is_open_to(call):
        raise ToolError(USED)
    if request.status == PENDING:
        raise ToolError(UNDECIDED)
    condition = {"used_by": request.used_by, "token_digest": request.token_digest}
    if not update(reference, {"used_by": call}, only_if=condition):
        raise ToolError(USED)
    return request.status == APPROVED


def decide(reference: str, token: str, *, approved: bool) -> bool:
    """Record the approver's decision. Return False for a wrong token and a request that is decided."""
    request = find(reference)
    if request is None or request.is_expired:
        return False
    condition = {"status": PENDING, "token_digest": digest(token)}
    return update(reference, {"status": APPROVED if approved else REJECTED}, only_if=condition)


def digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()  # a client chooses the token


def find(reference: str) -> Request | None:
    """Read a request."""
    item: Any = table().get_item(Key=key(reference), ConsistentRead=True).get("Item")
    if item is None:
        return None
    return Request(
        Expense(item["purpose"], int(item["amount_eur"]), item["requester"]),
        item["approver"],
        item["status"],
        item["token_digest"],
        item["used_by"],
        int(item["expires_at"]),
    )


def write(reference: str, request: Request, *, replacing: Request | None) -> bool:
    """Create the request, or replace an old one. Return False if another call did so first."""
    item = asdict(request)
    item |= item.pop("expense")
    if replacing is not None:
        return update(reference, item, only_if={"token_digest": replacing.token_digest})
    try:
        table().put_item(Item={**key(reference), **item}, ConditionExpression="attribute_not_exists(pk)")
    except table().meta.client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def update(reference: str, values: dict[str, Any], *, only_if: dict[str, str]) -> bool:
    """Set attributes on condition that others have these values. Return whether they had."""
    try:
        table().update_item(
            Key=key(reference),
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
            ConditionExpression=" AND ".join(f"#{name} = :if_{name}" for name in only_if),
            ExpressionAttributeNames={f"#{name}": name for name in (*values, *only_if)},
            ExpressionAttributeValues={
                **{f":{name}": value for name, value in values.items()},
                **{f":if_{name}": value for name, value in only_if.items()},
            },
        )
    except table().meta.client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def key(reference: str) -> dict[str, str]:
    return {"pk": reference, "sk": "request"}


@cache
def table() -> "Table":
    """Return the table that APPROVAL_TABLE names."""
    import boto3
    from botocore.config import Config  # lists need neither

    config = Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})
    return boto3.resource("dynamodb", config=config).Table(os.environ["APPROVAL_TABLE"])
