"""Refuse requests that web pages cause: every page in a browser can send requests to 127.0.0.1.

A page of another origin can send CORS-safelisted requests (Fetch standard) without a preflight. They carry
Origin or Sec-Fetch-Site, which a page cannot remove. With a host name that resolves to 127.0.0.1 (DNS
rebinding), a page can send any request. Those carry that name in Host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response

LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""The host names of this computer in URLs that no name service resolves."""


def refuse_wrong_host(request: Request, port: int, names: Collection[str] = LOCAL_NAMES) -> Response | None:
    """Return 421 for a request whose Host is not one of the names and `port` (RFC 9110 §15.5.20)."""
    host = request.header("host")
    if host is None and request.protocol == "HTTP/1.0":  # no browser sends it
        return None
    if host is not None and host.lower() in _authorities(port, names):
        return None
    return _refusal(421, f"Host must be one of {', '.join(f'{name}:{port}' for name in LOCAL_NAMES)}")


def refuse_web_page(request: Request) -> Response | None:
    """Return 403 for every request that a web page causes, of any origin."""
    if request.header("origin") is None and request.header("sec-fetch-site") is None:
        return None
    return _refusal(
        403, "web pages may not call this endpoint: send the request without Origin and Sec-Fetch-Site"
    )


def refuse_cross_origin(request: Request, allows: Callable[[str], bool]) -> Response | None:
    """Return 403 for a request from a page of another origin, unless `allows` accepts the origin.

    Navigation (a link that a person follows) is not refused, and neither is a form that a page of this server
    posts under the referrer policy `no-referrer`, which has the origin "null" (Fetch standard).
    """
    origin = request.header("origin")
    site, mode = request.header("sec-fetch-site"), request.header("sec-fetch-mode")
    own = f"http://{(request.header('host') or '').lower()}"
    is_own_form = origin == "null" and site == "same-origin"
    if origin is not None and origin != own and not is_own_form and not allows(origin):
        return _refusal(403, "pages of this origin may not call the API: add the origin to AllowedOrigins")
    if origin is None and site not in (None, "same-origin", "none") and mode != "navigate":
        return _refusal(403, "pages of other origins may not load this resource: open it in its own window")
    return None


def _authorities(port: int, names: Collection[str]) -> set[str]:
    # Browsers omit the default port.
    return {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())


def _refusal(status: int, message: str) -> Response:
    return json_response(status, {"message": message})
