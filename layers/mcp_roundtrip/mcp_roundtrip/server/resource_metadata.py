"""OAuth protected resource metadata of an endpoint, over HTTP and in challenges (RFC 9728)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_roundtrip.auth.callers import InsufficientScope, Unauthorized
from mcp_roundtrip.auth.protected_resource import MAX_AGE_S, ProtectedResource
from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.protocol.http import JSON_HEADERS, HttpResponse

_CORS: Final[Mapping[str, str]] = {"access-control-allow-origin": "*"}

_PREFLIGHT: Final[Mapping[str, str]] = {
    **_CORS,
    "access-control-allow-methods": "GET",
    # Clients in browsers send their MCP-Protocol-Version here, too.
    "access-control-allow-headers": "*",
    "access-control-max-age": str(MAX_AGE_S),
}


def metadata_response(method: str, metadata: ProtectedResource) -> HttpResponse | None:
    """Return the response to GET, HEAD or a preflight request, from any origin; None for other methods."""
    if method == "OPTIONS":
        return HttpResponse(204, headers=_PREFLIGHT)
    if method not in ("GET", "HEAD"):
        return None
    headers = {**JSON_HEADERS, **_CORS, "cache-control": f"public, max-age={MAX_AGE_S}"}
    return HttpResponse(200, compact_json(metadata.document()) if method == "GET" else "", headers)


def challenge_headers(
    refusal: Unauthorized | InsufficientScope, metadata: ProtectedResource
) -> dict[str, str]:
    """Return the WWW-Authenticate header that leads a refused client to the metadata."""
    if isinstance(refusal, InsufficientScope):
        return {"www-authenticate": metadata.challenge("insufficient_scope", refusal.scopes)}
    return {"www-authenticate": metadata.challenge(refusal.error)}
