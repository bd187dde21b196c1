"""The question page of a server in this process, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from mcp_roundtrip import Server
from mcp_roundtrip_local.api_gateway.gateway import MAX_BODY, Gateway
from mcp_roundtrip_local.execution.environment import InvocationResult
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_local.observation.recorder import RunRecorder
from mcp_roundtrip_local.template.model import Route
from mcp_roundtrip_testing.ports import make_ports
from support.question_links import WaitingCalls

PATH = "/mcp/questions"


@dataclass
class ServedPage:
    """Where the page is, and the calls that wait."""

    url: str
    calls: WaitingCalls

    def link(self, token: str) -> str:
        return f"{self.url}?token={token}"


@contextmanager
def served_page(title: str = "Acme databases") -> Iterator[ServedPage]:
    calls = WaitingCalls()
    ports = make_ports(clock=calls.clock, tasks=calls.table)
    server = Server("databases", title=title, ports=lambda: ports)

    def invoke(function: str, payload: bytes) -> InvocationResult:
        return InvocationResult(json.dumps(server.lambda_handler(json.loads(payload), None)).encode())

    with (
        closing(Gateway(lambda: [Route("ANY", PATH, "F")], invoke, RunRecorder())) as gateway,
        closing(HttpServer(gateway.respond, max_body=MAX_BODY).start()) as http,
    ):
        yield ServedPage(http.url + PATH, calls)
