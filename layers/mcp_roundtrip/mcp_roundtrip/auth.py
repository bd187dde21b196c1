"""From an event source's authorizer context to a Principal.

Nothing here reads a header: what an authorizer has verified is in the event's request context, and only
that counts. There is no open default: without `AuthMode.NONE` a caller nobody identified is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from mcp_roundtrip.principal import Principal


class AuthMode(StrEnum):
    """Who identifies callers: nobody, or the API's JWT, Lambda or IAM authorizer."""

    NONE = "none"
    JWT = "jwt"
    LAMBDA = "lambda"
    IAM = "iam"


class Unauthorized(Exception):
    """The event names no principal; `reason` is for the log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Authenticator:
    """`principal_context_key` names the Lambda authorizer's context member that identifies the caller."""

    mode: AuthMode
    principal_context_key: str | None = None

    def principal(self, authorizer: Mapping[str, Any]) -> Principal | None:
        """The caller; None only where anonymous callers are let in. Raises Unauthorized."""
        if self.mode is AuthMode.NONE:
            return None
        context = authorizer.get(self.mode.value)
        if not isinstance(context, Mapping):
            raise Unauthorized(f"the event has no {self.mode} authorizer context")
        return _READERS[self.mode](self, context)

    def _from_jwt(self, context: Mapping[str, Any]) -> Principal:
        claims = context.get("claims")
        if not isinstance(claims, Mapping):
            raise Unauthorized("the jwt authorizer context has no claims")
        client = claims.get("client_id", claims.get("azp"))
        return Principal(
            "jwt",
            subject=_text(claims, "sub"),
            issuer=_text(claims, "iss"),
            client_id=client if isinstance(client, str) else None,
        )

    def _from_lambda(self, context: Mapping[str, Any]) -> Principal:
        if self.principal_context_key is None:
            raise Unauthorized("no principal context key is configured")
        return Principal("lambda", subject=_text(context, self.principal_context_key))

    def _from_iam(self, context: Mapping[str, Any]) -> Principal:
        # A role's userId is "AROA...:session"; sessions change between rounds, the role does not.
        role_id = _text(context, "userId").partition(":")[0]
        return Principal("iam", subject=role_id, issuer=_text(context, "accountId"))


_READERS: Final[Mapping[AuthMode, Callable[[Authenticator, Mapping[str, Any]], Principal]]] = {
    AuthMode.JWT: Authenticator._from_jwt,
    AuthMode.LAMBDA: Authenticator._from_lambda,
    AuthMode.IAM: Authenticator._from_iam,
}


def _text(context: Mapping[str, Any], name: str) -> str:
    value = context.get(name)
    if not isinstance(value, str) or not value:
        raise Unauthorized(f"the authorizer context has no {name}")
    return value
