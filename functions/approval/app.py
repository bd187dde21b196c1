"""Have an expense approved by somebody else, on a web page that this function serves.

The approver gets the link to the page by e-mail; the caller's link only shows the status of the request. A
client with the experimental extension `com.example/approval` shows the status in a view of its own. The
decision is read from the table of approvals, so a client cannot make or change it.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field

import approvals
import page
from approvals import Expense
from mcp_roundtrip import Context, Server, ToolError

server = Server("approval", namespaced_requests=True)

VIEW = "com.example/approval"

Purpose = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
Amount = Annotated[int, Field(ge=1, le=1_000_000)]


class Decision(BaseModel):
    approved: bool
    reference: str = Field(description="Identifies the request for approval")


@server.tool(requires=["elicitation.url"])
def request_approval(ctx: Context, purpose: Purpose, amount_eur: Amount) -> Decision:
    """Request approval of an expense from another person, and wait for the decision.

    Args:
        purpose: What the money is for.
        amount_eur: The amount in whole euros.
    """
    # Equal calls of a caller have the same reference, so a decision made after a call has ended is not lost.
    # The idempotency key identifies this call: each decision counts for one call.
    reference, call = ctx.reference("approval"), ctx.idempotency_key("decision")
    requester = "" if ctx.principal is None else ctx.principal.subject
    expense = Expense(purpose, amount_eur, requester)
    # Not a step: the request is created once for each reference, also by clients that keep no state.
    if not approvals.submit(reference, call, expense):
        raise ToolError("There is no approver for you: the operator of this server has to set APPROVERS.")
    message = f"{expense.summary} is waiting for approval. The page shows its status."
    url = approvals.page_url(reference)
    if ctx.supports(f"extensions.{VIEW}"):
        # The client answers when it sees the decision. The answer itself is ignored: `use` reads the table.
        ctx.request("view", VIEW, {"reference": reference, "message": message, "url": url})
    else:
        ctx.elicit_url("page", message, url, done=lambda: approvals.is_decided(reference, call))
    return Decision(approved=ctx.step("decision", approvals.use, reference, call), reference=reference)


def handler(event: Any, context: Any) -> Any:
    """Serve the approval page; all other requests are MCP."""
    if isinstance(event, dict) and str(event.get("routeKey", "")).endswith("/approvals/{reference}"):
        return page.respond(event)
    return server.lambda_handler(event, context)
