"""The JWT claims of a token (RFC 7519 §4.1): build and check what it is bound to.

==========  ============================================================================================
claim       content
==========  ============================================================================================
iss, aud    the deployment that minted it, and the MCP endpoint
sub         a digest of the principal, salted with `jti`; absent when the caller was anonymous
iat, nbf    when it was minted; not accepted before
exp         the expiry: at most one round's time, and not after the end of the flow
jti         its id, for a store that enforces single use
rq          a digest of the request: method, name and arguments
rnd, oiat   the round, and the time of the flow's first token: they limit the flow over all rounds
st          the state
==========  ============================================================================================

All times are whole seconds since the epoch. Nothing here is secret and all of it is signed, so comparisons
need no constant time. A refusal is StateRejected with one of these reasons, which are stable names for
logs and metrics: `claims` (a claim is missing, unknown or of the wrong type), `not_yet_valid`, `expired`,
`lifetime`, `flow_expired`, `wrong_issuer`, `wrong_audience`, `wrong_request`, `wrong_principal`; from
`jws` and `jwe`: `not_a_string`, `too_long`, `malformed`, `header`, `unknown_key`, `epoch`,
`decryption`, `signature`, `payload`; for an invalid certificate, most of these with the prefix
`certificate_`, and `certificate_key`, `certificate_revoked` and `outlives_certificate`. A fault of this
package is `unexpected_` with the name of the exception. The engine adds `journal_version` (a state of another
release) and `journal` (a malformed journal), the server `other_dialect` (see `server.task_carrier`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.protocol import strict_json


class Binding(Struct, frozen=True, dict=True):  # dict: the digest is computed at most once
    """The request that a token is bound to: it is accepted only with an equal one.

    `principal` is the principal's canonical JSON, None for an anonymous caller. `name` is what the method
    acts on: the tool, the prompt, the resource's URI.
    """

    issuer: str
    audience: str
    principal: str | None
    method: str
    name: str
    arguments: Mapping[str, Any]

    @cached_property
    def request_digest(self) -> str:
        """The claim `rq`: a digest of method, name and arguments."""
        request = [self.method, self.name, dict(self.arguments)]
        return strict_json.digest("mcp-rs/v1/request", request)

    def identity(self) -> str | None:
        """Return a digest of the binding; None for anonymous callers, who cannot be distinguished."""
        if self.principal is None:
            return None
        named = [self.issuer, self.audience, self.principal, self.method, self.name]
        return strict_json.digest("mcp-rs/v1/identity", [*named, dict(self.arguments)], size=24)


class Limits(Struct, frozen=True):
    """The lifetimes of tokens in seconds: of one round, and of all rounds of a call.

    `skew_s`: how far this clock may be behind the one that minted. Tokens of more than `max_minted`
    characters are not minted, those of more than `max_presented` are refused unread.
    """

    round_ttl_s: int = 600
    flow_ttl_s: int = 3600
    skew_s: int = 5
    max_minted: int = 65_536
    max_presented: int = 262_144


class OpenState(Struct, frozen=True):
    """The content of an accepted token; times are epoch seconds. `first_issued_at` goes into the next one.

    From `flow_ends_at` on, every environment refuses the tokens of the flow.
    """

    payload: Any
    round: int
    first_issued_at: int
    flow_ends_at: int


COMMON_TYPES: Mapping[str, type] = {"iss": str, "aud": str, "iat": int, "nbf": int, "exp": int, "jti": str}
"""The claims of all tokens: states, certificates and links."""

_TYPES: Mapping[str, type] = {**COMMON_TYPES, "rq": str, "rnd": int, "oiat": int}


def build(
    binding: Binding,
    payload: Any,
    *,
    round_number: int,
    first_issued_at: int | None,
    now: float,
    jti: str,
    limits: Limits,
) -> dict[str, Any]:
    """Return the claims of a token minted at `now`; `first_issued_at` is None for the first of a flow.

    Raises StateRejected (`flow_expired`), and ValueError for arguments that JSON cannot represent.
    """
    iat = int(now)
    oiat = iat if first_issued_at is None else first_issued_at
    flow_end = oiat + limits.flow_ttl_s
    if iat >= flow_end:
        raise StateRejected("flow_expired")
    claims = {
        "iss": binding.issuer,
        "aud": binding.audience,
        "iat": iat,
        "nbf": iat,
        "exp": min(iat + limits.round_ttl_s, flow_end),
        "jti": jti,
        "rq": binding.request_digest,
        "rnd": round_number,
        "oiat": oiat,
        "st": payload,
    }
    if binding.principal is not None:
        claims["sub"] = principal_digest(jti, binding.principal)
    return claims


def check(claims: Mapping[str, Any], binding: Binding, *, now: float, limits: Limits) -> OpenState:
    """Return the state in verified `claims` if they are valid now and for `binding`. Raises StateRejected."""
    optional = {"sub": str} if "sub" in claims else {}
    require_types(claims, {**_TYPES, **optional}, others={"st"})
    check_times(claims, now=now, skew_s=limits.skew_s)
    _check_lifetimes(claims, now=now, limits=limits)
    check_parties(claims, issuer=binding.issuer, audience=binding.audience, principal=binding.principal)
    if claims["rq"] != binding.request_digest:
        raise StateRejected("wrong_request")
    flow_ends_at = claims["oiat"] + limits.flow_ttl_s + limits.skew_s
    return OpenState(claims["st"], claims["rnd"], claims["oiat"], flow_ends_at)


def require_types(claims: Mapping[str, Any], types: Mapping[str, type], *, others: set[str]) -> None:
    """Require the claims of `types` with exactly these types (True is not an int), `others`, and no more."""
    if claims.keys() != types.keys() | others:
        raise StateRejected("claims")
    if any(type(claims[name]) is not expected for name, expected in types.items()):
        raise StateRejected("claims")


def check_times(claims: Mapping[str, Any], *, now: float, skew_s: int) -> None:
    """Require `now` to be between `iat` and `nbf` (less the skew) and `exp` (exclusive)."""
    if max(claims["iat"], claims["nbf"]) > now + skew_s:
        raise StateRejected("not_yet_valid")
    if now >= claims["exp"]:
        raise StateRejected("expired")


def check_parties(claims: Mapping[str, Any], *, issuer: str, audience: str, principal: str | None) -> None:
    if claims["iss"] != issuer:
        raise StateRejected("wrong_issuer")
    if claims["aud"] != audience:
        raise StateRejected("wrong_audience")
    expected = None if principal is None else principal_digest(claims["jti"], principal)
    if claims.get("sub") != expected:
        raise StateRejected("wrong_principal")


def _check_lifetimes(claims: Mapping[str, Any], *, now: float, limits: Limits) -> None:
    if claims["exp"] - claims["iat"] > limits.round_ttl_s:
        raise StateRejected("lifetime")
    # A clock behind that of the flow's first token mints an `iat` before `oiat`, at most by the skew.
    if claims["oiat"] > claims["iat"] + limits.skew_s:
        raise StateRejected("lifetime")
    if now >= claims["oiat"] + limits.flow_ttl_s:
        raise StateRejected("flow_expired")


def principal_digest(jti: str, principal: str) -> str:
    """Return a digest of a principal. The salt `jti` makes the tokens of one principal unlinkable."""
    return strict_json.digest("mcp-rs/v1/principal", [jti, principal], size=16)
