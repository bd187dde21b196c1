"""Shapes of tokens and key sets as the vendors document them, with invented values.

Sources: Amazon Cognito Developer Guide, "Understanding the access token" and "Understanding the identity
token"; Microsoft Entra, "Access token claims reference" and "ID token claims reference"; Auth0, "Access Token
Profiles"; Keycloak, "Integrating with Model Context Protocol (MCP)", and its classes AccessToken and IDToken.
"""

from collections.abc import Mapping
from typing import Any

from support.identity_pages import Token, page

_COGNITO, _ENTRA, _AUTH0, _KEYCLOAK = (page(name).token for name in ("cognito", "entra", "auth0", "keycloak"))


def changed(token: Token, *without: str, header: Mapping[str, Any] | None = None, **claims: Any) -> Token:
    """Return a token with other claims and header members, and without some claims. None removes a member."""
    merged = {**token.header, **(header or {})}
    kept = {name: value for name, value in token.claims.items() if name not in without}
    return Token({name: value for name, value in merged.items() if value is not None}, {**kept, **claims})


TENANT, API = _ENTRA.claims["tid"], _ENTRA.claims["aud"]

_COGNITO_ID_TOKEN = Token(
    _COGNITO.header,
    {
        **{name: _COGNITO.claims[name] for name in ("sub", "iss", "origin_jti", "event_id", "jti")},
        **{name: _COGNITO.claims[name] for name in ("auth_time", "exp", "iat", "cognito:groups")},
        "aud": _COGNITO.claims["client_id"],
        "cognito:username": "ada",
        "email_verified": True,
        "token_use": "id",
    },
)

REFUSED: dict[str, list[tuple[str, Token, str]]] = {
    "cognito": [
        ("machine", changed(_COGNITO, "aud", "username", "auth_time", "event_id"), "token_audience"),
        (
            "signed in with InitiateAuth",
            changed(_COGNITO, "aud", scope="aws.cognito.signin.user.admin"),
            "token_audience",
        ),
        ("ID token", _COGNITO_ID_TOKEN, "token_audience"),
        ("ID token with another audience", changed(_COGNITO, token_use="id"), "token_id_token"),
    ],
    "entra": [
        (
            "version 1.0",
            changed(
                _ENTRA,
                *("azp", "azpacr", "preferred_username"),
                header={"x5t": "Ex4mpLeThumbPrintOfTheKey"},
                iss=f"https://sts.windows.net/{TENANT}/",
                aud="https://tools.example.com/mcp",
                appid=_ENTRA.claims["azp"],
                ver="1.0",
                amr=["pwd"],
            ),
            "token_issuer",
        ),
        (
            "of the API's own registration: ID token",
            changed(_ENTRA, "azp", "azpacr", "scp"),
            "token_id_token",
        ),
        ("ID token of a client", changed(_ENTRA, "azp", "scp", aud=_ENTRA.claims["azp"]), "token_audience"),
        (
            "Microsoft Graph",
            changed(_ENTRA, aud="00000003-0000-0000-c000-000000000000", scp="User.Read"),
            "token_audience",
        ),
        (
            "another tenant",
            changed(_ENTRA, iss=_ENTRA.claims["iss"].replace(TENANT, API), tid=API),
            "token_issuer",
        ),
    ],
    "auth0": [
        (
            "profile Auth0",
            changed(_AUTH0, "client_id", "jti", header={"typ": "JWT"}, azp="a"),
            "token_header",
        ),
        ("ID token", changed(_AUTH0, "scope", header={"typ": "JWT"}, aud="a", nonce="n"), "token_header"),
        ("HS256", changed(_AUTH0, header={"alg": "HS256"}), "token_algorithm"),
        ("another API", changed(_AUTH0, aud=["https://other.example/api"]), "token_audience"),
        (
            "issuer without the slash",
            changed(_AUTH0, iss="https://example-tools.eu.auth0.com"),
            "token_issuer",
        ),
    ],
    "keycloak": [
        ("no mapper", changed(_KEYCLOAK, aud="account"), "token_audience"),
        ("no mapper and no roles", changed(_KEYCLOAK, "aud"), "token_audience"),
        ("no client scope basic", changed(_KEYCLOAK, "sub", "auth_time"), "token_subject"),
        ("ID token", changed(_KEYCLOAK, "scope", typ="ID", aud="claude-code"), "token_audience"),
        ("ID token with the mapper", changed(_KEYCLOAK, "scope", typ="ID", at_hash="x"), "token_id_token"),
        (
            "another realm",
            changed(_KEYCLOAK, iss="https://keycloak.example.com/realms/master"),
            "token_issuer",
        ),
        ("bound by DPoP", changed(_KEYCLOAK, typ="DPoP", cnf={"jkt": "x"}), "token_bound"),
    ],
}
"""Provider -> (what it is, token, reason in the log) of tokens that the page's deployment refuses."""

ACCEPTED: dict[str, list[tuple[str, Token, set[str]]]] = {
    "cognito": [
        (
            "another resource server's scope",
            changed(_COGNITO, scope=f"openid reports/all {_COGNITO.claims['aud']}/orders.write"),
            {"openid", "reports/all", "orders.write"},
        )
    ],
    "entra": [
        (
            "application without a user",
            changed(
                *(_ENTRA, "scp", "name", "preferred_username"), azpacr="1", idtyp="app", roles=["orders.read"]
            ),
            set(),
        ),
        ("several scopes", changed(_ENTRA, scp="orders.read orders.write"), {"orders.read", "orders.write"}),
    ],
    "auth0": [
        (
            "machine",
            changed(
                _AUTH0, sub="app@clients", aud=_AUTH0.claims["aud"][0], gty="client-credentials", scope="a b"
            ),
            {"a", "b"},
        ),
        (
            "role-based access control",
            changed(_AUTH0, permissions=["x"], scope="orders.read"),
            {"orders.read"},
        ),
    ],
    "keycloak": [
        (
            "service account",
            changed(_KEYCLOAK, "sid", "auth_time", client_id="backend", azp="backend", scope="orders.read"),
            {"orders.read"},
        ),
        ("type at+jwt", changed(_KEYCLOAK, header={"typ": "at+jwt"}, scope="orders.read"), {"orders.read"}),
    ],
}
"""Provider -> (what it is, token, its scopes) of more tokens that the page's deployment accepts."""


def key_set(provider: str, jwk: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provider's key set with one signing key. `jwk` has `kty`, `n`, `e` and `kid`."""
    key = {name: jwk[name] for name in ("kty", "n", "e", "kid")}
    certificate = {"x5t": "Ex4mpLeThumbPrint", "x5c": ["MIIDexample"]}
    members: dict[str, dict[str, Any]] = {
        "cognito": {"alg": "RS256", "use": "sig"},
        "entra": {"use": "sig", **certificate, "cloud_instance_name": "microsoftonline.com"},
        "auth0": {"alg": "RS256", "use": "sig", **certificate},
        "keycloak": {"alg": "RS256", "use": "sig", **certificate, "x5t#S256": "Ex4mpLe"},
    }
    encryption = {**key, "kid": "encryption", "use": "enc", "alg": "RSA-OAEP", **certificate}
    return {"keys": [*([encryption] if provider == "keycloak" else []), {**key, **members[provider]}]}


JWKS_PATHS = {
    "cognito": "/.well-known/jwks.json",
    "entra": "/discovery/v2.0/keys",
    "auth0": "/.well-known/jwks.json",
    "keycloak": "/protocol/openid-connect/certs",
}
