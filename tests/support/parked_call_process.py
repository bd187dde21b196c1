"""Processes that make the same parked call at once.

`parked_call_process.py <endpoint> <table> <processes> <effects>`: each process makes the call and prints the
text of its result. The step of the call appends a line to the file `effects`.
"""

import json
import os
import sys
from pathlib import Path

from msgspec.structs import replace

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.http import HttpRequest
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import TaskTable
from support.dynamodb_clients import client
from support.forks import print_line, run_in_processes
from support.messages import META, call, headers

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def make_server(effects: Path) -> Server:
    server = Server("processes")

    @server.tool
    def order(ctx: Context) -> str:
        """Ask, and order once."""
        ctx.elicit("sure", "Order?", bool)
        return ctx.step("order", append, str(effects))

    return server


def append(path: str) -> str:
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return "ordered"


def make_call(endpoint: str, table: str, effects: str) -> str:
    """Make the call, and return the text of the result."""
    clock = FakeClock()
    port = TaskTable(clock, DynamoStore(client(endpoint), table)).port
    ports = make_ports(clock=clock, auth=EventAuthenticator(AuthMode.JWT), tasks=TaskTable(clock))
    ports = replace(ports, tasks=port, pause_ms=lambda duration_ms: None)
    body = call("order", meta={**META, CAPABILITIES: {}})
    request = HttpRequest(
        "POST", headers(body), json.dumps(body), {"jwt": {"claims": {"iss": "https://id", "sub": "alice"}}}
    )
    invocation = Invocation("id", clock.monotonic_ms() + 28_000)
    response = make_server(Path(effects)).endpoint.respond(request, ports, invocation)
    return str(json.loads(response.body)["result"]["content"][0]["text"])


def main(endpoint: str, table: str, processes: str, effects: str) -> None:
    run_in_processes(int(processes), lambda _: print_line(json.dumps(make_call(endpoint, table, effects))))


if __name__ == "__main__":
    main(*sys.argv[1:])
