"""Which requests reach the console, and the content of those to its API.

Requests that a page of another origin causes are refused, also those of a page of the template. The API
decrypts states, kills processes and invokes functions, so it is stricter than the gateway: neither
AllowedOrigins nor a missing preflight lets another origin in. The Host is checked before (see
`http.browser_protection`), so a name that resolves to 127.0.0.1 (DNS rebinding) does not get here.

A changing request also has a header and a content type that no form and no CORS-safelisted request can have
(Fetch standard, "CORS-safelisted request-header"), for browsers that send neither Origin nor Sec-Fetch-Site.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl

from mcp_roundtrip_tools.run.api_gateway.routing import has_root
from mcp_roundtrip_tools.run.http.browser_protection import came_through_proxy
from mcp_roundtrip_tools.run.http.messages import Request, Response, error_response
from mcp_roundtrip_tools.template.model import Route


class ConsoleError(Exception):
    """The API answers with this status and message. `members` are further members of the JSON document."""

    def __init__(self, status: int, message: str, **members: Any) -> None:
        super().__init__(message)
        self.status = status
        self.members = members


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request: the parameters of path and query, and the JSON object of its body, or {}."""

    parameters: Mapping[str, str]
    body: Mapping[str, Any]


def read_request(request: Request, path_parameters: Mapping[str, str]) -> ApiRequest:
    """Return a request to the API; of a repeated parameter in the query, the last. Raises ConsoleError."""
    if request.too_large:
        raise ConsoleError(413, "the body is larger than API Gateway accepts")
    query = dict(parse_qsl(request.target.partition("?")[2]))
    return ApiRequest({**query, **path_parameters}, json.loads(request.body or b"{}"))


CLIENT_HEADER: Final = "x-console"
"""The header of changing requests; its value is 1."""

_SAFE: Final = ("GET", "HEAD")

_OF_BROWSERS: Final = frozenset({CLIENT_HEADER, "host", "origin", "referer", "cookie"})


def refuse_proxies(request: Request) -> Response | None:
    """Return the refusal of a request that came through a proxy: a tunnel must not share the console."""
    header = came_through_proxy(request)
    if header is None:
        return None
    return error_response(403, f"the console is not available through a proxy or a tunnel (header {header})")


def refuse_other_sites(request: Request) -> Response | None:
    """Return the refusal of a request to the API that the console's own page did not send."""
    is_safe = request.method in _SAFE
    if _is_of_another_site(request, "same-origin", *(["none"] if is_safe else [])):
        return error_response(403, "pages of other sites may not use the console")
    if is_safe:
        return None
    if request.header(CLIENT_HEADER) != "1":
        return error_response(403, f"a request that changes something needs the header {CLIENT_HEADER}: 1")
    if (request.header("content-type") or "").partition(";")[0].strip().lower() != "application/json":
        return error_response(415, "the content type must be application/json")
    return None


def refuse_strangers(request: Request) -> Response | None:
    """Return the refusal of a request to the template's routes that the console's page did not send.

    Under the console's origin, a page of the template that the browser showed could use the console.
    """
    if request.header(CLIENT_HEADER) == "1" and not _is_of_another_site(request, "same-origin"):
        return None
    return error_response(404, "only the console is at this address: the endpoint has another port")


def _is_of_another_site(request: Request, *sites: str) -> bool:
    """Return whether a page of another origin caused a request, or one of another site than these."""
    own = f"http://{(request.header('host') or '').lower()}"
    origin, site = request.header("origin"), request.header("sec-fetch-site")
    return origin not in (None, own) or site not in (None, *sites)


def without_browser(request: Request, port: int) -> Request:
    """Return a request of the page as an MCP client, which is no browser, sends it to the API at `port`."""
    kept = tuple(
        (name, value)
        for name, value in request.headers
        if name.lower() not in _OF_BROWSERS and not name.lower().startswith("sec-")
    )
    return replace(request, headers=(("host", f"127.0.0.1:{port}"), *kept), from_console=True)


def redirect_to_console(request: Request, routes: Iterable[Route], port: int) -> Response | None:
    """Return the redirect of a browser that reads `/` or `/console/`; None for every other request.

    A template's own route for `/` stays.
    """
    path, is_browser = request.target.partition("?")[0], "text/html" in (request.header("accept") or "")
    if request.method not in ("GET", "HEAD") or not is_browser or came_through_proxy(request):
        return None
    if path != "/console/" and (path != "/" or has_root(routes)):
        return None
    location = f"http://127.0.0.1:{port}/"
    headers = (("location", location), ("cache-control", "no-store"), ("content-type", "text/plain"))
    return Response(302, headers, f"The console is at {location}\n".encode())
