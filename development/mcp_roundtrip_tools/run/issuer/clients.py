"""Clients, which register (RFC 7591).

Ids contain the metadata, outlive the run, and are not signed: everyone may register. PKCE protects codes.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from mcp_roundtrip.protocol.strict_json import parse_json
from mcp_roundtrip_tools.client.http import LOOPBACK


class OAuthError(ValueError):
    """A request is refused. `code` is of RFC 6749 §4.1.2.1 and §5.2, RFC 7591 §3.2.2 or RFC 8707 §2."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description


MAX_REDIRECT_URIS: Final = 20

_PREFIX: Final = "local-"
_SCRIPTS: Final = frozenset({"javascript", "data", "vbscript", "blob", "file", "about"})


@dataclass(frozen=True, slots=True)
class Client:
    """A public client."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]

    def allows(self, redirect_uri: str) -> bool:
        """Return whether the client registered this URI; on loopback addresses every port is the same."""
        # Parsers drop some control characters, with which another text would be the same URI.
        return _is_redirect_uri(redirect_uri) and any(
            _matches(registered, redirect_uri) for registered in self.redirect_uris
        )


def register(document: Any) -> Client:
    """Return a new client. Raises OAuthError."""
    if not isinstance(document, dict):
        raise OAuthError("invalid_client_metadata", "the body must be a JSON object")
    name, uris = _name(document), _redirect_uris(document)
    content = json.dumps([name, *uris], separators=(",", ":")).encode()
    return Client(_PREFIX + urlsafe_b64encode(content).decode().rstrip("="), name, uris)


def find_client(client_id: str) -> Client:
    """Return the client of an id. Raises OAuthError."""
    encoded = client_id.removeprefix(_PREFIX)
    try:
        name, *uris = parse_json(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
        found = register({"client_name": name, "redirect_uris": uris})
    except (ValueError, TypeError):
        found = None
    if found is None or found.id != client_id:
        raise OAuthError("invalid_client", "the client is not registered here: register it")
    return found


def is_loopback(parts: SplitResult) -> bool:
    """Return whether a URL is plain HTTP to this computer."""
    return parts.scheme == "http" and parts.hostname in LOOPBACK


def _name(document: dict[str, Any]) -> str:
    name = document.get("client_name")
    if not isinstance(name, str) or not name.strip():
        return "A client without a name"
    # Characters that reorder a text could make it say something else on the sign-in page.
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in name[:80])


def _redirect_uris(document: dict[str, Any]) -> tuple[str, ...]:
    uris = document.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= MAX_REDIRECT_URIS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris must have 1 to {MAX_REDIRECT_URIS} members")
    for uri in uris:
        if not isinstance(uri, str) or len(uri) > 500 or not _is_redirect_uri(uri):
            raise OAuthError(
                "invalid_redirect_uri", "a redirect URI is https, http to this computer, or of an application"
            )
    return tuple(uris)


def _is_redirect_uri(uri: str) -> bool:
    if not uri.isascii() or not uri.isprintable() or " " in uri or "#" in uri:
        return False
    parts = _split(uri)
    if parts is None or parts.username is not None:
        return False
    if parts.scheme == "https":
        return bool(parts.hostname)
    return is_loopback(parts) or (parts.scheme not in ("http", "", *_SCRIPTS) and bool(uri))


def _matches(registered: str, given: str) -> bool:
    if registered == given:
        return True
    one, other = _split(registered), _split(given)
    if one is None or other is None or not (is_loopback(one) and is_loopback(other)):
        return False
    # The port of a native application is known only when it asks (RFC 8252 §7.3).
    same = (one.hostname, one.path, one.query) == (other.hostname, other.path, other.query)
    return same and other.username is None and not other.fragment


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises for an invalid one
    except ValueError:
        return None
    return parts
