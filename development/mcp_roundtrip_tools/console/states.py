"""`requestState`, decrypted and verified with the keys of this run.

The layer's own code verifies and decrypts. Two of its checks do not apply here: the binding to one request,
because the console shows a state by itself, and the times. Signature and certificate are verified as of the
time when the state was minted, so that an expired state can still be shown. The keys are read from the fake
KMS directly: a state that the console shows causes no call that is counted or recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.aws.kms import KmsPublicKeys, PinnedKey, PublicHalf
from mcp_roundtrip.deployment.settings import Settings, load_settings
from mcp_roundtrip.deployment.state_codec_factory import key_arns
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError
from mcp_roundtrip.protocol.canonical import MAX_DEPTH, parse_json
from mcp_roundtrip.state import claims as state_claims
from mcp_roundtrip.state import jwe, jws
from mcp_roundtrip.state.certificates import TrustedKeys
from mcp_roundtrip.state.codec import STATE_TYP
from mcp_roundtrip_testing.ports import LocalMacKey
from mcp_roundtrip_tools.console.requests import ConsoleError
from mcp_roundtrip_tools.run.services.kms import FakeKms, KmsFault

MAX_LENGTH: Final = state_claims.Limits().max_presented

_TYPES: Final[Mapping[str, type]] = {**state_claims.COMMON_TYPES, "rq": str, "rnd": int, "oiat": int}

_YEARS_S: Final = 10 * 366 * 86_400
"""States of any age are shown, so keys of any epoch are derived."""


@dataclass(frozen=True, slots=True)
class StateKeys:
    """The keys of a deployment's states. `epochs` is None if its states are not encrypted."""

    issuer: str
    audience: str
    trusted: TrustedKeys
    epochs: jwe.EpochKeys | None


@dataclass(frozen=True, slots=True)
class VerifiedState:
    """The verified claims of a state."""

    claims: Mapping[str, Any]
    is_encrypted: bool


def state_keys(environments: Iterable[Mapping[str, str]], kms: FakeKms) -> Iterator[StateKeys]:
    """Yield the keys of functions with these environment variables, each set of keys once."""
    seen: set[tuple[object, ...]] = set()
    for environment in environments:
        try:
            settings = load_settings(environment)
            signing = key_arns(settings, "state_key_arn", "trusted_state_key_arns")
            macs = key_arns(settings, "state_encryption_key_arn", "trusted_state_encryption_key_arns")
            issuer, audience = settings.state_issuer, settings.required("audience")
            name = (issuer, audience, settings.state_encryption, signing, macs)
            if signing and name not in seen:
                seen.add(name)
                public = [PinnedKey(arn, PublicHalf.from_der(kms.key(arn).public_der())) for arn in signing]
                trusted = TrustedKeys(KmsPublicKeys(public), settings.revoked_certificates)
                is_encrypted = settings.state_encryption == "enabled"
                epochs = _epochs(settings, macs, kms) if is_encrypted else None
                yield StateKeys(issuer, audience, trusted, epochs)
        except (SettingsError, KmsFault):  # a function without states, or with keys that are elsewhere
            continue


def _epochs(settings: Settings, arns: Iterable[str], kms: FakeKms) -> jwe.EpochKeys:
    settings.required("state_encryption_key_arn")
    return jwe.EpochKeys(
        [LocalMacKey(arn.rpartition("/")[2], kms.key(arn).secret) for arn in arns],
        STATE_TYP,
        state_claims.Limits(round_ttl_s=_YEARS_S),
        issuer=settings.state_issuer,
        clock=time.time,
        random=lambda: 0.5,
        renewals=jws.Backoff(time.time),
    )


def open_state(
    token: object, candidates: Iterable[StateKeys], clock: Callable[[], float] = time.time
) -> VerifiedState:
    """Verify a state with the keys of the first candidate that made it. Raises ConsoleError (422)."""
    reason = "unknown_key"
    for keys in candidates:
        try:
            return VerifiedState(_verified_claims(token, keys, clock()), keys.epochs is not None)
        except (StateRejected, KeyServiceError) as error:
            # Other keys say less about a state than those that have made it.
            reason = error.reason if reason == "unknown_key" else reason
    raise refusal(reason)


def refusal(reason: str) -> ConsoleError:
    """Return the error for a reason of StateRejected."""
    text = "This run has no key of the state." if reason == "unknown_key" else "The state was changed."
    return ConsoleError(422, f"{text} The server logs the reason {reason!r}.", reason=reason)


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
        return float(parse_json(jws.decode(payload), max_depth=2 * MAX_DEPTH)["iat"])
    except (ValueError, TypeError, KeyError, StateRejected, OverflowError):
        return default
