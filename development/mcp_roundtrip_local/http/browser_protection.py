"""Keeps web pages away from what listens on 127.0.0.1: every page in a browser can send requests there.

A page of another origin can send a "simple" request (Fetch standard, "CORS-safelisted") without asking, and
with a name that its owner points at 127.0.0.1 (DNS rebinding) every other, too. The first carries Origin or
Sec-Fetch-Site, which no page can leave out; the second carries the page's name as Host.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from mcp_roundtrip_local.http.messages import Reply, Request

_NAMES = ("127.0.0.1", "localhost", "[::1]")


def misdirected(request: Request, port: int) -> Reply | None:
    """421 for a request whose Host is not this computer and `port` (RFC 9110 §15.5.20)."""
    host = request.header("host")
    if host is None and request.protocol == "HTTP/1.0":  # no browser speaks it
        return None
    if host is not None and host.lower() in _authorities(port):
        return None
    return _refusal(
        421, f"Host must be 127.0.0.1:{port} or localhost:{port}: write the URL with one of these"
    )


def from_a_page(request: Request) -> Reply | None:
    """403 for every request that a web page causes, from any origin: only programs call these servers."""
    if request.header("origin") is None and request.header("sec-fetch-site") is None:
        return None
    return _refusal(403, "web pages may not call this; send no Origin and no Sec-Fetch-Site")


def from_a_foreign_page(request: Request, allows: Callable[[str], bool]) -> Reply | None:
    """403 for a request that a page of another origin causes, unless `allows` says yes to its origin.

    A link that a person follows is not refused.
    """
    origin = request.header("origin")
    own = f"http://{(request.header('host') or '').lower()}"
    if origin is not None and origin != own and not allows(origin):
        return _refusal(403, "pages of this origin may not call the API: add it to AllowedOrigins")
    site, mode = request.header("sec-fetch-site"), request.header("sec-fetch-mode")
    if origin is None and site not in (None, "same-origin", "none") and mode != "navigate":
        return _refusal(403, "pages of other origins may not load this; open it in a window of its own")
    return None


def _authorities(port: int) -> set[str]:
    # Browsers leave the default port out.
    return {f"{name}:{port}" for name in _NAMES} | (set(_NAMES) if port == 80 else set())


def _refusal(status: int, message: str) -> Reply:
    return Reply(status, (("content-type", "application/json"),), json.dumps({"message": message}).encode())
