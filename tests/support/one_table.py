"""What processes do in one table at once (`processes.run_at_once`)."""

from __future__ import annotations

import os
from pathlib import Path

from mcp_roundtrip import Context, Server
from mcp_roundtrip.aws.dynamodb import DynamoStore
from support.deployment import Deployment
from support.dynamodb_clients import client


def order(endpoint: str, table: str, effects: Path, number: int) -> str:
    """Call a tool that asks, and then orders once; return the text of the result.

    The step of the call appends a line to the file `effects`.
    """
    server = Server("processes")

    def append() -> str:
        with effects.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return "ordered"

    @server.tool
    def order(ctx: Context) -> str:
        """Ask, and order once."""
        ctx.elicit("sure", "Order?", bool)
        return ctx.step("order", append)

    store = DynamoStore(client(endpoint), table)
    return Deployment(server, capabilities={}, store=store, stands_still=True).text("order")
