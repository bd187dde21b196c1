"""Protected resource metadata over HTTP: for everybody, browsers on every site included (RFC 9728 §3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_roundtrip.auth.protected_resource import MAX_AGE_S, ProtectedResource
from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.http import JSON_HEADERS, HttpResponse

_CORS: Final[Mapping[str, str]] = {"access-control-allow-origin": "*"}

_PREFLIGHT: Final[Mapping[str, str]] = {
    **_CORS,
    "access-control-allow-methods": "GET",
    # Clients in browsers send their MCP-Protocol-Version here, too.
    "access-control-allow-headers": "*",
    "access-control-max-age": str(MAX_AGE_S),
}


def page(method: str, metadata: ProtectedResource) -> HttpResponse | None:
    """The answer to GET, HEAD and a preflight request; None for any other method."""
    if method == "OPTIONS":
        return HttpResponse(204, headers=_PREFLIGHT)
    if method not in ("GET", "HEAD"):
        return None
    headers = {**JSON_HEADERS, **_CORS, "cache-control": f"public, max-age={MAX_AGE_S}"}
    return HttpResponse(200, compact_json(metadata.document()) if method == "GET" else "", headers)
