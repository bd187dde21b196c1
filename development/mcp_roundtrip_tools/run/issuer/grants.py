"""Clients (RFC 7591), what they ask for (RFC 6749 §4.1.1, RFC 7636, RFC 8707), and what users have granted.

The id of a client contains its metadata, outlives the run, and is not signed: everyone may register. PKCE
protects codes.
"""

import hashlib
import json
import re
import secrets
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlencode, urlsplit

from mcp_roundtrip.auth.bearer import canonical_uri
from mcp_roundtrip.protocol.strict_json import parse_json
from mcp_roundtrip_tools.client.http import LOOPBACK
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer, OAuthError, parse_scopes

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


MAX_GRANTS: Final = 10_000  # every page can open the sign-in page, which adds one

_OF_OPENID: Final = frozenset({"openid", "profile", "email", "offline_access"})
"""Scopes that concern an issuer itself. They are never in an access token."""

_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Grant:
    """A valid request of a client, with a PKCE `challenge` (S256); with a `user`, what that one granted."""

    client: Client
    redirect_uri: str
    scopes: frozenset[str]
    challenge: str
    state: str | None
    user: str = ""

    def check_verifier(self, verifier: str) -> None:
        """Raise OAuthError unless the verifier is that of the challenge (RFC 7636 §4.6)."""
        if not _VERIFIER.fullmatch(verifier):
            raise OAuthError("invalid_grant", "code_verifier has 43 to 128 characters (RFC 7636)")
        digest = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
        if not secrets.compare_digest(digest, self.challenge.encode()):
            raise OAuthError("invalid_grant", "code_verifier does not match code_challenge")


class OneTimeGrants:
    """Grants by a secret that a client redeems once. The oldest are dropped."""

    def __init__(self, lifetime_s: float) -> None:
        self._lifetime_s = lifetime_s
        self._lock = threading.Lock()
        self._grants: OrderedDict[str, tuple[Grant, float]] = OrderedDict()

    def add(self, grant: Grant) -> str:
        """Return the secret of a grant."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._grants[secret] = (grant, time.monotonic() + self._lifetime_s)
            if len(self._grants) > MAX_GRANTS:
                self._grants.popitem(last=False)
        return secret

    def redeem(self, secret: str) -> Grant:
        """Return the grant, and forget it. Raises OAuthError."""
        with self._lock:
            found = self._grants.pop(secret, None)
        if found is None or found[1] < time.monotonic():
            raise OAuthError("invalid_grant", "it is unknown, expired, or was used before: sign in again")
        return found[0]


class RedirectedError(Exception):
    """A request is refused; its client learns it at `location`.

    `is_local`: the client is on this computer. Every page can register a client and send the user here, so
    only a user's decision leads to other places (RFC 9700 §4.11.2).
    """

    def __init__(self, location: str, cause: OAuthError) -> None:
        super().__init__(location)
        self.location = location
        self.cause = cause
        self.is_local = is_loopback(urlsplit(location))


def read_request(given: Mapping[str, str], issuer: LocalIssuer) -> Grant:
    """Return the request. Raises OAuthError, and RedirectedError once a redirect URI may receive it."""
    client = find_client(given.get("client_id", ""))
    redirect_uri = given.get("redirect_uri") or client.redirect_uris[0]
    if not client.allows(redirect_uri) or ("redirect_uri" not in given and len(client.redirect_uris) > 1):
        raise OAuthError("invalid_request", "the client did not register this redirect_uri")
    try:
        _check(given, issuer)
        scopes = parse_scopes(given.get("scope", ""))
    except OAuthError as error:
        refusal = {"error": error.code, "error_description": error.description}
        location = redirect(redirect_uri, issuer.url, given.get("state"), **refusal)
        raise RedirectedError(location, error) from None
    return Grant(client, redirect_uri, scopes - _OF_OPENID, given["code_challenge"], given.get("state"))


def _check(given: Mapping[str, str], issuer: LocalIssuer) -> None:
    if given.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code")
    challenge = given.get("code_challenge", "")
    if given.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
        raise OAuthError("invalid_request", "PKCE is required: code_challenge, with the method S256")
    check_resource(given, issuer)


def check_resource(given: Mapping[str, str], issuer: LocalIssuer) -> None:
    """Raise OAuthError if tokens are requested for another resource (RFC 8707 §2)."""
    resource = given.get("resource", issuer.resource)
    if canonical_uri(resource).rstrip("/") != canonical_uri(issuer.resource).rstrip("/"):
        raise OAuthError("invalid_target", f"tokens of this issuer are for {issuer.resource} only")


def redirect(redirect_uri: str, issuer: str, state: str | None, **members: str) -> str:
    """Return the URL of the client with the response. `iss` tells it who answers (RFC 9207)."""
    given = {**members, **({} if state is None else {"state": state}), "iss": issuer}
    return f"{redirect_uri}{'&' if urlsplit(redirect_uri).query else '?'}{urlencode(given)}"
