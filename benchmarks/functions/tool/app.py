"""Use a tool that asks one question."""

from pydantic import BaseModel, Field

from mcp_roundtrip import Context, Server

server = Server("bench")


class Order(BaseModel):
    """The answer."""

    count: int = Field(ge=1, le=100, description="Number of items")
    express: bool = False


@server.tool
def order(ctx: Context, item: int) -> int:
    """Order an item, and ask how many."""
    return ctx.elicit("count", f"How many of item {item}?", Order).count


handler = server.lambda_handler
