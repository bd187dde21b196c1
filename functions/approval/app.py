"""Have an expense approved: in the client, if it has a way of its own, and otherwise on a web page.

A client's own way is the extension `com.example/approval`, a request outside the specification. Every other
client opens a page whose link is good for the caller alone. Ephemeral either way.
"""

import os
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from approvals import Approvals
from mcp_roundtrip import Context, Server, ToolError

server = Server("approval", namespaced_requests=True)

APPROVAL = "com.example/approval"

Amount = Annotated[int, Field(ge=1, le=1_000_000)]


class Decision(BaseModel):
    approved: bool
    reference: str = Field(description="What the request is known by")
    decided: Literal["in the client", "on the page"]


@server.tool
def approve_expense(ctx: Context, purpose: str, amount_eur: Amount) -> Decision:
    """Have an expense approved by the person in charge.

    Args:
        purpose: What the money is for.
        amount_eur: How much it is, in whole euros.
    """
    if not purpose.strip():
        raise ToolError("Say what the money is for: nobody approves an expense without a purpose.")
    reference = ctx.idempotency_key("approval")
    if ctx.supports(f"extensions.{APPROVAL}"):
        approved = in_the_client(ctx, reference, purpose, amount_eur)
        return Decision(approved=approved, reference=reference, decided="in the client")
    approved = on_the_page(ctx, reference, f"Approve €{amount_eur:,} for {purpose}")
    return Decision(approved=approved, reference=reference, decided="on the page")


def in_the_client(ctx: Context, reference: str, purpose: str, amount_eur: int) -> bool:
    """Ask through the extension, whose answer is `{"approved": true}` or `{"approved": false}`."""
    params = {"reference": reference, "purpose": purpose, "amountEur": amount_eur}
    approved = ctx.request("approval", APPROVAL, params).get("approved")
    if not isinstance(approved, bool):
        raise ToolError(f"The client answered {APPROVAL} without saying whether it is approved.")
    return approved


def on_the_page(ctx: Context, reference: str, message: str) -> bool:
    """Send the user to the page, until it has a decision."""
    if ctx.principal is None:
        raise ToolError("Only a caller who has signed in can have an expense approved on the page.")
    approvals = Approvals.configured(os.environ)
    link = ctx.signed_link("link", approvals.page(reference))
    ctx.elicit_url("page", message, link, done=lambda: approvals.decision(reference) is not None)
    return bool(ctx.step("decision", approvals.decision, reference))


handler = server.lambda_handler
