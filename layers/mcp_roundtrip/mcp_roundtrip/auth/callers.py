"""Principals and callers, the claims of tokens, and the identification of callers by the event."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from mcp_roundtrip.errors import ErrorWithReason
from mcp_roundtrip.protocol.strict_json import canonical_json, parse_json


@dataclass(frozen=True, slots=True)
class Principal:
    """A verified identity. `kind` is how it was verified: "jwt", "lambda" or "iam"."""

    kind: str
    subject: str
    issuer: str | None = None
    client_id: str | None = None

    def canonical(self) -> str:
        """Return the text that states and tasks are bound to: canonical JSON."""
        return canonical_json([self.kind, self.issuer, self.subject, self.client_id]).decode()


def caller_binding(principal: Principal | None) -> str | None:
    """Return the text that a caller's states and tasks are bound to; None for an anonymous caller."""
    return None if principal is None else principal.canonical()


def user_binding(principal: Principal | None) -> str | None:
    """Return the text that a caller's links are bound to; None for an anonymous caller.

    The client is not part of it: the page behind a link authenticates its visitor with another client id.
    """
    return None if principal is None else replace(principal, client_id=None).canonical()


def user_of(binding: str) -> str | None:
    """Return `user_binding` of the caller whose `caller_binding` is given."""
    kind, issuer, subject, _ = parse_json(binding)
    return user_binding(Principal(kind, subject, issuer))


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

    `error` is the error code of RFC 6750; None if the request has no token (§3.1).
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

    `is_answer`: whether the issuer answered without a usable document.
    """

    def __init__(self, reason: str, *, is_answer: bool = False) -> None:
        super().__init__(reason)
        self.is_answer = is_answer


class Authenticator(Protocol):
    """Identifies the caller of a request: `EventAuthenticator`, or `bearer.BearerAuthenticator`."""

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """Return the caller. `headers` has lower-case names. Raises Unauthorized or IssuerUnavailable."""


_CLAIMS_OF_OTHER_TOKENS: Final = {
    "cnf": "bound",
    "events": "event",
    "at_hash": "id_token",
    "c_hash": "id_token",
    "s_hash": "id_token",
}
"""Claim -> the kind of token that has it. A bearer access token has none of them.

`cnf`: a token bound to a key by DPoP or mTLS (RFC 7800), which a thief could use here without the key.
`events`: security event tokens, such as logout tokens (RFC 8417). The hashes: ID tokens (OpenID Connect Core
3.1.3.6, 3.3.2.11). `nonce` is missing because some issuers copy it to access tokens.
"""

_ID_TOKEN_MEMBERS: Final = (("token_use", "id"), ("typ", "ID"))
"""Claims with which Amazon Cognito and Keycloak mark their ID tokens."""

_CLIENT_CLAIMS: Final = ("client_id", "azp", "appid", "cid")
"""The claims that name the client, by precedence: RFC 9068 §2.2, OpenID Connect, Entra ID v1, Okta."""

_SCOPE_CLAIMS: Final = ("scope", "scp", "scopes")
"""The claims that hold scopes, by precedence: RFC 9068 §2.2.3 has the first, Okta and Entra ID the second."""


def validate_access_token(claims: Mapping[str, Any]) -> None:
    """Raise Unauthorized for claims of another kind of token (RFC 8725 3.12)."""
    for name, kind in _CLAIMS_OF_OTHER_TOKENS.items():
        if name in claims:
            raise Unauthorized(f"token_{kind}", "invalid_token")
    if any(claims.get(name) == value for name, value in _ID_TOKEN_MEMBERS):
        raise Unauthorized("token_id_token", "invalid_token")


def caller_from_claims(claims: Mapping[str, Any], split: Callable[[Any], frozenset[str]]) -> Caller:
    """Return the caller of a verified token. `split` reads the scopes in a claim. Raises Unauthorized."""
    principal = Principal(
        "jwt",
        subject=required_text(claims, "sub"),
        issuer=required_text(claims, "iss"),
        client_id=client_from_claims(claims),
    )
    scopes = next((split(claims[name]) for name in _SCOPE_CLAIMS if name in claims), frozenset[str]())
    return Caller(principal, scopes)


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


def split_scopes(value: Any) -> frozenset[str]:
    """Return the scopes in a string, separated by spaces (RFC 6749 §3.3), or in a list."""
    if isinstance(value, str):
        return frozenset(value.split(" ")) - {""}  # other white space is part of a scope
    if isinstance(value, list):
        return frozenset(item for item in value if isinstance(item, str))
    return frozenset()


# -- the authorizer context of an event ---------------------------------------------------------------------


_ACCOUNT_ID: Final = r"[0-9]{12}"


class EventAuthenticator(Struct, frozen=True):
    """Identifies callers by the authorizer context of the event, in which a client cannot write.

    `principal_context_key` names the member of a Lambda authorizer's context that identifies the caller,
    `scope_context_key` the member that holds the scopes, separated by spaces. With `binds_sessions` each
    session of an IAM role is a separate caller.
    """

    mode: AuthMode
    principal_context_key: str = "principalId"
    scope_context_key: str | None = None
    binds_sessions: bool = False

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """Return the caller. Raises Unauthorized."""
        if self.mode is AuthMode.NONE:
            return ANONYMOUS
        context = authorizer.get(self.mode.value)
        if not isinstance(context, Mapping):
            raise Unauthorized(f"the event has no {self.mode} authorizer context")
        if self.mode is AuthMode.JWT:
            return _from_jwt(context)
        return self._from_lambda(context) if self.mode is AuthMode.LAMBDA else self._from_iam(context)

    def _from_lambda(self, context: Mapping[str, Any]) -> Caller:
        scopes = context.get(self.scope_context_key) if self.scope_context_key else None
        subject = required_text(context, self.principal_context_key)
        return Caller(Principal("lambda", subject=subject), split_scopes(scopes))

    def _from_iam(self, context: Mapping[str, Any]) -> Caller:
        identity = context.get("cognitoIdentity")
        user_id = required_text(context, "userId")
        role = _without_session(user_id)
        if isinstance(identity, Mapping):  # all users of a Cognito identity pool share one role
            subject = required_text(identity, "identityId")
        else:
            subject = user_id if self.binds_sessions else role
        return Caller(Principal("iam", subject=subject, issuer=required_text(context, "accountId")))


def _from_jwt(context: Mapping[str, Any]) -> Caller:
    claims = context.get("claims")
    if not isinstance(claims, Mapping):
        raise Unauthorized("the jwt authorizer context has no claims")
    validate_access_token(claims)
    return caller_from_claims(claims, _split_flattened_scopes)


def _without_session(user_id: str) -> str:
    """Return the part of an IAM unique id that is the same in every session. Raises Unauthorized.

    Roles have `AROA...:session`, federated users `<account id>:<name>`, the root user the account id, and
    users `AIDA...` (IAM User Guide, "Principal key values").
    """
    role_id, colon, name = user_id.partition(":")
    if not role_id or (colon and not name):
        raise Unauthorized("the authorizer context has no complete userId")
    return user_id if re.fullmatch(_ACCOUNT_ID, role_id) else role_id


def _split_flattened_scopes(value: Any) -> frozenset[str]:
    """Return the scopes in a claim of an HTTP API's JWT authorizer, which writes a list as `[read write]`.

    The list of one member `read write` has the same form. So the text between brackets counts as one member,
    which is no valid scope if it has a space.
    """
    is_list = isinstance(value, str) and value[:1] == "[" and value[-1:] == "]"
    return split_scopes([value[1:-1]] if is_list else value) - {""}
