"""Authorization requests (RFC 6749 §4.1.1, RFC 7636, RFC 8707, RFC 9207)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

from mcp_roundtrip_tools.run.issuer.clients import Client, find_client, is_loopback
from mcp_roundtrip_tools.run.issuer.errors import OAuthError
from mcp_roundtrip_tools.run.issuer.grants import Grant
from mcp_roundtrip_tools.run.issuer.users import parse_scopes

OPENID: Final = frozenset({"openid", "profile", "email", "offline_access"})
"""Scopes that concern the issuer itself. They are never in an access token."""

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class RedirectedError(Exception):
    """A request is refused; its client learns it at `location`.

    `is_local`: the client is on this computer. Every page can register a client and send the user here, so
    only a user's decision leads to other places (RFC 9700 §4.11.2).
    """

    def __init__(self, location: str, cause: OAuthError) -> None:
        super().__init__(location)
        self.location = location
        self.cause = cause

    @property
    def is_local(self) -> bool:
        return is_loopback(urlsplit(self.location))


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A valid request. `scopes` are those of the endpoint; `has_redirect_uri`: the request had one."""

    client: Client
    redirect_uri: str
    has_redirect_uri: bool
    scopes: frozenset[str]
    wants_id_token: bool
    resource: str
    challenge: str
    state: str | None
    nonce: str | None

    def grant(self, user: str, scopes: frozenset[str]) -> Grant:
        """Return what the user grants."""
        return Grant(
            user,
            self.client.id,
            scopes,
            self.resource,
            self.redirect_uri if self.has_redirect_uri else None,
            self.challenge,
            self.wants_id_token,
            self.nonce,
        )


def read_request(given: Mapping[str, str], issuer: str, resource: str) -> AuthorizationRequest:
    """Return the request in these parameters; `resource` is the endpoint's URI.

    Raises OAuthError while no redirect URI is known that may receive the error, then RedirectedError.
    """
    client = find_client(given.get("client_id", ""))
    redirect_uri = given.get("redirect_uri") or client.redirect_uris[0]
    if not client.allows(redirect_uri) or ("redirect_uri" not in given and len(client.redirect_uris) > 1):
        raise OAuthError("invalid_request", "the client did not register this redirect_uri")
    try:
        return _read(given, client, redirect_uri, resource)
    except OAuthError as error:
        refusal = {"error": error.code, "error_description": error.description}
        raise RedirectedError(redirect(redirect_uri, issuer, given.get("state"), **refusal), error) from None


def _read(given: Mapping[str, str], client: Client, redirect_uri: str, resource: str) -> AuthorizationRequest:
    if given.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code")
    if given.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(
        given.get("code_challenge", "")
    ):
        raise OAuthError("invalid_request", "PKCE is required: code_challenge, with the method S256")
    check_resource(given.get("resource"), resource)
    try:
        scopes = parse_scopes(given.get("scope", ""))
    except ValueError as error:
        raise OAuthError("invalid_scope", str(error)) from None
    return AuthorizationRequest(
        client,
        redirect_uri,
        "redirect_uri" in given,
        scopes - OPENID,
        "openid" in scopes,
        resource,
        given["code_challenge"],
        given.get("state"),
        given.get("nonce"),
    )


def check_resource(given: str | None, resource: str) -> None:
    """Raise OAuthError if tokens are requested for another resource (RFC 8707 §2)."""
    if given is not None and given.rstrip("/") != resource.rstrip("/"):
        raise OAuthError("invalid_target", f"tokens of this issuer are for {resource} only")


def redirect(redirect_uri: str, issuer: str, state: str | None, **members: str) -> str:
    """Return the URL of the client with the response. `iss` tells it who answers (RFC 9207)."""
    given = {**members, **({} if state is None else {"state": state}), "iss": issuer}
    return f"{redirect_uri}{'&' if urlsplit(redirect_uri).query else '?'}{urlencode(given)}"
