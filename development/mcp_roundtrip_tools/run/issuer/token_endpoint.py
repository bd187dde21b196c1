"""Token requests: codes, refresh tokens, and a user of this computer without a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_roundtrip_tools.client.local_issuer import CALL_CLIENT, LOCAL_USER
from mcp_roundtrip_tools.run.issuer.authorization import check_resource
from mcp_roundtrip_tools.run.issuer.errors import OAuthError
from mcp_roundtrip_tools.run.issuer.grants import Grant, OneTimeGrants, check_verifier
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer
from mcp_roundtrip_tools.run.issuer.tokens import LIFETIME_S
from mcp_roundtrip_tools.run.issuer.users import check_scopes


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
