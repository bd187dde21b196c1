"""`requestState` in both directions: seal what a call has learnt so far, open what a client brings back.

MCP 2026-07-28, basic/patterns/mrtr: the client carries the state and may change it, so the server must
protect it and check what it gets back. A state is a JWT, signed first and then encrypted (RFC 7519 §11.2);
without epoch keys it is only signed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state import claims, compact, jwe, jws
from mcp_roundtrip.state.certificates import Trust
from mcp_roundtrip.state.claims import Binding, Limits, OpenState
from mcp_roundtrip.state.epochs import EpochKeys
from mcp_roundtrip.state.keys import Signer

TYP = "mcp-rs+jwt"


@dataclass(frozen=True, slots=True)
class RequestStateCodec:
    """Seals and opens `requestState`. The client cannot change or move it, nor read it if it is encrypted.

    `signer` returns who signs now, `trust` knows whose signatures count. With `epochs`, states are encrypted,
    and accepted only if they are. `clock` returns epoch seconds, `random_bytes(n)` n unguessable bytes.
    """

    signer: Callable[[], Signer]
    trust: Trust
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
        """A token that holds the JSON value `payload` for `binding`.

        `first_issued_at` is that of the state this call opened, None in a flow's first round. Raises
        StateRejected (`flow_expired`) when the flow has had its time, StateTooLarge, and KeyServiceError.
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
            return jws.mint(self.signer(), TYP, content, max_length=max_length)
        key = self.epochs.current(now)
        signed = jws.mint(self.signer(), TYP, content, max_length=max_length, wrapped=key.wrapped)
        return jwe.encrypt(signed, key, self.random_bytes(jwe.IV_BYTES))

    def open(self, binding: Binding, token: object) -> OpenState:
        """The state in `token`, if it was sealed for `binding` and is current.

        Raises StateRejected for whatever else `token` may be, and KeyServiceError only when there is no key
        to check or open it with. A token can be opened any number of times: single use needs a store.
        """
        try:
            return self._open(binding, token)
        except (StateRejected, KeyServiceError):
            raise
        except Exception as error:  # deny by default: no odd token may turn into a server error
            raise StateRejected(f"unexpected_{type(error).__name__}") from None

    def _open(self, binding: Binding, token: object) -> OpenState:
        now, epochs = self.clock(), self.epochs
        signed = presented = compact.read(token, self.limits.max_presented)
        if epochs is not None:
            signed = jwe.decrypt(presented, TYP, lambda kid: epochs.find(kid, now))
        content, key = jws.verify(
            signed,
            TYP,
            lambda members: self.trust.key(
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
