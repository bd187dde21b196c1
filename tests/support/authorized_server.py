"""A server with scopes behind HTTP, configured by environment variables as a deployment is."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import httpx2
from msgspec import structs

from mcp_roundtrip import Context, Server, wiring
from mcp_roundtrip.environment import load_settings
from mcp_roundtrip_local.api_gateway.payload import to_event, to_response
from mcp_roundtrip_local.http.messages import Request, Response
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_local.template.model import Route
from mcp_roundtrip_testing.observers import RecordingObserver
from support.messages import call, headers

ROUTE = Route("ANY", "$default", "function")


class Issuer(Protocol):
    """An authorization server."""

    @property
    def issuer(self) -> str:
        """The `iss` of its tokens."""


def databases(**given: Any) -> Server:
    server = Server("databases", scopes={"db:admin": ["db:write"], "db:write": ["db:read"]}, **given)

    @server.tool(scopes=["db:read"])
    def read(ctx: Context) -> str:
        assert ctx.principal is not None
        return ctx.principal.subject

    @server.tool(scopes=["db:write", "billing"])
    def write() -> str:
        return "written"

    return server


@dataclass
class DeployedServer:
    """A server behind HTTP, configured by environment variables. `observer` has its log."""

    url: str
    observer: RecordingObserver

    def post(self, token: str | None, tool: str = "read") -> httpx2.Response:
        body = call(tool)
        given = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx2.post(self.url, content=json.dumps(body), headers={**headers(body), **given})

    @property
    def reasons(self) -> list[str]:
        """Return the logged reasons of refusals and of failures to decide."""
        assert self.observer.failures == []
        return [
            str(fields["reason"])
            for event, fields in self.observer.events
            if event == "unauthorized" or (event == "request_refused" and fields["status"] == 503)
        ]


def remapped(reply: Response) -> Response:
    """Rename the header as a REST API does ("Amazon API Gateway important notes")."""
    renamed = {"www-authenticate": "x-amzn-remapped-www-authenticate"}
    return replace(reply, headers=tuple((renamed.get(name, name), value) for name, value in reply.headers))


@contextmanager
def deployed(
    issuer: Issuer, *, mode: str = "bearer", is_rest_api: bool = False, **given: Any
) -> Iterator[DeployedServer]:
    observer = RecordingObserver()
    at: dict[str, str] = {}

    def respond(request: Request) -> Response:
        event = to_event(request, ROUTE, {}, request_id=str(uuid.uuid4()), now=time.time())
        reply = to_response(json.dumps(server.lambda_handler(event, None)).encode())
        return remapped(reply) if is_rest_api else reply

    with closing(HttpServer(respond, max_body=1_000_000)) as listening:
        at["url"] = f"{listening.url}/mcp"
        environment = {
            "MCP_AUTH_MODE": mode,
            "MCP_AUDIENCE": at["url"],
            "MCP_TOKEN_ISSUER": issuer.issuer,
            **{f"MCP_{name.upper()}": value for name, value in given.pop("settings", {}).items()},
        }
        ports = structs.replace(wiring.make_ports(load_settings(environment)), observer=observer)
        server = databases(ports=lambda: ports, **given)
        listening.start()
        yield DeployedServer(at["url"], observer)
