"""`requestState`, decoded with the keys of this run: what a round sent to the client, and what it means.

The layer's own code verifies and decrypts. Two of its checks do not apply here: the binding to one request,
because the console shows a state by itself, and the times. Signature and certificate are verified as of the
time when the state was minted, so that an expired state can still be shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.protocol.canonical import MAX_DEPTH, parse_json
from mcp_roundtrip.state import claims as state_claims
from mcp_roundtrip.state import jwe, jws
from mcp_roundtrip.state.codec import STATE_TYP
from mcp_roundtrip_tools.console.requests import ConsoleError
from mcp_roundtrip_tools.console.state_keys import StateKeys

MAX_LENGTH: Final = state_claims.Limits().max_presented

_TYPES: Final[Mapping[str, type]] = {**state_claims.COMMON_TYPES, "rq": str, "rnd": int, "oiat": int}

REASONS: Final = {
    "not_a_string": "requestState must be a string.",
    "too_long": f"The state has more than {MAX_LENGTH} characters, so the server refuses it unread.",
    "malformed": "This is no token: a token has parts in Base64url, each in its only form, between dots.",
    "header": "The header of the token was changed: it is not one that this package writes.",
    "unknown_key": "The state was made with a key that this run does not have. Each make run has new keys.",
    "epoch": "The header names a key of a time from which no state can be.",
    "decryption": "The encrypted part was changed: header, initialization vector, ciphertext or tag. "
    "AES-GCM authenticates them together.",
    "signature": "The signature does not fit: the signed part, or the signature, was changed.",
    "payload": "The signed part is not a JSON object.",
    "claims": "A claim is missing, unknown or of the wrong type.",
    # Only of certificates: the times and the binding of a state are not checked here.
    "expired": "It had expired when the state was made.",
    "not_yet_valid": "It was not valid yet when the state was made.",
    "lifetime": "It is valid for longer than a certificate may be.",
    "wrong_issuer": "It is of another issuer.",
    "wrong_audience": "It is for another endpoint.",
    "key": "Its key is not a P-256 key.",
    "revoked": "It is revoked.",
}
"""What each reason of StateRejected means for a person who looks at a state."""


@dataclass(frozen=True, slots=True)
class VerifiedState:
    """The verified claims of a state. `keys` are those that verified it."""

    claims: Mapping[str, Any]
    keys: StateKeys


def open_state(
    token: object, candidates: Iterable[StateKeys], clock: Callable[[], float] = time.time
) -> VerifiedState:
    """Verify a state with the keys of the first candidate that made it. Raises ConsoleError (422)."""
    reason = "unknown_key"
    for keys in candidates:
        try:
            return VerifiedState(_verified_claims(token, keys, clock()), keys)
        except StateRejected as rejected:
            reason = _more_telling(reason, rejected.reason)
        except KeyServiceError as error:
            reason = _more_telling(reason, f"key_{error.reason}")
    raise refusal(reason)


def refusal(reason: str) -> ConsoleError:
    """Return the error for a reason of StateRejected."""
    is_certificate = reason.startswith("certificate_")
    text = REASONS.get(reason.removeprefix("certificate_"), f"The state is not valid: {reason}.")
    return ConsoleError(422, f"In its certificate: {text}" if is_certificate else text, reason=reason)


def _more_telling(reason: str, other: str) -> str:
    return other if reason == "unknown_key" else reason


def _verified_claims(token: object, keys: StateKeys, now: float) -> Mapping[str, Any]:
    signed = presented = jws.to_ascii(token, MAX_LENGTH)
    if keys.epochs is not None:
        epochs = keys.epochs
        signed = jwe.decrypt(presented, STATE_TYP, lambda kid: epochs.find(kid, now))
    minted_at = _unverified_iat(signed, now)

    def find_key(members: Mapping[str, Any]) -> jws.TrustedKey:
        return keys.trusted.find(members, issuer=keys.issuer, audience=keys.audience, now=minted_at, skew_s=5)

    content, _ = jws.verify(signed, STATE_TYP, find_key)
    optional = {"sub": str} if "sub" in content else {}
    state_claims.require_types(content, {**_TYPES, **optional}, others={"st"})
    return content


def _unverified_iat(signed: bytes, default: float) -> float:
    """Return when the token says that it was minted. The signature, verified next, covers it."""
    payload = jws.split(signed, 3)[1]
    try:
        iat = parse_json(jws.decode(payload), max_depth=2 * MAX_DEPTH)["iat"]
        return float(iat)
    except (ValueError, TypeError, KeyError, StateRejected, OverflowError):
        return default
