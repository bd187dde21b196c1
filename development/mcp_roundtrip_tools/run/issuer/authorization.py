"""Authorization requests (RFC 6749 §4.1.1, RFC 7636, RFC 8707, RFC 9207), and token requests."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from mcp_roundtrip_tools.client.http import CALL_CLIENT, LOCAL_USER
from mcp_roundtrip_tools.run.issuer.clients import Client, OAuthError, find_client, is_loopback
from mcp_roundtrip_tools.run.issuer.issuer import LIFETIME_S, LocalIssuer, check_scopes, parse_scopes

CODE_LIFETIME_S: Final = 60
REFRESH_LIFETIME_S: Final = 30 * 24 * 3_600

MAX_GRANTS: Final = 10_000

_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a user has granted to a client. `challenge` is of PKCE, in its method S256."""

    user: str
    client_id: str
    scopes: frozenset[str]
    resource: str
    redirect_uri: str | None
    challenge: str
    wants_id_token: bool = False
    nonce: str | None = None


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
            while len(self._grants) > MAX_GRANTS:
                self._grants.popitem(last=False)
        return secret

    def redeem(self, secret: str) -> Grant:
        """Return the grant, and forget it. Raises OAuthError."""
        with self._lock:
            found = self._grants.pop(secret, None)
        if found is None or found[1] < time.monotonic():
            raise OAuthError("invalid_grant", "it is unknown, expired, or was used before: sign in again")
        return found[0]


def check_verifier(grant: Grant, verifier: str | None) -> None:
    """Raise OAuthError unless the verifier is that of the challenge (RFC 7636 §4.6)."""
    if verifier is None or not _VERIFIER.fullmatch(verifier):
        raise OAuthError("invalid_grant", "code_verifier has 43 to 128 characters (RFC 7636)")
    digest = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
    if not secrets.compare_digest(digest, grant.challenge.encode()):
        raise OAuthError("invalid_grant", "code_verifier does not match code_challenge")


class TokenEndpoint:
    """Answers token requests of an issuer. `codes` and `refresh_tokens` are redeemed here."""

    def __init__(self, issuer: LocalIssuer, codes: OneTimeGrants, refresh_tokens: OneTimeGrants) -> None:
        self._issuer = issuer
        self._codes = codes
        self._refresh_tokens = refresh_tokens

    def respond(self, form: Mapping[str, str], *, is_browser: bool) -> dict[str, Any]:
        """Return the response to a form. `is_browser`: a web page sent it. Raises OAuthError."""
        match form.get("grant_type"):
            case "authorization_code":
                return self._redeem_code(form)
            case "refresh_token":
                return self._refresh(form)
            case str(name) if name == LOCAL_USER:
                return self._sign_in(form, is_browser=is_browser)
            case None:
                raise OAuthError("invalid_request", "grant_type is missing: the body is a form (RFC 6749 §4)")
        raise OAuthError("unsupported_grant_type", "use authorization_code or refresh_token")

    def _redeem_code(self, form: Mapping[str, str]) -> dict[str, Any]:
        grant = self._codes.redeem(form.get("code", ""))
        check_verifier(grant, form.get("code_verifier"))
        if (
            grant.redirect_uri is not None
            and form.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri
        ):
            raise OAuthError("invalid_grant", "redirect_uri is not that of the authorization request")
        return self._tokens(form, grant, grant.scopes)

    def _refresh(self, form: Mapping[str, str]) -> dict[str, Any]:
        grant = self._refresh_tokens.redeem(form.get("refresh_token", ""))
        wanted = frozenset(form.get("scope", "").split())
        if not wanted <= grant.scopes:
            raise OAuthError("invalid_scope", "a refresh cannot add scopes: sign in again")
        return self._tokens(form, grant, wanted or grant.scopes)

    def _tokens(self, form: Mapping[str, str], grant: Grant, scopes: frozenset[str]) -> dict[str, Any]:
        if form.get("client_id") != grant.client_id:
            raise OAuthError("invalid_grant", "it was issued to another client")
        check_resource(form.get("resource"), grant.resource)
        signer = self._issuer.signer
        token = signer.access_token(grant.user, scopes, resource=grant.resource, client_id=grant.client_id)
        found = {**_bearer(token, scopes), "refresh_token": self._refresh_tokens.add(grant)}
        if grant.wants_id_token:
            found["id_token"] = signer.id_token(grant.user, client_id=grant.client_id, nonce=grant.nonce)
        return found

    def _sign_in(self, form: Mapping[str, str], *, is_browser: bool) -> dict[str, Any]:
        if is_browser:
            raise OAuthError("unauthorized_client", "web pages use authorization_code")
        check_resource(form.get("resource"), self._issuer.resource)
        known = {user.name: user for user in self._issuer.users}
        user = known.get(form["user"]) if form.get("user") else self._issuer.users[0]
        if user is None:  # probably misspelled: on the page, another name has a field of its own
            raise OAuthError("invalid_request", f"the users of this run are {' and '.join(known)}")
        try:
            scopes = (
                check_scopes(form.get("scope", "").split()) if "scope" in form else user.default_scopes(())
            )
        except ValueError as error:
            raise OAuthError("invalid_request", str(error)) from None
        token = self._issuer.token(user.name, scopes, client_id=CALL_CLIENT)
        return {**_bearer(token, scopes), "user": user.name}


def _bearer(token: str, scopes: frozenset[str]) -> dict[str, Any]:
    return {
        "access_token": token,
        "token_type": "Bearer",
        "expires_in": LIFETIME_S,
        "scope": " ".join(sorted(scopes)),
    }


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
