"""Have an expense approved on a web page, by a link that is good for the caller alone.

The decision is the approval system's. A client can neither make nor change it, whatever it declares.
"""

import os
from typing import Annotated

from pydantic import BaseModel, Field

from approvals import Approvals
from mcp_roundtrip import Context, Server, ToolError

server = Server("approval")

Amount = Annotated[int, Field(ge=1, le=1_000_000)]


class Decision(BaseModel):
    approved: bool
    reference: str = Field(description="What the request is known by")


@server.tool
def approve_expense(ctx: Context, purpose: str, amount_eur: Amount) -> Decision:
    """Have an expense approved by the person in charge.

    Args:
        purpose: What the money is for.
        amount_eur: How much it is, in whole euros.
    """
    if not purpose.strip():
        raise ToolError("Say what the money is for: an expense without a purpose is not approved.")
    if ctx.principal is None:
        raise ToolError("Only a caller who has signed in can have an expense approved: sign in first.")
    approvals = Approvals.configured(os.environ)
    # A decision that is made after the client gave up belongs to the next equal call, and to one call only.
    reference, call = ctx.reference("approval"), ctx.idempotency_key("decision")
    link = ctx.signed_link("link", approvals.page(reference))
    message = f"Approve €{amount_eur:,} for {purpose}"
    ctx.elicit_url("page", message, link, done=lambda: approvals.is_decided(reference, call))
    approved = ctx.step("decision", approvals.take, reference, call)
    return Decision(approved=approved, reference=reference)


handler = server.lambda_handler
