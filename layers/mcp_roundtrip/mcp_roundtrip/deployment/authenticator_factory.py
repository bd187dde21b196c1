"""Create the authenticator of a deployment from its settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcp_roundtrip.auth.callers import Authenticator, AuthMode, Caller, EventAuthenticator, IssuerUnavailable
from mcp_roundtrip.auth.scopes import PrefixedScopes
from mcp_roundtrip.deployment.settings import Settings

if TYPE_CHECKING:
    from mcp_roundtrip.auth.issuer_keys import IssuerKeys


def make_authenticator(
    settings: Settings, prefix: str, on_issuer_failure: Callable[[IssuerUnavailable], None]
) -> Authenticator:
    """Create the authenticator; it removes `prefix` from scopes.

    `on_issuer_failure` takes each failure to fetch the issuer's keys. Raises SettingsError.
    """
    if settings.audience is None and settings.needs_audience:
        return _WithoutAudience(settings)
    is_bearer = settings.auth_mode is AuthMode.BEARER
    authenticator = _bearer(settings, on_issuer_failure) if is_bearer else _by_event(settings)
    return PrefixedScopes(authenticator, prefix) if prefix else authenticator


def scope_prefix(settings: Settings) -> str:
    """Return the prefix of scopes with the audience in place of `{audience}`. Raises SettingsError."""
    prefix = settings.scope_prefix
    if settings.derives_audience:  # these ports authenticate no caller
        return prefix
    return prefix.replace("{audience}", settings.required("audience")) if "{" in prefix else prefix


def _by_event(settings: Settings) -> Authenticator:
    return EventAuthenticator(
        settings.auth_mode,
        settings.principal_context_key,
        settings.scope_context_key,
        settings.iam_principal == "session",
    )


def _bearer(settings: Settings, on_issuer_failure: Callable[[IssuerUnavailable], None]) -> Authenticator:
    from mcp_roundtrip.auth.bearer import BearerAuthenticator  # a plain call verifies no token

    issuer = settings.required("token_issuer")

    @cache
    def keys() -> IssuerKeys:
        from mcp_roundtrip.auth.issuer_keys import (
            IssuerKeys,
            fetch,
        )  # PyJWT and http.client, at the first token

        return IssuerKeys(issuer, settings.token_jwks_uri, fetch, time.time, on_issuer_failure)

    return BearerAuthenticator(
        issuer,
        settings.token_audience or (settings.required("audience"),),
        frozenset(settings.token_algorithms),
        lambda *token: keys().verify(*token),
        time.time,
        settings.token_type == "at+jwt",  # noqa: S105 - no secret
        requires_client=bool(settings.token_audience),
    )


class _WithoutAudience(Struct, frozen=True):
    """Authenticates no caller: with an unknown audience, a token may have been issued for another server."""

    settings: Settings

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        raise self.settings.missing("audience")
