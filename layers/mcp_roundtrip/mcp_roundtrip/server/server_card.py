"""The Server Card: what a client reads before it connects, without authorization (SEP-2127, a draft).

The draft reserves `GET <endpoint>/server-card` for it. A card has the name, the address and the protocol
versions of a server. It lists no tools, because a card is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.protocol.constants import LEGACY_VERSIONS, SUPPORTED_VERSIONS
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.server.options import MAX_DESCRIPTION, ServerOptions

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
MEDIA_TYPE: Final = "application/mcp-server-card+json"

MAX_AGE_S: Final = 3_600
"""How long clients may cache a card."""

MAX_VERSION: Final = 255
"""Characters of a version: the limit of the schema."""

_METHODS: Final = ("GET", "HEAD", "OPTIONS")

# SEP-2127, "CORS Requirements". Clients in browsers send their MCP-Protocol-Version here, too.
_CORS: Final[Mapping[str, str]] = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": "Content-Type, If-None-Match, MCP-Protocol-Version",
    "access-control-expose-headers": "ETag",
}


def is_server_card(request: HttpRequest, endpoint_uri: str) -> bool:
    """Return whether a request is for the card: its path is that of `<endpoint_uri>/server-card`.

    Event sources leave a stage or a base path out of the path, so the path may begin later than the URL's.
    """
    expected = f"{urlsplit(endpoint_uri).path.rstrip('/')}/server-card"
    return request.method in _METHODS and request.path[:1] == "/" and expected.endswith(request.path)


def make_card(
    name: str, options: ServerOptions, endpoint_uri: str, *, serves_legacy: bool = True
) -> dict[str, Any]:
    """Build the card. `name` is in reverse DNS format, such as `com.example/weather`."""
    info = options.server_info
    title = info.get("title")
    versions = [*SUPPORTED_VERSIONS, *(LEGACY_VERSIONS if serves_legacy else ())]
    return {
        "$schema": SCHEMA,
        "name": name,
        "version": info["version"][:MAX_VERSION],
        "description": options.description or (title or info["name"])[:MAX_DESCRIPTION],
        **({"title": title[:MAX_DESCRIPTION]} if title else {}),
        **options.branding,
        "remotes": [
            {"type": "streamable-http", "url": endpoint_uri, "supportedProtocolVersions": versions},
        ],
    }


def card_response(request: HttpRequest, card: Mapping[str, Any]) -> HttpResponse:
    """Return the response to GET, HEAD or a preflight request, from any origin."""
    if request.method == "OPTIONS":
        return HttpResponse(204, headers={**_CORS, "access-control-max-age": str(MAX_AGE_S)})
    body = compact_json(card)
    etag = f'"{sha256(body.encode()).hexdigest()[:32]}"'
    headers = {
        **_CORS,
        "content-type": MEDIA_TYPE,
        "cache-control": f"public, max-age={MAX_AGE_S}",
        "etag": etag,
        "x-content-type-options": "nosniff",
    }
    if _matches(request.headers.get("if-none-match", ""), etag):
        return HttpResponse(304, headers=headers)
    return HttpResponse(200, body if request.method == "GET" else "", headers)


def _matches(if_none_match: str, etag: str) -> bool:
    """Return whether the client has this version already (RFC 9110 §13.1.2, weak comparison)."""
    given = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return etag in given or given == ["*"]
