"""The composition root: the environment becomes ports, at the first request that needs them.

This is the one place where the package meets the process it runs in: its environment, its clocks, its
randomness and, through `aws`, its account.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from mcp_roundtrip import settings as settings_module
from mcp_roundtrip.auth import Authenticator
from mcp_roundtrip.errors import SettingsError
from mcp_roundtrip.server.ports import Observer, Policy, Ports
from mcp_roundtrip.settings import Settings, StateSigning
from mcp_roundtrip.telemetry import LogObserver

if TYPE_CHECKING:
    from mcp_roundtrip.aws.kms import PinnedKey
    from mcp_roundtrip.state.claims import Limits
    from mcp_roundtrip.state.codec import RequestStateCodec
    from mcp_roundtrip.state.epochs import EpochKeys
    from mcp_roundtrip.state.keys import PublicKeys, Signer
    from mcp_roundtrip.state.links import Links


@cache
def observer() -> Observer:
    """The process's observer."""
    return LogObserver()


@cache
def ports() -> Ports:
    """The process's ports. Raises SettingsError, and does so again at the next request."""
    return make_ports(settings_module.load(os.environ))


def make_ports(settings: Settings) -> Ports:
    """Ports on AWS for these settings."""
    states = cache(lambda: _codec(settings))
    links = cache(lambda: _links(settings))
    forward = cache(_forwarder)
    return Ports(
        policy=Policy(
            Authenticator(settings.auth_mode, settings.principal_context_key),
            settings.allowed_origins,
            settings.max_rounds,
            lambda: settings.required("issuer"),
            lambda: settings.required("audience"),
        ),
        observer=observer(),
        clock=time.time,
        clock_ms=lambda: time.monotonic() * 1000,
        random_bytes=secrets.token_bytes,
        states=states,
        links=links,
        forward=lambda owner, event, custom: forward()(_function(settings, owner), event, custom),
    )


def _codec(settings: Settings) -> RequestStateCodec:
    from mcp_roundtrip.state.certificates import Trust
    from mcp_roundtrip.state.claims import Limits
    from mcp_roundtrip.state.codec import RequestStateCodec

    signer, keys = _keys(settings)
    limits = Limits(round_ttl_s=settings.round_ttl_s, flow_ttl_s=settings.flow_ttl_s)
    return RequestStateCodec(
        signer=_delegation(settings, signer, limits) if _delegates(settings) else lambda: signer,
        trust=Trust(keys, settings.revoked_certificates),
        epochs=_epochs(settings, limits),
        limits=limits,
        clock=time.time,
        random_bytes=secrets.token_bytes,
    )


def _delegates(settings: Settings) -> bool:
    return settings.state_signing is StateSigning.DELEGATED


def _delegation(settings: Settings, root: Signer, limits: Limits) -> Callable[[], Signer]:
    from mcp_roundtrip.state.delegation import Delegation

    return Delegation(
        root=root,
        issuer=settings.required("issuer"),
        audience=settings.required("audience"),
        limits=limits,
        clock=time.time,
        random_bytes=secrets.token_bytes,
        random=_random,
        issued=lambda jti, end: observer().record("certificate_issued", certificate=jti, expires_at=end),
    ).signer


def _epochs(settings: Settings, limits: Limits) -> EpochKeys | None:
    if settings.state_encryption_key_arn is None:
        return None
    from mcp_roundtrip.aws.kms import KmsMacKey
    from mcp_roundtrip.state.codec import TYP
    from mcp_roundtrip.state.epochs import EpochKeys

    arns = settings.key_arns("state_encryption_key_arn", "trusted_state_encryption_key_arns")
    return EpochKeys([KmsMacKey(_kms(), arn) for arn in arns], TYP, limits, _random)


def _random() -> float:
    """From the kernel: the state of random.random is copied into every environment of one snapshot."""
    return secrets.SystemRandom().random()


@cache
def _kms() -> Any:
    from mcp_roundtrip.aws.kms import kms_client  # boto3 costs 130 ms

    return kms_client()


def _keys(settings: Settings) -> tuple[Signer, PublicKeys]:
    settings.required("state_key_arn")
    arns = settings.key_arns("state_key_arn", "trusted_state_key_arns")
    return _keys_for(arns, tuple(settings.state_public_keys.items()))


@cache
def _keys_for(arns: tuple[str, ...], pinned: tuple[tuple[str, bytes], ...]) -> tuple[Signer, PublicKeys]:
    from mcp_roundtrip.aws.kms import KmsKey, KmsPublicKeys, KmsSigner

    public_keys = dict(pinned)
    keys = [_pinned(arn, public_keys) if public_keys else KmsKey(_kms(), arn, time.time) for arn in arns]
    return KmsSigner(_kms(), keys[0]), KmsPublicKeys(keys)


def _pinned(arn: str, public_keys: Mapping[str, bytes]) -> PinnedKey:
    from mcp_roundtrip.aws.kms import PinnedKey, PublicHalf

    try:
        return PinnedKey(arn, PublicHalf.from_der(public_keys[arn.rpartition("/")[2]]))
    except KeyError:
        raise SettingsError("MCP_STATE_PUBLIC_KEYS", f"has no public key for {arn}") from None
    except ValueError as error:
        raise SettingsError("MCP_STATE_PUBLIC_KEYS", f"{arn}: {error}") from None


def _links(settings: Settings) -> Links:
    from mcp_roundtrip.state.links import Links

    # KMS itself signs links, with either kind of signing: a link may outlast a certificate.
    signer, keys = _keys(settings)
    issuer, audience = settings.required("issuer"), settings.required("audience")
    return Links(signer, keys, issuer, audience, time.time, secrets.token_bytes)


def _forwarder() -> Any:
    from mcp_roundtrip.aws.forwarder import LambdaForwarder  # boto3 costs 130 ms

    return LambdaForwarder.create()


def _function(settings: Settings, owner: str) -> str:
    function = (settings.owners or {}).get(owner)
    if function is None:
        raise SettingsError("MCP_OWNERS", f"names no function for {owner!r}")
    return function
