"""Signed links for URL mode elicitation.

MCP 2026-07-28, client/elicitation, "Phishing": the server must make sure that whoever opens the URL is the
user the elicitation was made for. The URL therefore carries a token bound to that person. The page behind it
authenticates its visitor by its own means (a session cookie, say) and opens the token with *the visitor's*
principal: with another person's it is refused. The token alone proves nothing about its bearer, and it holds
no personal data. `principal` here is a text that names the person
(`mcp_roundtrip.principal.user_binding`), without the OAuth client: the page has another client id than the
MCP client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mcp_roundtrip.errors import StateRejected, UsageError
from mcp_roundtrip.internal_errors import KeyServiceError, StateTooLarge
from mcp_roundtrip.state import compact, jws
from mcp_roundtrip.state.claims import (
    COMMON_TYPES,
    check_parties,
    check_times,
    principal_digest,
    require_types,
)
from mcp_roundtrip.state.keys import PublicKeys, Signer

TYP = "mcp-link+jwt"
MAX_LENGTH = 4096
"""The most characters of a link's token: KMS signs as many without a digest (AWS KMS API Reference, Sign)."""

_SKEW_S = 5
_TYPES: Mapping[str, type] = {**COMMON_TYPES, "sub": str, "key": str, "flow": str}


@dataclass(frozen=True, slots=True)
class Link:
    """What an accepted link is for: the question's key, the flow it belongs to, its end (epoch seconds)."""

    key: str
    flow_id: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Links:
    """Signs and opens links for one deployment.

    `clock` returns epoch seconds, `random_bytes(n)` n unguessable bytes.
    """

    signer: Signer
    keys: PublicKeys
    issuer: str
    audience: str
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]

    def sign(self, principal: str | None, key: str, flow_id: str, expires_at: int) -> str:
        """A token for the URL of the question `key`, accepted from `principal` alone until `expires_at`.

        `flow_id` is what the page and the tool know the interaction by, `expires_at` in epoch seconds. Put
        the token into the URL's query or path; it needs no escaping. Raises UsageError for an anonymous
        caller, who is indistinguishable from a victim, for a link that has already expired and for a key and
        flow id that are too long; KeyServiceError when it cannot be signed.
        """
        now = int(self.clock())
        if not principal:
            raise UsageError(
                "a signed link is bound to one user, and this caller is anonymous; check ctx.principal "
                "first, or have callers authenticated (MCP_AUTH_MODE)"
            )
        if expires_at <= now:
            raise UsageError("a signed link would have expired already; use ttl_ms of at least 1000")
        jti = self.random_bytes(16).hex()
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": principal_digest(jti, principal),
            "iat": now,
            "nbf": now,
            "exp": expires_at,
            "jti": jti,
            "key": key,
            "flow": flow_id,
        }
        try:
            return jws.mint(self.signer, TYP, claims, max_length=MAX_LENGTH)
        except StateTooLarge as error:
            raise UsageError(
                f"a signed link has at most {MAX_LENGTH} characters, not {error.size}; use a shorter key"
            ) from None

    def open(self, principal: str | None, token: object) -> Link:
        """What the link is for, if `principal`, the page's authenticated visitor, is who it was made for.

        Raises StateRejected for every other token and visitor, and KeyServiceError when there is no public
        key to check with.
        """
        try:
            return self._open(principal, token)
        except (StateRejected, KeyServiceError):
            raise
        except Exception as error:  # deny by default, as for requestState
            raise StateRejected(f"unexpected_{type(error).__name__}") from None

    def _open(self, principal: str | None, token: object) -> Link:
        claims, _ = jws.verify(compact.read(token, MAX_LENGTH), TYP, jws.named_by_kid(self.keys))
        require_types(claims, _TYPES, others=set())
        check_times(claims, now=self.clock(), skew_s=_SKEW_S)
        check_parties(claims, issuer=self.issuer, audience=self.audience, principal=principal)
        return Link(claims["key"], claims["flow"], claims["exp"])
