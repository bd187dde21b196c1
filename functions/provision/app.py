"""Provision a database: ask for what is missing, then become a task, and ask before the database costs money.

To a client without tasks the call is an ordinary one, which asks all questions in rounds.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field

import databases
from databases import Database, Unavailable
from mcp_roundtrip import (
    Context,
    ElicitationCancelled,
    ElicitationDeclined,
    McpHeader,
    Retry,
    Server,
    one_of,
)

server = Server("provision")

RETRY = Retry(attempts=5, delay_ms=500, on=(Unavailable,))
TTL_MS = 3_600_000
PRICES_TTL_MS = 3_600_000

Name = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,39}$")]
Region = Annotated[str, McpHeader("Region")]
"""Clients also send it as the header Mcp-Param-Region, by which a gateway can route or count calls."""


class Provisioned(BaseModel):
    id: str
    name: str
    size: str
    region: str
    price: str
    host: str | None = Field(description="The host to connect to; null if the user did not keep the database")


@server.tool(task="optional", annotations={"destructiveHint": False})
def provision_database(ctx: Context, name: Name, region: Region = "") -> Provisioned:
    """Provision a database. Asks for its size, for its region, and whether to keep it at its price.

    Args:
        name: The name of the database: lower-case letters, digits and hyphens.
        region: An AWS Region such as eu-west-1; if it is left out, the user is asked.
    """
    prices = ctx.step("prices", databases.prices)  # the list may change while the call waits
    size = ctx.elicit("size", f"Which size should {name} have?", one_of(prices))
    if region not in prices[size]:
        question = f"In which region should {name} be? Not every region has size {size}."
        region = ctx.elicit("region", question, one_of(prices[size]))
    ctx.run_as_task(ttl_ms=TTL_MS)
    ctx.progress(0, 2, f"Creating {name}")
    key = ctx.idempotency_key("create")
    database: Database = ctx.step("create", databases.create, name, size, region, key, retry=RETRY)
    host: str | None = None
    if is_kept(ctx, database):
        ctx.progress(1, 2, f"Activating {name}")
        host = ctx.step("activate", databases.activate, database, retry=RETRY)
    else:
        ctx.progress(1, 2, f"Deleting {name}")
        ctx.step("delete", databases.delete, database, retry=RETRY)
    return Provisioned(id=database.id, name=name, size=size, region=region, price=database.price, host=host)


def is_kept(ctx: Context, database: Database) -> bool:
    """Ask whether the user wants to pay for the database. A refusal to answer means no."""
    question = f"{database.name} ({database.size}, {database.region}) costs {database.price}. Keep it?"
    try:
        return ctx.elicit("keep", question, bool)
    except (ElicitationDeclined, ElicitationCancelled):
        return False


@server.resource(
    "provision://prices",
    title="Price list",
    mime_type="application/json",
    ttl_ms=PRICES_TTL_MS,
    cache_scope="public",
)
def prices() -> dict[str, Any]:
    """The price of a database by size and region. A size is available in the regions that have a price."""
    return {"unit": "US cents a month", "prices": databases.prices()}


handler = server.lambda_handler
worker = server.worker_handler
