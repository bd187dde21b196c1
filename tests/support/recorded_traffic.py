"""Templates served on this computer, with a record of what clients send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.run.api_gateway.gateway import MAX_BODY, Gateway
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.served_application import SIGNED_IN, serve, signed_in

ENDPOINT = "/mcp"


@dataclass(frozen=True)
class Exchange:
    """A request of a client and its response. `body` and `response` are None if they are not JSON."""

    http_method: str
    headers: dict[str, str]
    body: Any
    status: int
    response: Any

    @property
    def method(self) -> str:
        """The JSON-RPC method; for requests without one, the HTTP method."""
        return str(self.body["method"]) if self.body else self.http_method


@dataclass
class Recorded:
    """The URL of an endpoint, and the requests that it answered."""

    url: str
    exchanges: list[Exchange] = field(default_factory=list)

    def calls(self) -> list[Exchange]:
        """The requests that call tools."""
        return [exchange for exchange in self.exchanges if exchange.method == "tools/call"]

    def methods(self) -> list[str]:
        return [exchange.method for exchange in self.exchanges]


@contextmanager
def recorded(template: Path, *, user: bool = False, **parameters: str) -> Iterator[Recorded]:
    """Serve a template until the block ends, to anonymous callers or to Alice."""
    traffic = Recorded("")
    with (
        serve(template, parameters={**parameters, **(SIGNED_IN if user else {})}) as app,
        closing(Gateway(app.routes, signed_in(app) if user else app.run, app.recorder)) as gateway,
    ):

        def respond(request: Request) -> Response:
            response = gateway.respond(request)
            headers = {name.lower(): value for name, value in request.headers}
            traffic.exchanges.append(
                Exchange(request.method, headers, _json(request.body), response.status, _json(response.body))
            )
            return response

        with closing(HttpServer(respond, max_body=MAX_BODY).start()) as server:
            traffic.url = server.url + ENDPOINT
            yield traffic


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
