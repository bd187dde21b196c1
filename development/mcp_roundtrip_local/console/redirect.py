"""Lead a person who opens the HTTP API in a browser to the console."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mcp_roundtrip_local.api_gateway.routing import has_root
from mcp_roundtrip_local.console.guard import authority, came_through_proxy
from mcp_roundtrip_local.http.messages import Request, Response
from mcp_roundtrip_local.template.model import Route

_PATHS: Final = ("/", "/console/")


def redirect_to_console(request: Request, routes: Iterable[Route], port: int) -> Response | None:
    """Return the redirect of a request for a page at `/` or `/console/`; None for every other request.

    A template with its own route for `/` keeps it. The host name stays: 127.0.0.1, localhost or [::1].
    """
    path = request.target.partition("?")[0]
    accepts = "text/html" in (request.header("accept") or "")
    if path not in _PATHS or request.method not in ("GET", "HEAD") or not accepts:
        return None
    if (path == "/" and has_root(routes)) or came_through_proxy(request):
        return None
    location = f"http://{authority(request, port)}/"
    return Response(302, (("location", location), ("cache-control", "no-store")))
