"""Remove the authorization server's prefix from the scopes of callers.

Some servers require a prefix in requests for scopes: Entra ID the URI of the application (and its tokens then
have the names only), Amazon Cognito the identifier of the resource server (and its tokens have it, too).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mcp_roundtrip.auth.callers import Authenticator, Caller


class PrefixedScopes(Struct, frozen=True):
    """Identifies callers as `authenticator` does, with their scopes without `prefix`."""

    authenticator: Authenticator
    prefix: str

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """Return the caller. Raises Unauthorized or IssuerUnavailable."""
        caller = self.authenticator.authenticate(headers, authorizer)
        scopes = frozenset(scope.removeprefix(self.prefix) for scope in caller.scopes)
        return Caller(caller.principal, scopes)
