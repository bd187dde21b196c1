"""Identify callers by the authorizer context of the event.

No header is read. API Gateway and Lambda put what an authorizer verified into the event's request context,
and a client cannot write there. Callers are anonymous only with `AuthMode.NONE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.auth.callers import (
    ANONYMOUS,
    AuthMode,
    Caller,
    Principal,
    Unauthorized,
    caller_from_claims,
    required_text,
    split_scopes,
    validate_access_token,
)

_ACCOUNT_ID: Final = r"[0-9]{12}"


class EventAuthenticator(Struct, frozen=True):
    """Identifies callers by the authorizer context of the event.

    `principal_context_key` names the member of a Lambda authorizer's context that identifies the caller,
    `scope_context_key` the member that holds the scopes, separated by spaces. With `binds_sessions` each
    session of an IAM role is a separate caller.
    """

    mode: AuthMode
    principal_context_key: str | None = None
    scope_context_key: str | None = None
    binds_sessions: bool = False

    def authenticate(self, headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> Caller:
        """Return the caller. Raises Unauthorized."""
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
        validate_access_token(claims)
        return caller_from_claims(claims, _split_flattened_scopes)

    def _from_lambda(self, context: Mapping[str, Any]) -> Caller:
        if self.principal_context_key is None:
            raise Unauthorized("no principal context key is configured")
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


def _without_session(user_id: str) -> str:
    """Return the part of an IAM unique id that is the same in every session. Raises Unauthorized.

    A role has `AROA...:session`, a federated user `<account id>:<name>`, the root user the account id and a
    user `AIDA...` (IAM User Guide, "Principal key values").
    """
    role_id, colon, name = user_id.partition(":")
    if not role_id or (colon and not name):
        raise Unauthorized("the authorizer context has no complete userId")
    return user_id if re.fullmatch(_ACCOUNT_ID, role_id) else role_id


def _split_flattened_scopes(value: Any) -> frozenset[str]:
    """Return the scopes in a claim of an HTTP API's JWT authorizer, which writes a list as `[read write]`.

    The list of the one member `read write` has the same form. So the text between brackets counts as one
    member, which is no valid scope if it holds a space.
    """
    is_list = isinstance(value, str) and value[:1] == "[" and value[-1:] == "]"
    return split_scopes([value[1:-1]] if is_list else value) - {""}


_READERS: Final[Mapping[AuthMode, Callable[[EventAuthenticator, Mapping[str, Any]], Caller]]] = {
    AuthMode.JWT: EventAuthenticator._from_jwt,
    AuthMode.LAMBDA: EventAuthenticator._from_lambda,
    AuthMode.IAM: EventAuthenticator._from_iam,
}
