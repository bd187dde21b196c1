"""`requestState` in both directions: seal what a call has learnt so far, open what a client brings back.

MCP 2026-07-28, basic/patterns/mrtr: the client carries the state and may change it, so the server must
protect it and check what it gets back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.errors import KeyServiceError, StateRejected
from mcp_roundtrip.state import claims, jws
from mcp_roundtrip.state.claims import Binding, Limits, OpenState
from mcp_roundtrip.state.keys import PublicKeys, Signer

TYP = "mcp-rs+jwt"


@dataclass(frozen=True, slots=True)
class RequestStateCodec:
    """Seals and opens `requestState` as a signed JWT. The client can read it, and cannot change or move it.

    `clock` returns epoch seconds, `token_id` a new unguessable id for every token.
    """

    signer: Signer
    keys: PublicKeys
    limits: Limits
    clock: Callable[[], float]
    token_id: Callable[[], str]

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
        content = claims.build(
            binding,
            payload,
            round_number=round,
            first_issued_at=first_issued_at,
            now=self.clock(),
            jti=self.token_id(),
            limits=self.limits,
        )
        return jws.mint(self.signer, TYP, content, max_length=self.limits.max_minted)

    def open(self, binding: Binding, token: object) -> OpenState:
        """The state in `token`, if it was sealed for `binding` and is current.

        Raises StateRejected for whatever else `token` may be, and KeyServiceError only when there is no
        public key to check it with. A token can be opened any number of times: single use needs a store.
        """
        try:
            content = jws.verify(token, TYP, self.keys, max_length=self.limits.max_presented)
            return claims.check(content, binding, now=self.clock(), limits=self.limits)
        except (StateRejected, KeyServiceError):
            raise
        except Exception as error:  # deny by default: no odd token may turn into a server error
            raise StateRejected(f"unexpected_{type(error).__name__}") from None
