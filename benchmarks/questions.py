"""Time a request that ends with a question, for each channel of the question: `questions.py PIPE`.

The server is warm. The table of tasks is in memory, so the figures are the function's own time.
"""

import json
import marshal
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any

import payloads
from invocations import LambdaContext
from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, UI_EXTENSION
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import TaskTable

WARM_UP_CALLS, CALLS = 20, 200

FORMS = {"elicitation": {"form": {}, "url": {}}}
VIEWS = {"extensions": {UI_EXTENSION: {}}}


@dataclass(frozen=True, slots=True)
class Asking:
    """A client that declares `capabilities`, and a member of the response that shows its channel."""

    capabilities: Mapping[str, Any]
    has_table: bool
    evidence: str


CHANNELS = {
    "client": Asking(FORMS, has_table=True, evidence="inputRequests"),
    "app": Asking(VIEWS, has_table=False, evidence="mcp-roundtrip/questions"),
    "app_parked": Asking(VIEWS, has_table=True, evidence="mcp-roundtrip/questions"),
    "page": Asking({}, has_table=True, evidence="/questions?token="),
}


def new_server(*, has_table: bool) -> Server:
    """Create a server with one tool that asks."""
    clock = FakeClock()
    table = TaskTable(clock) if has_table else None
    ports = make_ports(clock=clock, auth=EventAuthenticator(AuthMode.JWT), tasks=table)
    server = Server("bench", ports=lambda: ports)

    @server.tool
    def work(ctx: Context, items: int) -> int:
        """Ask whether to work."""
        return items if ctx.elicit("go", "Go on?", bool) else 0

    return server


def ask(asking: Asking) -> Callable[[], dict[str, Any]]:
    """Return a function that calls the tool for another caller each time, so no call continues one."""
    server, context, callers = new_server(has_table=asking.has_table), LambdaContext(), count()
    meta = {**payloads.META, META_CLIENT_CAPABILITIES: asking.capabilities}
    event = payloads.tool_call("work", {"items": 1}, _meta=meta)

    def call() -> dict[str, Any]:
        claims = {"iss": "https://id.example", "sub": f"user-{next(callers)}"}
        authorizer = {"jwt": {"claims": claims, "scopes": None}}
        request_context = {**event["requestContext"], "authorizer": authorizer}
        return server.lambda_handler({**event, "requestContext": request_context}, context)

    body = call()["body"]
    assert asking.evidence in json.dumps(json.loads(body)["result"]), body
    return call


def median_ms(call: Callable[[], object]) -> float:
    """Return the median time of a warm call."""
    samples = []
    for _ in range(WARM_UP_CALLS + CALLS):
        started = time.perf_counter()
        call()
        samples.append((time.perf_counter() - started) * 1000)
    return median(samples[WARM_UP_CALLS:])


def main(pipe: int) -> None:
    figures = {name: median_ms(ask(asking)) for name, asking in CHANNELS.items()}
    with os.fdopen(pipe, "wb") as out:
        marshal.dump(figures, out)


if __name__ == "__main__":
    main(int(sys.argv[1]))
