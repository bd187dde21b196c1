"""A server with scopes behind HTTP, configured by environment variables as a deployment is."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from mcp_roundtrip import Context, Server
from mcp_roundtrip_testing.ports import RecordingObserver
from mcp_roundtrip_tools.run.api_gateway.payload import to_event, to_response
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.issuer.issuer import User
from mcp_roundtrip_tools.run.issuer.server import serve_issuer
from mcp_roundtrip_tools.template.model import Route
from mcp_roundtrip_tools.template.yaml_reader import load
from support.deployment import Deployment
from support.messages import call, headers
from support.oauth_client import WITHIN_S
from support.project import ROOT

ROUTE = Route("ANY", "$default", "function")


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
class AuthorizedServer:
    """A server behind HTTP. `observer` has its log."""

    url: str
    observer: RecordingObserver

    def post(self, token: str | None, tool: str = "read") -> httpx2.Response:
        body = call(tool)
        given = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx2.post(self.url, json=body, headers={**headers(body), **given}, timeout=WITHIN_S)

    @property
    def reasons(self) -> list[str]:
        """Return the logged reasons of refusals and of failures to decide."""
        assert self.observer.failures == []
        return [
            str(fields["reason"])
            for event, fields in self.observer.events
            if event == "unauthorized" or (event == "request_refused" and fields["status"] == 503)
        ]


def renamed(reply: Response) -> Response:
    """Rename the header of a challenge as a REST API does ("Amazon API Gateway important notes")."""
    names = {"www-authenticate": "x-amzn-remapped-www-authenticate"}
    return replace(reply, headers=tuple((names.get(name, name), value) for name, value in reply.headers))


def mapped(reply: Response) -> Response:
    """Rename it, and apply ResponseParameters of the endpoint's integration, which overwrite headers.

    Source: API Gateway developer guide, "Transform API requests and responses for HTTP APIs".
    """
    integration = load(ROOT / "platform/endpoint.yaml")["Resources"]["Integration"]["Properties"]
    mappings: Mapping[str, Any] = integration["ResponseParameters"]
    headers = dict(renamed(reply).headers)
    for each in mappings.get(str(reply.status), {}).get("ResponseParameters", ()):
        source = each["Source"].removeprefix("$response.header.")
        if source in headers:
            headers[each["Destination"].removeprefix("overwrite:header.")] = headers[source]
    return replace(reply, headers=tuple(headers.items()))


def http_api(
    invoke: Callable[[Any], Any], gateway: Callable[[Response], Response] = lambda reply: reply
) -> HttpServer:
    """Return a server that invokes a function with its requests. `gateway`: what becomes of its responses."""

    def respond(request: Request) -> Response:
        event = to_event(request, ROUTE, {}, request_id=str(uuid.uuid4()), now=time.time())
        return gateway(to_response(json.dumps(invoke(event)).encode()))

    return HttpServer(respond, max_body=1_000_000)


@contextmanager
def deployed(
    issuer: str,
    *,
    mode: str = "bearer",
    gateway: Callable[[Response], Response] = lambda reply: reply,
    settings: Mapping[str, str] | None = None,
    **given: Any,
) -> Iterator[AuthorizedServer]:
    """Serve `databases` to callers of an issuer. `gateway`: what API Gateway makes of its responses."""
    with closing(http_api(lambda event: deployment.invoke(event), gateway)) as listening:
        url = f"{listening.url}/mcp"
        values = {"auth_mode": mode, "audience": url, "token_issuer": issuer, **(settings or {})}
        environment = {f"MCP_{name.upper()}": value for name, value in values.items()}
        deployment = Deployment(databases(**given), settings=environment)
        listening.start()
        yield AuthorizedServer(url, deployment.observer)


@contextmanager
def deployed_with_sign_in(**options: Any) -> Iterator[AuthorizedServer]:
    """Serve `databases` with the issuer of `make run`, at which Alice can sign in (`oauth_client.User`)."""
    url: list[str] = []
    with serve_issuer([User("alice")], lambda: url[0]) as issuer, deployed(issuer.url, **options) as server:
        url.append(server.url)
        yield server
