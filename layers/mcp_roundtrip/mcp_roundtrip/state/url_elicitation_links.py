"""Sign the links of URL elicitation, and open them for the visitor of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from mcp_roundtrip.errors import UsageError
from mcp_roundtrip.internal_errors import StateTooLarge
from mcp_roundtrip.state import claims, jws
from mcp_roundtrip.state.jws import PublicKeys, Signer

LINK_TYP = "mcp-link+jwt"
MAX_LINK_LENGTH = 4096
"""The limit of a token in characters: KMS signs up to 4,096 bytes without a digest (API Reference, Sign)."""

_SKEW_S = 5
_TYPES: Mapping[str, type] = {**claims.COMMON_TYPES, "sub": str, "key": str, "flow": str}


class Link(Struct, frozen=True):
    """The content of an accepted link: the key of the question, its flow, and the expiry (epoch seconds)."""

    key: str
    flow_id: str
    expires_at: int


class Links(Struct, frozen=True):
    """Signs and opens links for URL elicitation.

    MCP 2026-07-28, client/elicitation, "Phishing": the server must verify that the user who opens the URL is
    the user of the elicitation. The URL therefore contains a token bound to that user. The page authenticates
    its visitor by its own means, such as a session cookie, and opens the token with *the visitor's*
    principal; the token of another user is refused. The token alone proves nothing about its bearer, and
    contains no personal data. `principal` here identifies the user without the OAuth client
    (`auth.callers.user_binding`), because the page has another client id than the MCP client.
    """

    signer: Signer
    keys: PublicKeys
    issuer: str
    audience: str
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]

    def sign(self, principal: str | None, key: str, flow_id: str, expires_at: int) -> str:
        """Return a token for the URL of the question `key`, valid for `principal` until `expires_at`.

        `flow_id` identifies the interaction for the page and the tool, `expires_at` is in epoch seconds. The
        token needs no escaping in a URL. Raises UsageError for an anonymous caller, who cannot be
        distinguished from a victim, for a link that has expired, or is too long; and KeyServiceError.
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
        content = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": claims.principal_digest(jti, principal),
            "iat": now,
            "nbf": now,
            "exp": expires_at,
            "jti": jti,
            "key": key,
            "flow": flow_id,
        }
        try:
            return jws.mint(self.signer, LINK_TYP, content, max_length=MAX_LINK_LENGTH)
        except StateTooLarge as error:
            raise UsageError(
                f"a signed link has at most {MAX_LINK_LENGTH} characters, not {error.size}; use a shorter key"
            ) from None

    def open(self, principal: str | None, token: object) -> Link:
        """Return the content of a link for the page's visitor. Raises StateRejected, KeyServiceError."""
        with jws.denied_by_default():
            signed = jws.to_ascii(token, MAX_LINK_LENGTH)
            content, _ = jws.verify(signed, LINK_TYP, jws.key_finder(self.keys))
            claims.require_types(content, _TYPES, others=set())
            claims.check_times(content, now=self.clock(), skew_s=_SKEW_S)
            claims.check_parties(content, issuer=self.issuer, audience=self.audience, principal=principal)
            return Link(content["key"], content["flow"], content["exp"])
