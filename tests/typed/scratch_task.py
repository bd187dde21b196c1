"""Count the words or the characters of a text, in a task, after asking which: an example to replace."""

from enum import StrEnum

from pydantic import BaseModel, Field

from mcp_roundtrip import Context, Server

server = Server("scratch_task")

TTL_MS = 3_600_000


class Unit(StrEnum):
    WORDS = "words"
    CHARACTERS = "characters"


class Length(BaseModel):
    length: int = Field(description="The number of words or characters")
    unit: Unit


@server.tool(task="optional", annotations={"readOnlyHint": True})
def scratch_task(ctx: Context, text: str) -> Length:
    """Count the words or the characters of a text.

    Args:
        text: The text to count in.
    """
    unit = ctx.elicit("unit", "Count words or characters?", Unit)
    ctx.run_as_task(ttl_ms=TTL_MS)
    length: int = ctx.step("count", count, text, unit)
    return Length(length=length, unit=unit)


def count(text: str, unit: Unit) -> int:
    return len(text.split() if unit is Unit.WORDS else text)


handler = server.lambda_handler
worker = server.worker_handler
