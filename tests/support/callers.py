"""Callers in each AuthMode: how a deployment identifies them, and what an authorizer or a token says."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_roundtrip.auth.callers import Authenticator, AuthMode, EventAuthenticator
from mcp_roundtrip_testing import FakeClock
from support import token_issuer


def authenticator(mode: AuthMode, clock: FakeClock) -> Authenticator:
    bearer = mode is AuthMode.BEARER
    return token_issuer.authenticator(clock) if bearer else EventAuthenticator(mode, "user", "scopes")


def _jwt(user: str, scopes: tuple[str, ...]) -> dict[str, Any]:
    claims = {"iss": "https://id", "sub": user, "scope": " ".join(scopes)}
    return {"jwt": {"claims": claims, "scopes": list(scopes) or None}}


_CONTEXTS: Final[Mapping[AuthMode, Callable[[str, tuple[str, ...]], dict[str, Any]]]] = {
    AuthMode.NONE: lambda user, scopes: {},
    AuthMode.JWT: _jwt,
    AuthMode.LAMBDA: lambda user, scopes: {"lambda": {"user": user, "scopes": " ".join(scopes)}},
    AuthMode.BEARER: lambda user, scopes: {},
    AuthMode.IAM: lambda user, scopes: {
        "iam": {"userId": f"AROA{user}:session", "accountId": "123456789012"}
    },
}


def authorizer(mode: AuthMode, user: str, scopes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the authorizer's part of the request context, in payload format 2.0. For BEARER it is empty."""
    return _CONTEXTS[mode](user, scopes)


def authorization(mode: AuthMode, user: str, scopes: tuple[str, ...], now: float) -> dict[str, str]:
    """Return the header of a caller whose token the function verifies; none in other modes."""
    if mode is not AuthMode.BEARER:
        return {}
    claims = token_issuer.claims(now, sub=user, scope=" ".join(scopes))
    return {"authorization": f"Bearer {token_issuer.ONE.sign(claims)}"}
