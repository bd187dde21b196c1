"""The caller of a request, the ways to identify one, and the errors of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from mcp_roundtrip.auth.principal import Principal
from mcp_roundtrip.errors import ErrorWithReason


class AuthMode(StrEnum):
    """How callers are identified: not at all, by bearer tokens, or by an authorizer of the API."""

    NONE = "none"
    BEARER = "bearer"
    JWT = "jwt"
    LAMBDA = "lambda"
    IAM = "iam"


class Caller(Struct, frozen=True):
    """A caller and the scopes it was granted. `principal` is None for an anonymous caller.

    States and tasks are bound to the principal, never to the scopes.
    """

    principal: Principal | None
    scopes: frozenset[str] = frozenset()


ANONYMOUS: Final = Caller(None)


class Unauthorized(Exception):
    """The request does not identify a principal. `reason` is for the log only.

    `error` is the error code of RFC 6750 for an unusable token, None if the request has no token (§3.1).
    """

    def __init__(self, reason: str, error: Literal["invalid_request", "invalid_token"] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error

    @property
    def http_status(self) -> int:
        """The HTTP status: 400 for a malformed request, which another token would not fix; otherwise 401."""
        return 400 if self.error == "invalid_request" else 401


class InsufficientScope(Exception):
    """The caller lacks a scope. `scopes` are all that the request needs (RFC 6750 §3.1)."""

    def __init__(self, scopes: Sequence[str]) -> None:
        super().__init__(" ".join(scopes))
        self.scopes = scopes


class IssuerUnavailable(ErrorWithReason):
    """The issuer's keys cannot be fetched, so no token can be verified. `reason` is for the log only.

    `is_answer` is True if the issuer's server did answer, but without a usable document.
    """

    def __init__(self, reason: str, *, is_answer: bool = False) -> None:
        super().__init__(reason)
        self.is_answer = is_answer


class Authenticator(Protocol):
    """Identifies the caller of a request."""

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """Return the caller. `headers` has lower-case names, `authorizer` is the event's authorizer context.

        Raises Unauthorized or IssuerUnavailable.
        """
