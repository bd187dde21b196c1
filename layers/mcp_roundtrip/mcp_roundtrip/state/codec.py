"""Seal and open `requestState`, and sign links for URL elicitation.

MCP 2026-07-28, basic/patterns/mrtr: the client carries the state and may change it, so the server must
protect it and verify it. A state is a JWT, signed and then encrypted (RFC 7519 §11.2); without epoch keys it
is only signed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from mcp_roundtrip.errors import StateRejected, UsageError
from mcp_roundtrip.internal_errors import StateTooLarge
from mcp_roundtrip.state import claims, jwe, jws
from mcp_roundtrip.state.claims import Binding, Limits, OpenState
from mcp_roundtrip.state.delegated_signing import TrustedKeys
from mcp_roundtrip.state.jwe import EpochKeys
from mcp_roundtrip.state.jws import PublicKeys, Signer

STATE_TYP = "mcp-rs+jwt"


class RequestStateCodec(Struct, frozen=True):
    """Seals and opens `requestState`. A client cannot change it or use it for another request.

    With `epochs`, states are encrypted, and unencrypted ones are refused. `clock` returns epoch seconds,
    `random_bytes(n)` n unguessable bytes.
    """

    signer: Callable[[], Signer]
    trusted_keys: TrustedKeys
    epochs: EpochKeys | None
    limits: Limits
    clock: Callable[[], float]
    random_bytes: Callable[[int], bytes]

    def seal(
        self,
        binding: Binding,
        payload: Any,
        *,
        round: int,  # noqa: A002 - the specification's word
        first_issued_at: int | None,
    ) -> str:
        """Return a token with the JSON value `payload`, bound to `binding`.

        `first_issued_at` is that of the opened state, None in the first round. Raises StateRejected
        (`flow_expired`), StateTooLarge, and KeyServiceError.
        """
        now, max_length = self.clock(), self.limits.max_minted
        content = claims.build(
            binding,
            payload,
            round_number=round,
            first_issued_at=first_issued_at,
            now=now,
            jti=self.random_bytes(16).hex(),
            limits=self.limits,
        )
        if self.epochs is None:
            return jws.mint(self.signer(), STATE_TYP, content, max_length=max_length)
        key = self.epochs.current(now)
        signed = jws.mint(
            self.signer(), STATE_TYP, content, max_length=max_length, encrypted_length=key.encrypted_length
        )
        return jwe.encrypt(signed, key, self.random_bytes(jwe.IV_BYTES))

    def open(self, binding: Binding, token: object) -> OpenState:
        """Return the state in `token` if it is valid for `binding` now.

        Raises StateRejected for any other token, and KeyServiceError only if there is no key to verify or
        decrypt it. A token can be opened any number of times: single use needs a store.
        """
        with jws.denied_by_default():
            now, epochs = self.clock(), self.epochs
            signed = presented = jws.to_ascii(token, self.limits.max_presented)
            if epochs is not None:
                signed = jwe.decrypt(presented, STATE_TYP, lambda kid: epochs.find(kid, now))
            content, key = jws.verify(
                signed,
                STATE_TYP,
                lambda members: self.trusted_keys.find(
                    members,
                    issuer=binding.issuer,
                    audience=binding.audience,
                    now=now,
                    skew_s=self.limits.skew_s,
                ),
            )
            state = claims.check(content, binding, now=now, limits=self.limits)
            if content["exp"] > key.expires_at:
                raise StateRejected("outlives_certificate")
            return state


# -- links --------------------------------------------------------------------------------------------------


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
