"""Seal and open `requestState`.

MCP 2026-07-28, basic/patterns/mrtr: the client carries the state and may change it, so the server must
protect it and verify it. A state is a JWT, signed and then encrypted (RFC 7519 §11.2); without epoch keys it
is only signed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import claims, jwe, jws
from mcp_roundtrip.state.claims import Binding, Limits, OpenState
from mcp_roundtrip.state.jwe import EpochKeys
from mcp_roundtrip.state.jws import Signer
from mcp_roundtrip.state.signing_key_certificates import TrustedKeys

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
