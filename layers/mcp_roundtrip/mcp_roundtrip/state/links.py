"""Signed links for URL mode elicitation.

MCP 2026-07-28, client/elicitation, "Phishing": the server must make sure that whoever opens the URL is the
user the elicitation was made for. The URL therefore carries a token bound to that principal. The page behind
it authenticates its visitor by its own means (a session cookie, say) and opens the token with *the visitor's*
principal: with anybody else's it is refused. The token alone proves nothing about who presents it, and it
holds no personal data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mcp_roundtrip.errors import KeyServiceError, StateRejected, StateTooLarge, UsageError
from mcp_roundtrip.state import compact, jws
from mcp_roundtrip.state.claims import check_parties, check_times, principal_digest, require_types
from mcp_roundtrip.state.keys import PublicKeys, Signer

TYP = "mcp-link+jwt"
MAX_LENGTH = 4096
"""The most characters of a link's token: KMS signs as many without a digest (AWS KMS API Reference, Sign)."""

_SKEW_S = 5
_TYPES: Mapping[str, type] = {
    "iss": str,
    "aud": str,
    "sub": str,
    "iat": int,
    "nbf": int,
    "exp": int,
    "jti": str,
    "key": str,
    "flow": str,
}


@dataclass(frozen=True, slots=True)
class Link:
    """What an accepted link is for: the question's key, the flow it belongs to, its end (epoch seconds)."""

    key: str
    flow_id: str
    expires_at: int


def sign_link(
    signer: Signer,
    *,
    issuer: str,
    audience: str,
    principal: str | None,
    key: str,
    flow_id: str,
    expires_at: int,
    clock: Callable[[], float],
    random_bytes: Callable[[int], bytes],
) -> str:
    """A token for the URL of the question `key`, accepted from `principal` alone until `expires_at`.

    `flow_id` is what the page and the tool know the interaction by. Put the token into the URL's query or
    path; it needs no escaping. Raises UsageError for an anonymous caller, who cannot be told from a victim,
    for a link that has already expired and for a key and flow id that are too long; KeyServiceError when it
    cannot be signed.
    """
    now = int(clock())
    if not principal:
        raise UsageError("a signed link needs an authenticated principal: it is bound to one user")
    if expires_at <= now:
        raise UsageError("a link must expire in the future")
    jti = random_bytes(16).hex()
    claims = {
        "iss": issuer,
        "aud": audience,
        "sub": principal_digest(jti, principal),
        "iat": now,
        "nbf": now,
        "exp": expires_at,
        "jti": jti,
        "key": key,
        "flow": flow_id,
    }
    try:
        return jws.mint(signer, TYP, claims, max_length=MAX_LENGTH)
    except StateTooLarge as error:
        raise UsageError(
            f"a link's token has at most {MAX_LENGTH} characters, not {error.size}: shorten key or flow id"
        ) from None


def open_link(
    token: object,
    keys: PublicKeys,
    *,
    issuer: str,
    audience: str,
    principal: str | None,
    clock: Callable[[], float],
) -> Link:
    """What the link is for, if `principal`, the authenticated visitor of the page, is who it was made for.

    Raises StateRejected for every other token and visitor, and KeyServiceError when there is no public key to
    check with.
    """
    try:
        claims, _ = jws.verify(compact.read(token, MAX_LENGTH), TYP, jws.named_by_kid(keys))
        require_types(claims, _TYPES, others=set())
        check_times(claims, now=clock(), skew_s=_SKEW_S)
        check_parties(claims, issuer=issuer, audience=audience, principal=principal)
        return Link(claims["key"], claims["flow"], claims["exp"])
    except (StateRejected, KeyServiceError):
        raise
    except Exception as error:  # deny by default, as for requestState
        raise StateRejected(f"unexpected_{type(error).__name__}") from None


@dataclass(frozen=True, slots=True)
class Links:
    """`sign_link` and `open_link` for one deployment; see there for what is raised."""

    signer: Signer
    keys: PublicKeys
    issuer: str
    audience: str
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]

    def sign(self, principal: str | None, key: str, flow_id: str, expires_at: int) -> str:
        """A token for the question `key`, until `expires_at` (epoch seconds)."""
        return sign_link(
            self.signer,
            issuer=self.issuer,
            audience=self.audience,
            principal=principal,
            key=key,
            flow_id=flow_id,
            expires_at=expires_at,
            clock=self.clock,
            random_bytes=self.random_bytes,
        )

    def open(self, principal: str | None, token: object) -> Link:
        """What the token is for, if `principal` is who it was made for."""
        return open_link(
            token,
            self.keys,
            issuer=self.issuer,
            audience=self.audience,
            principal=principal,
            clock=self.clock,
        )
