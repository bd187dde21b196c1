"""A server over HTTP that records what a client sends."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp_roundtrip import Context, Server
from mcp_roundtrip.http import HttpRequest
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip_local.http.messages import Request, Response
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_testing import make_ports

PREFIX = "io.modelcontextprotocol/"
LONGER_THAN_A_ROUND_MS = 60_000


@dataclass(frozen=True)
class Opening:
    """The client's description of itself in `initialize` or in the `_meta` of its first request."""

    opens_with: str
    protocol_version: str
    client_info: Mapping[str, Any]
    capabilities: Mapping[str, Any]


@dataclass
class Recorded:
    """The requests of a client."""

    url: str = ""
    bodies: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def opening(self) -> Opening:
        first = self.bodies[0]
        params = first.get("params", {})
        if first["method"] == "initialize":
            version = params["protocolVersion"]
            return Opening("initialize", version, params["clientInfo"], params["capabilities"])
        meta = params["_meta"]
        names = ("protocolVersion", "clientInfo", "clientCapabilities")
        version, info, capabilities = (meta[PREFIX + name] for name in names)
        return Opening(first["method"], version, info, capabilities)

    def calls(self, tool: str) -> int:
        """Return the number of requests that called the tool."""
        named = [body for body in self.bodies if body["method"] == "tools/call"]
        return sum(body["params"]["name"] == tool for body in named)


def make_server() -> Server:
    """Return a server with a tool that returns two states without a question, as when time runs out."""
    server = Server("recorder")

    @server.tool
    def pause(ctx: Context) -> str:
        for name in ("first", "second"):
            ctx.step(name, str, name)
            ctx.checkpoint(needs_ms=LONGER_THAN_A_ROUND_MS)
        return "resumed twice"

    @server.tool
    def hello() -> str:
        return "hello"

    return server


@contextmanager
def recording(server: Server) -> Iterator[Recorded]:
    """Serve on a free port until the block ends."""
    recorded, ports = Recorded(), make_ports()

    def respond(request: Request) -> Response:
        headers = {name.lower(): value for name, value in request.headers}
        if request.method == "POST":
            recorded.bodies.append(json.loads(request.body))
        deadline_ms = ports.clock_ms() + 29_000
        http = HttpRequest(request.method, headers, request.body)
        response = server.endpoint.respond(http, ports, Invocation("recording", deadline_ms))
        return Response(response.status, tuple(response.headers.items()), response.body.encode())

    with closing(HttpServer(respond, max_body=1 << 20).start()) as http_server:
        recorded.url = http_server.url + "/mcp"
        yield recorded
