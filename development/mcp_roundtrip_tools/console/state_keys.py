"""The keys of the running template that protect states, for reading states in this process.

They are read from the fake KMS directly: a state that the console shows causes no call that is counted or
recorded.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mcp_roundtrip.aws.kms import KmsPublicKeys, PinnedKey, PublicHalf
from mcp_roundtrip.deployment.settings import Settings, load_settings
from mcp_roundtrip.deployment.state_codec_factory import key_arns
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.state.certificates import TrustedKeys
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.codec import STATE_TYP
from mcp_roundtrip.state.jwe import EpochKeys
from mcp_roundtrip.state.jws import RenewalBackoff
from mcp_roundtrip_testing.ports import LocalMacKey
from mcp_roundtrip_tools.run.services.kms import FakeKms, KmsFault

_YEARS_S: Final = 10 * 366 * 86_400
"""States of any age are shown, so keys of any epoch are derived."""


@dataclass(frozen=True, slots=True)
class StateKeys:
    """The keys of a deployment's states. `epochs` is None if its states are not encrypted."""

    issuer: str
    audience: str
    trusted: TrustedKeys
    epochs: EpochKeys | None


def state_keys(environments: Iterable[Mapping[str, str]], kms: FakeKms) -> Iterator[StateKeys]:
    """Yield the keys of functions with these environment variables, each set of keys once."""
    seen: set[tuple[str, ...]] = set()
    for environment in environments:
        try:
            settings = load_settings(environment)
            name = _name(settings)
            if name not in seen:
                seen.add(name)
                yield _keys(settings, kms)
        except (SettingsError, KmsFault):  # a function without states, or with keys that are elsewhere
            continue


def _name(settings: Settings) -> tuple[str, ...]:
    return (
        settings.state_issuer,
        settings.required("audience"),
        settings.state_encryption,
        *_signing_arns(settings),
        *_encryption_arns(settings),
    )


def _keys(settings: Settings, kms: FakeKms) -> StateKeys:
    public = [
        PinnedKey(arn, PublicHalf.from_der(kms.key(arn).public_der())) for arn in _signing_arns(settings)
    ]
    is_encrypted = settings.state_encryption == "enabled"
    return StateKeys(
        settings.state_issuer,
        settings.required("audience"),
        TrustedKeys(KmsPublicKeys(public), settings.revoked_certificates),
        _epochs(settings, kms) if is_encrypted else None,
    )


def _epochs(settings: Settings, kms: FakeKms) -> EpochKeys:
    mac_keys = [
        LocalMacKey(arn.rpartition("/")[2], kms.key(arn).secret) for arn in _encryption_arns(settings)
    ]
    return EpochKeys(
        mac_keys,
        STATE_TYP,
        Limits(round_ttl_s=_YEARS_S),
        issuer=settings.state_issuer,
        clock=time.time,
        random=lambda: 0.5,
        renewals=RenewalBackoff(time.time),
    )


def _signing_arns(settings: Settings) -> tuple[str, ...]:
    settings.required("state_key_arn")
    return key_arns(settings, "state_key_arn", "trusted_state_key_arns")


def _encryption_arns(settings: Settings) -> tuple[str, ...]:
    if settings.state_encryption != "enabled":
        return ()
    settings.required("state_encryption_key_arn")
    return key_arns(settings, "state_encryption_key_arn", "trusted_state_encryption_key_arns")
