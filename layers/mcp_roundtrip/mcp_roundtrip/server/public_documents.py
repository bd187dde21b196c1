"""The documents of an endpoint that need no authorization: question page, Server Card, resource metadata.

The Server Card is what a client reads before it connects (SEP-2127, whose draft of discovery reserves
`GET <endpoint>/server-card` for it): the name, the address and the protocol versions of a server. It lists no
tools, because a card is public. The metadata is that of the endpoint as a protected resource (RFC 9728), and
challenges lead clients to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_roundtrip.auth.callers import InsufficientScope, Unauthorized
from mcp_roundtrip.auth.scope_hierarchy import with_prefix
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol.constants import LEGACY_VERSIONS, SUPPORTED_VERSIONS
from mcp_roundtrip.protocol.http import JSON_HEADERS, HttpRequest, HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INVALID_REQUEST
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.server.lambda_invocation import Operation
from mcp_roundtrip.server.options import MAX_DESCRIPTION, ServerOptions

CARD_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
CARD_MEDIA_TYPE: Final = "application/mcp-server-card+json"

_READ_METHODS: Final = ("GET", "HEAD", "OPTIONS")

CARD_MAX_AGE_S: Final = 3_600
"""How long clients may cache a card."""

MAX_CARD_VERSION: Final = 255
"""Characters of a version: the limit of the schema."""

# SEP-2127, "CORS Requirements". Clients in browsers send their MCP-Protocol-Version here, too.
_CARD_CORS: Final[Mapping[str, str]] = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": "Content-Type, If-None-Match, MCP-Protocol-Version",
    "access-control-expose-headers": "ETag",
}

_CORS: Final[Mapping[str, str]] = {"access-control-allow-origin": "*"}

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

METADATA_MAX_AGE_S: Final = 3_600
"""How long clients may cache the resource metadata."""

_METADATA_PREFLIGHT: Final[Mapping[str, str]] = {
    **_CORS,
    "access-control-allow-methods": "GET",
    # Clients in browsers send their MCP-Protocol-Version here, too.
    "access-control-allow-headers": "*",
    "access-control-max-age": str(METADATA_MAX_AGE_S),
}


class PublicDocuments(Struct, frozen=True):
    ports: Ports
    scopes: Sequence[str]
    options: ServerOptions
    operation: Operation

    def respond(self, request: HttpRequest) -> HttpResponse | None:
        """Respond to a request for a document; return None for any other. Raises ProtocolError 404."""
        found = self._question_page(request) or self._server_card(request) or self._resource_metadata(request)
        if found is None and request.method in _READ_METHODS and _is_of_document(request.path):
            raise ProtocolError(INVALID_REQUEST, "This endpoint has no such document", http_status=404)
        return found

    def challenge(self, refusal: Unauthorized | InsufficientScope) -> dict[str, str]:
        """Return the header that leads a refused client to the metadata; none if there is no metadata."""
        metadata = self._metadata()
        if metadata is None:
            return {}
        if isinstance(refusal, InsufficientScope):
            return {"www-authenticate": metadata.challenge("insufficient_scope", refusal.scopes)}
        return {"www-authenticate": metadata.challenge(refusal.error)}

    def _question_page(self, request: HttpRequest) -> HttpResponse | None:
        if not (self.ports.settings.task_table and self._is_at(request, "questions")):
            return None
        from mcp_roundtrip.server.question_page import QuestionPage  # browsers need it

        return QuestionPage(self.ports, self._name, self.operation).respond(request)

    def _server_card(self, request: HttpRequest) -> HttpResponse | None:
        card_name = self.ports.settings.server_card
        if (
            card_name is None
            or request.method not in _READ_METHODS
            or not self._is_at(request, "server-card")
        ):
            return None
        response = _card_response(request, self._card(card_name))
        self.ports.observer.record("request_completed", outcome="server_card", status=response.status)
        return response

    def _card(self, name: str) -> dict[str, Any]:
        """Build the card. `name` is in reverse DNS format, such as `com.example/weather`."""
        options, info = self.options, self.options.server_info
        title = info.get("title")
        versions = [*SUPPORTED_VERSIONS, *(LEGACY_VERSIONS if self.options.legacy_clients else ())]
        remote = {"url": self.ports.settings.required("audience"), "supportedProtocolVersions": versions}
        return {
            "$schema": CARD_SCHEMA,
            "name": name,
            "version": info["version"][:MAX_CARD_VERSION],
            "description": options.description or self._name[:MAX_DESCRIPTION],
            **({"title": title[:MAX_DESCRIPTION]} if title else {}),
            **options.branding,
            "remotes": [{"type": "streamable-http", **remote}],
        }

    def _resource_metadata(self, request: HttpRequest) -> HttpResponse | None:
        metadata = self._metadata()
        if metadata is None or request.path not in metadata.paths:
            return None
        if request.method == "OPTIONS":
            response = HttpResponse(204, headers=_METADATA_PREFLIGHT)
        elif request.method in ("GET", "HEAD"):
            headers = {**JSON_HEADERS, **_CORS, "cache-control": f"public, max-age={METADATA_MAX_AGE_S}"}
            body = compact_json(metadata.document()) if request.method == "GET" else ""
            response = HttpResponse(200, body, headers)
        else:
            return None
        self.ports.observer.record("request_completed", outcome="metadata")
        return response

    def _is_at(self, request: HttpRequest, name: str) -> bool:
        """Return whether the path of a request is that of `<endpoint>/<name>`.

        Event sources leave a stage or a base path out of the path, so it may begin later than the URL's.
        """
        if not request.path.startswith("/") or not request.path.endswith(f"/{name}"):
            return False  # most requests do not need the audience
        parts = urlsplit(self.ports.settings.required("audience"))
        expected = f"{parts.path.rstrip('/')}/{name}"
        return parts.scheme in ("https", "http") and expected.endswith(request.path)

    @property
    def _name(self) -> str:
        info = self.options.server_info
        return str(info.get("title") or info["name"])

    def _metadata(self) -> ProtectedResource | None:
        """Return the metadata of the endpoint; None if no authorization server is known."""
        settings = self.ports.settings
        if settings.token_issuer is None:
            return None
        audience, issuer = settings.required("audience"), settings.token_issuer
        return ProtectedResource(audience, issuer, self.scopes, self._name, settings.scope_prefix)


def _is_of_document(path: str) -> bool:
    """Return whether documents have such paths. An endpoint there has no other answer to GET, either."""
    return path.startswith("/.well-known/") or path.endswith(("/server-card", "/questions"))


def _card_response(request: HttpRequest, card: Mapping[str, Any]) -> HttpResponse:
    """Return the response to GET, HEAD or a preflight request, from any origin."""
    if request.method == "OPTIONS":
        return HttpResponse(204, headers={**_CARD_CORS, "access-control-max-age": str(CARD_MAX_AGE_S)})
    body = compact_json(card)
    etag = f'"{sha256(body.encode()).hexdigest()[:32]}"'
    headers = {
        **_CARD_CORS,
        "content-type": CARD_MEDIA_TYPE,
        "cache-control": f"public, max-age={CARD_MAX_AGE_S}",
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


# -- resource metadata --------------------------------------------------------------------------------------


class ProtectedResource(Struct, frozen=True):
    """The metadata of a protected resource. `resource` is its URI, `scopes` are those to request first."""

    resource: str
    authorization_server: str
    scopes: Sequence[str] = ()
    name: str | None = None
    scope_prefix: str = ""

    @property
    def url(self) -> str:
        """The URL of the document, with the well-known path before the resource's (RFC 9728 §3.1)."""
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"

    @property
    def paths(self) -> frozenset[str]:
        """Its own paths (only RFC 9728 keeps a last slash), and the root's for clients that try no other."""
        return frozenset({WELL_KNOWN, urlsplit(self.url).path, WELL_KNOWN + urlsplit(self.resource).path})

    def document(self) -> dict[str, Any]:
        """Return the document (RFC 9728 §2)."""
        scopes = with_prefix(self.scopes, self.scope_prefix)
        optional = {"scopes_supported": scopes, "resource_name": self.name}
        return {
            "resource": self.resource,
            "authorization_servers": [self.authorization_server],
            "bearer_methods_supported": ["header"],
            **{name: value for name, value in optional.items() if value},
        }

    def challenge(self, error: str | None = None, scopes: Iterable[str] | None = None) -> str:
        """Return a value for WWW-Authenticate (RFC 6750 §3, RFC 9728 §5.1). `error`: None without a token."""
        needed = self.scopes if scopes is None else scopes
        scope = " ".join(with_prefix(needed, self.scope_prefix))
        given = {"error": error, "scope": scope, "resource_metadata": self.url}
        return "Bearer " + ", ".join(f"{name}={_quoted(text)}" for name, text in given.items() if text)


def _quoted(text: str) -> str:
    """Return a quoted-string (RFC 9110 §5.6.4) without the characters that it cannot contain."""
    plain = re.sub(r"[^\x20-\x7e]", "", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
