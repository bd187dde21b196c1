"""A server with scopes behind HTTP, configured by environment variables as a deployment is."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

import httpx2
from msgspec import structs

from mcp_roundtrip import Context, Server, wiring
from mcp_roundtrip.environment import load_settings
from mcp_roundtrip_local.api_gateway.payload import to_event, to_response
from mcp_roundtrip_local.http.messages import Request, Response
from mcp_roundtrip_local.http.server import HttpServer
from mcp_roundtrip_local.template.model import Route
from mcp_roundtrip_local.template.yaml_reader import load
from mcp_roundtrip_testing.observers import RecordingObserver
from support.messages import call, headers
from support.project import ROOT

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


class Gateway(Enum):
    """What API Gateway does to the challenge of a function."""

    KEEPS = "keeps it"
    RENAMES = "renames its header"
    MAPS = "renames its header, then applies the response parameters of template.yaml"


def remapped(reply: Response) -> Response:
    """Rename the header as a REST API does ("Amazon API Gateway important notes")."""
    renamed = {"www-authenticate": "x-amzn-remapped-www-authenticate"}
    return replace(reply, headers=tuple((renamed.get(name, name), value) for name, value in reply.headers))


def mapped(reply: Response, mappings: Mapping[str, Any]) -> Response:
    """Apply ResponseParameters of an integration, which overwrite headers with others of the response.

    Source: API Gateway developer guide, "Transform API requests and responses for HTTP APIs".
    """
    headers = dict(reply.headers)
    for each in mappings.get(str(reply.status), {}).get("ResponseParameters", ()):
        source = each["Source"].removeprefix("$response.header.")
        if source in headers:
            headers[each["Destination"].removeprefix("overwrite:header.")] = headers[source]
    return replace(reply, headers=tuple(headers.items()))


def response_parameters() -> Mapping[str, Any]:
    """Return the response mappings of the front door's integration."""
    integration = load(ROOT / "template.yaml")["Resources"]["FrontDoorIntegration"]["Properties"]
    found: Mapping[str, Any] = integration["ResponseParameters"]
    return found


@contextmanager
def deployed(
    issuer: Issuer, *, mode: str = "bearer", gateway: Gateway = Gateway.KEEPS, **given: Any
) -> Iterator[DeployedServer]:
    observer = RecordingObserver()
    mappings = response_parameters() if gateway is Gateway.MAPS else {}
    at: dict[str, str] = {}

    def respond(request: Request) -> Response:
        event = to_event(request, ROUTE, {}, request_id=str(uuid.uuid4()), now=time.time())
        reply = to_response(json.dumps(server.lambda_handler(event, None)).encode())
        return reply if gateway is Gateway.KEEPS else mapped(remapped(reply), mappings)

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
