"""Recognize requests that came through a proxy, such as a tunnel from the internet."""

from __future__ import annotations

from typing import Final

from mcp_roundtrip_tools.run.http.messages import Request

_OF_PROXIES: Final = frozenset(
    {"forwarded", "via", "x-real-ip", "x-original-host", "cf-connecting-ip", "cf-ray", "true-client-ip"}
)
"""Headers that proxies add: RFC 7239, RFC 9110 §7.6.3, and those of tunnels."""


def came_through_proxy(request: Request) -> str | None:
    """Return the header that a proxy has added, such as a tunnel from the internet; None if there is none."""
    names = (name for name, _ in request.headers)
    return next((n for n in names if n.lower() in _OF_PROXIES or n.lower().startswith("x-forwarded-")), None)
