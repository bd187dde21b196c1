"""Who is calling, and what they were granted: from an event source's authorizer context to a Caller.

Nothing here reads a header: what an authorizer has verified is in the event's request context, and only
that counts. There is no open default: without `AuthMode.NONE` a caller nobody identified is refused.
Where nobody has verified a token yet (`AuthMode.BEARER`), `auth.bearer` takes the place of `Authenticator`;
its modules are imported where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from mcp_roundtrip.errors import WithReason
from mcp_roundtrip.principal import Principal

_ACCOUNT_ID: Final = re.compile(r"[0-9]{12}")


class AuthMode(StrEnum):
    """Who identifies callers: nobody, this server by their tokens, or an authorizer of the API."""

    NONE = "none"
    BEARER = "bearer"
    JWT = "jwt"
    LAMBDA = "lambda"
    IAM = "iam"


@dataclass(frozen=True, slots=True)
class Caller:
    """`principal` is None for an anonymous one; `scopes` is what it was granted: nothing is bound to that."""

    principal: Principal | None
    scopes: frozenset[str] = frozenset()


ANONYMOUS: Final = Caller(None)


class Unauthorized(Exception):
    """The request names no principal; `reason` is for the log.

    `error` is RFC 6750's code for what was wrong with the token, None where none was sent (§3.1).
    """

    def __init__(self, reason: str, error: Literal["invalid_request", "invalid_token"] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error

    @property
    def http_status(self) -> int:
        """A malformed request is 400: another token would not help."""
        return 400 if self.error == "invalid_request" else 401


class InsufficientScope(Exception):
    """The caller was not granted what a feature asks for: all of `scopes`, as RFC 6750 §3.1 has it."""

    def __init__(self, scopes: Sequence[str]) -> None:
        super().__init__(" ".join(scopes))
        self.scopes = scopes


class IssuerUnavailable(WithReason):
    """The issuer's keys cannot be had, so nobody can say who is calling. `reason` is for the log.

    `is_answer` says that its server did answer, and has no such document.
    """

    def __init__(self, reason: str, *, is_answer: bool = False) -> None:
        super().__init__(reason)
        self.is_answer = is_answer


class Authentication(Protocol):
    """How a deployment finds out who is calling."""

    def caller(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """The caller. `headers` has lower-case names, `authorizer` is the event source's context.

        Raises Unauthorized or IssuerUnavailable.
        """


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Goes by the context of an API's authorizer.

    `principal_context_key` names the Lambda authorizer's context member that identifies the caller,
    `scope_context_key` the one that holds the scopes, separated by spaces. With `binds_sessions` each
    session of an IAM role is a caller of its own.
    """

    mode: AuthMode
    principal_context_key: str | None = None
    scope_context_key: str | None = None
    binds_sessions: bool = False

    def caller(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """The caller; anonymous only where such callers are let in. Raises Unauthorized."""
        if self.mode is AuthMode.NONE:
            return ANONYMOUS
        context = authorizer.get(self.mode.value)
        if not isinstance(context, Mapping):
            raise Unauthorized(f"the event has no {self.mode} authorizer context")
        return _READERS[self.mode](self, context)

    def _from_jwt(self, context: Mapping[str, Any]) -> Caller:
        claims = context.get("claims")
        if not isinstance(claims, Mapping):
            raise Unauthorized("the jwt authorizer context has no claims")
        require_access_token(claims)
        return Caller(principal_of(claims), scopes_of(claims, unbracketed))

    def _from_lambda(self, context: Mapping[str, Any]) -> Caller:
        if self.principal_context_key is None:
            raise Unauthorized("no principal context key is configured")
        scopes = context.get(self.scope_context_key) if self.scope_context_key else None
        return Caller(Principal("lambda", subject=_text(context, self.principal_context_key)), words(scopes))

    def _from_iam(self, context: Mapping[str, Any]) -> Caller:
        # All users of a Cognito identity pool have one role.
        identity = context.get("cognitoIdentity")
        user_id = _text(context, "userId")
        role = _without_session(user_id)
        if isinstance(identity, Mapping):
            subject = _text(identity, "identityId")
        else:
            subject = user_id if self.binds_sessions else role
        return Caller(Principal("iam", subject=subject, issuer=_text(context, "accountId")))


def _without_session(user_id: str) -> str:
    """The part of an IAM unique id that stays the same from session to session. Raises Unauthorized.

    A role's is `AROA...:session`, a federated user's `<account id>:<name>`, root's the account id, a user's
    `AIDA...` (IAM User Guide, "Principal key values"). Sessions change between rounds, roles and names do
    not.
    """
    role_id, colon, name = user_id.partition(":")
    if not role_id or (colon and not name):
        raise Unauthorized("the authorizer context has no complete userId")
    return user_id if _ACCOUNT_ID.fullmatch(role_id) else role_id


_READERS: Final[Mapping[AuthMode, Callable[[Authenticator, Mapping[str, Any]], Caller]]] = {
    AuthMode.JWT: Authenticator._from_jwt,
    AuthMode.LAMBDA: Authenticator._from_lambda,
    AuthMode.IAM: Authenticator._from_iam,
}


_OTHER_TOKENS: Final = {
    "cnf": "bound",
    "events": "event",
    "at_hash": "id_token",
    "c_hash": "id_token",
    "s_hash": "id_token",
}
"""Claims that no bearer token has, and what has them.

`cnf`: a token bound to a key by DPoP or mTLS (RFC 7800). A thief could use it here without the key. `events`:
logout tokens and other security event tokens (RFC 8417). The hashes: ID tokens (OpenID Connect Core 3.1.3.6,
3.3.2.11). `nonce` is not among them, since some issuers copy it to access tokens.
"""


def require_access_token(claims: Mapping[str, Any]) -> None:
    """Raise Unauthorized for claims that a bearer access token does not have (RFC 8725 3.12)."""
    for name, kind in _OTHER_TOKENS.items():
        if name in claims:
            raise Unauthorized(f"token_{kind}", "invalid_token")


def principal_of(claims: Mapping[str, Any]) -> Principal:
    """The principal of a token, whoever has verified it. Raises Unauthorized."""
    client = claims.get("client_id", claims.get("azp"))
    return Principal(
        "jwt",
        subject=_text(claims, "sub"),
        issuer=_text(claims, "iss"),
        client_id=client if isinstance(client, str) else None,
    )


SCOPE_CLAIMS: Final = ("scope", "scp", "scopes")
"""Where issuers put scopes: RFC 9068 §2.2.3 has the first, Okta and Entra ID the second. One claim counts."""


def scopes_of(claims: Mapping[str, Any], read: Callable[[Any], frozenset[str]]) -> frozenset[str]:
    """The scopes of a token, from the first of SCOPE_CLAIMS that it has, as `read` understands it."""
    return next((read(claims[name]) for name in SCOPE_CLAIMS if name in claims), frozenset())


def words(value: Any) -> frozenset[str]:
    """The scopes in a text, separated by spaces (RFC 6749 §3.3), or in a list; none in other values."""
    if isinstance(value, str):
        return frozenset(value.split(" ")) - {""}  # whatever else is white space is part of a scope
    if isinstance(value, list):
        return frozenset(item for item in value if isinstance(item, str))
    return frozenset()


def unbracketed(value: Any) -> frozenset[str]:
    """The scopes in a claim as an HTTP API's authorizer shows it: a list is the text `[read write]`.

    The list of the one member `read write` becomes the same text, so a list counts as one member: a scope if
    it has one member, and otherwise a text that is no scope.
    """
    is_list = isinstance(value, str) and value[:1] == "[" and value[-1:] == "]"
    return words([value[1:-1]] if is_list else value) - {""}


def _text(context: Mapping[str, Any], name: str) -> str:
    value = context.get(name)
    if not isinstance(value, str) or not value:
        raise Unauthorized(f"the authorizer context has no {name}")
    return value
