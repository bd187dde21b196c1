"""The claims of an access token: its type, its principal and its scopes.

The claims come from an API's JWT authorizer, or from a bearer token that `auth.bearer` has verified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_roundtrip.auth.callers import Unauthorized
from mcp_roundtrip.auth.principal import Principal

_CLAIMS_OF_OTHER_TOKENS: Final = {
    "cnf": "bound",
    "events": "event",
    "at_hash": "id_token",
    "c_hash": "id_token",
    "s_hash": "id_token",
}
"""Claim -> the kind of token that has it. A bearer access token has none of them.

`cnf`: a token bound to a key by DPoP or mTLS (RFC 7800); a thief could use it here without the key. `events`:
logout tokens and other security event tokens (RFC 8417). The hashes: ID tokens (OpenID Connect Core 3.1.3.6,
3.3.2.11). `nonce` is missing because some issuers copy it to access tokens.
"""

_ID_TOKEN_MEMBERS: Final = (("token_use", "id"), ("typ", "ID"))
"""Claims with which Amazon Cognito and Keycloak mark their ID tokens."""

_CLIENT_CLAIMS: Final = ("client_id", "azp", "appid", "cid")
"""The claims that name the client, by precedence: RFC 9068 §2.2, OpenID Connect, Entra ID v1, Okta."""

SCOPE_CLAIMS: Final = ("scope", "scp", "scopes")
"""The claims that hold scopes, by precedence: RFC 9068 §2.2.3 has the first, Okta and Entra ID the second."""


def validate_access_token(claims: Mapping[str, Any]) -> None:
    """Raise Unauthorized for claims of another kind of token (RFC 8725 3.12)."""
    for name, kind in _CLAIMS_OF_OTHER_TOKENS.items():
        if name in claims:
            raise Unauthorized(f"token_{kind}", "invalid_token")
    if any(claims.get(name) == value for name, value in _ID_TOKEN_MEMBERS):
        raise Unauthorized("token_id_token", "invalid_token")


def principal_from_claims(claims: Mapping[str, Any]) -> Principal:
    """Return the principal of a verified token. Raises Unauthorized."""
    return Principal(
        "jwt",
        subject=required_text(claims, "sub"),
        issuer=required_text(claims, "iss"),
        client_id=client_from_claims(claims),
    )


def client_from_claims(claims: Mapping[str, Any]) -> str | None:
    """Return the client that a token names; None if it names none."""
    client = next((claims[name] for name in _CLIENT_CLAIMS if name in claims), None)
    return client if isinstance(client, str) else None


def required_text(context: Mapping[str, Any], name: str) -> str:
    """Return a member that must be a non-empty string. Raises Unauthorized."""
    value = context.get(name)
    if not isinstance(value, str) or not value:
        raise Unauthorized(f"the authorizer context has no {name}")
    return value


def scopes_from_claims(claims: Mapping[str, Any], split: Callable[[Any], frozenset[str]]) -> frozenset[str]:
    """Return the scopes in the first of SCOPE_CLAIMS that the token has, as `split` reads that claim."""
    return next((split(claims[name]) for name in SCOPE_CLAIMS if name in claims), frozenset())


def split_scopes(value: Any) -> frozenset[str]:
    """Return the scopes in a string, separated by spaces (RFC 6749 §3.3), or in a list."""
    if isinstance(value, str):
        return frozenset(value.split(" ")) - {""}  # other white space is part of a scope
    if isinstance(value, list):
        return frozenset(item for item in value if isinstance(item, str))
    return frozenset()


def split_flattened_scopes(value: Any) -> frozenset[str]:
    """Return the scopes in a claim of an HTTP API's JWT authorizer, which writes a list as `[read write]`.

    The list of the one member `read write` has the same form. So the text between brackets counts as one
    member, which is no valid scope if it holds a space.
    """
    is_list = isinstance(value, str) and value[:1] == "[" and value[-1:] == "]"
    return split_scopes([value[1:-1]] if is_list else value) - {""}
