"""What lists and notifications cost a warm server: `surface.py TOOLS NOTIFICATIONS PIPE`.

Both are whole requests: the event, the ladder, the answer as API Gateway gets it.
"""

import json
import marshal
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from pydantic import BaseModel, Field

import payloads
from mcp_roundtrip import Context, FrontDoor, Server
from mcp_roundtrip_local.catalog import contents
from probe import Context as LambdaContext

SETTLED, CALLS = 20, 200


class Database(BaseModel):
    """A result of the kind that examples have."""

    id: str
    address: str = Field(description="Where applications connect to")
    price: float = Field(description="Euros a month")


def provision(
    name: Annotated[str, Field(min_length=1, max_length=63, description="What the database is called.")],
    vcpus: Annotated[int, Field(ge=1, le=16, description="Virtual CPUs.")] = 2,
    region: Annotated[str, Field(description="Where its data lies.")] = "eu-west-1",
) -> Database:
    """Provision a database and return its address."""
    return Database(id=name, address=f"{name}.{region}", price=20.0 * vcpus)


def front_door(tools: int, folder: Path) -> FrontDoor:
    """One over a catalog of so many tools."""
    owner = Server("owner")
    for number in range(tools):
        owner.tool(name=f"provision_{number}")(provision)
    catalog = folder / "catalog.json"
    catalog.write_text(json.dumps(contents({"owner": owner}), indent=2))
    return FrontDoor("bench", catalog)


reporting = Server("bench")


@reporting.tool
def work(ctx: Context, items: int) -> int:
    """Report every item."""
    for item in range(items):
        ctx.progress(item + 1, items, f"Item {item + 1} of {items} is done")
    return items


def listing(tools: int, folder: Path) -> Callable[[], dict[str, Any]]:
    """A request for the whole list."""
    door, event, context = front_door(tools, folder), payloads.listing("tools/list"), LambdaContext()
    found = json.loads(door.lambda_handler(event, context)["body"])["result"]["tools"]
    assert len(found) == tools, len(found)
    return lambda: door.lambda_handler(event, context)


def reports(notifications: int) -> Callable[[], dict[str, Any]]:
    """A call that is answered with so many notifications before its result."""
    meta = {**payloads.META, "progressToken": "bench"}
    event, context = payloads.current("work", {"items": notifications}, _meta=meta), LambdaContext()
    answer = reporting.lambda_handler(event, context)
    assert answer["headers"]["content-type"] == "text/event-stream", answer
    assert answer["body"].count("data: ") == notifications + 1
    return lambda: reporting.lambda_handler(event, context)


def figures(call: Callable[[], dict[str, Any]]) -> dict[str, float]:
    """The median of warm requests, and how long an answer is."""
    samples = []
    for _ in range(SETTLED + CALLS):
        started = time.perf_counter()
        answer = call()
        samples.append((time.perf_counter() - started) * 1000)
    return {"ms": median(samples[SETTLED:]), "kib": len(answer["body"]) / 1024}


def main(tools: int, notifications: int, pipe: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {"list": figures(listing(tools, Path(folder))), "reports": figures(reports(notifications))}
    with os.fdopen(pipe, "wb") as out:
        marshal.dump(found, out)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
