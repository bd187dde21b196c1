"""Lead a person who opens the HTTP API, in a browser or with curl, to the console."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mcp_roundtrip_tools.console.guard import authority
from mcp_roundtrip_tools.run.api_gateway.routing import has_root, match_route
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.proxies import came_through_proxy
from mcp_roundtrip_tools.template.model import Route

_PATHS: Final = ("/", "/console/")


def redirect_to_console(request: Request, routes: Iterable[Route], port: int) -> Response | None:
    """Return the redirect of a request to read `/` or `/console/`; None for every other request.

    A template with its own route for `/` keeps it. A route for all paths answers programs, and the console is
    for browsers. The host name stays: 127.0.0.1, localhost or [::1].
    """
    path, given = request.target.partition("?")[0], tuple(routes)
    if path not in _PATHS or request.method not in ("GET", "HEAD") or came_through_proxy(request):
        return None
    if path == "/" and has_root(given):
        return None
    is_browser = "text/html" in (request.header("accept") or "")
    if not is_browser and match_route(given, request.method, path) is not None:
        return None
    location = f"http://{authority(request, port)}/"
    headers = (("location", location), ("cache-control", "no-store"), ("content-type", "text/plain"))
    return Response(302, headers, f"The console is at {location}\n".encode())
