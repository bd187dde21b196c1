"""Time a long list and many notifications: `lists_and_notifications.py TOOLS NOTIFICATIONS PIPE`.

The server is warm. Both are complete requests, from the API Gateway event to the response.
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
from invocations import LambdaContext
from mcp_roundtrip import Context, FrontDoor, Server
from mcp_roundtrip_tools.catalog.catalog import catalog_lists

WARM_UP_CALLS, CALLS = 20, 200


class Database(BaseModel):
    """A structured result like those of the examples."""

    id: str
    address: str = Field(description="The host that applications connect to")
    price: float = Field(description="Euros per month")


def provision(
    name: Annotated[str, Field(min_length=1, max_length=63, description="The name of the database.")],
    vcpus: Annotated[int, Field(ge=1, le=16, description="Virtual CPUs.")] = 2,
    region: Annotated[str, Field(description="The Region of its data.")] = "eu-west-1",
) -> Database:
    """Provision a database and return its address."""
    return Database(id=name, address=f"{name}.{region}", price=20.0 * vcpus)


def front_door(tools: int, folder: Path) -> FrontDoor:
    """Create a front door whose catalog has the given number of tools."""
    owner = Server("owner")
    for number in range(tools):
        owner.tool(name=f"provision_{number}")(provision)
    catalog = folder / "catalog.json"
    catalog.write_text(json.dumps(catalog_lists({"owner": owner}), indent=2))
    return FrontDoor("bench", catalog)


notifying_server = Server("bench")


@notifying_server.tool
def work(ctx: Context, items: int) -> int:
    """Send a progress notification for every item."""
    for item in range(items):
        ctx.progress(item + 1, items, f"Item {item + 1} of {items} is done")
    return items


def request_list(tools: int, folder: Path) -> Callable[[], dict[str, Any]]:
    """Return a function that requests the complete list."""
    door, event, context = front_door(tools, folder), payloads.list_request("tools/list"), LambdaContext()
    found = json.loads(door.lambda_handler(event, context)["body"])["result"]["tools"]
    assert len(found) == tools, len(found)
    return lambda: door.lambda_handler(event, context)


def call_with_notifications(notifications: int) -> Callable[[], dict[str, Any]]:
    """Return a function that calls a tool with the given number of progress notifications."""
    meta = {**payloads.META, "progressToken": "bench"}
    event, context = payloads.tool_call("work", {"items": notifications}, _meta=meta), LambdaContext()
    response = notifying_server.lambda_handler(event, context)
    assert response["headers"]["content-type"] == "text/event-stream", response
    assert response["body"].count("data: ") == notifications + 1
    return lambda: notifying_server.lambda_handler(event, context)


def measure_warm(call: Callable[[], dict[str, Any]]) -> dict[str, float]:
    """Return the median time of warm requests and the size of a response."""
    samples = []
    for _ in range(WARM_UP_CALLS + CALLS):
        started = time.perf_counter()
        response = call()
        samples.append((time.perf_counter() - started) * 1000)
    return {"ms": median(samples[WARM_UP_CALLS:]), "kib": len(response["body"]) / 1024}


def main(tools: int, notifications: int, pipe: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "list": measure_warm(request_list(tools, Path(folder))),
            "notifications": measure_warm(call_with_notifications(notifications)),
        }
    with os.fdopen(pipe, "wb") as out:
        marshal.dump(found, out)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
