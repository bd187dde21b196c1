"""Provision a database: two questions while the client waits, then a task that asks before it costs money.

To a client without tasks the call is an ordinary one, which asks all three questions round by round. The
price list is a resource.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from cloud import PRICES, Database, activate, create, delete
from mcp_roundtrip import Context, ElicitationCancelled, ElicitationDeclined, Server, one_of

server = Server("provision")

TTL_MS = 3_600_000

PRICES_TTL_MS = 3_600_000
"""How long clients may keep the price list."""


class Provisioned(BaseModel):
    id: str
    name: str
    size: str
    region: str
    price: str
    host: str | None = Field(description="Where to connect; null if the user did not keep the database")


@server.tool(task="optional", annotations={"destructiveHint": False})
def provision_database(
    ctx: Context, name: Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,39}$")]
) -> Provisioned:
    """Provision a database. Asks for its size and region, and whether to keep it at its price.

    Args:
        name: What to call it: lower-case letters, digits and hyphens.
    """
    size = ctx.elicit("size", f"How large is {name} to be?", one_of(PRICES))
    region = ctx.elicit(
        "region", f"Where is {name} to be? Size {size} is offered here:", one_of(PRICES[size])
    )
    ctx.run_as_task(ttl_ms=TTL_MS)
    database = ctx.step("create", create, name, size, region, ctx.idempotency_key("create"))
    if is_kept(ctx, database):
        host = ctx.step("activate", activate, database)
    else:
        ctx.step("delete", delete, database)
        host = None
    return Provisioned(id=database.id, name=name, size=size, region=region, price=database.price, host=host)


def is_kept(ctx: Context, database: Database) -> bool:
    """Whether the user wants to pay for it. Who does not answer does not."""
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
    """What a database costs, by size and region; a size is offered in the regions it has a price for."""
    return {"unit": "US cents a month", "prices": PRICES}


handler = server.lambda_handler
worker = server.worker_handler
