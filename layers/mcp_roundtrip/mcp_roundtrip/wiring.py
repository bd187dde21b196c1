"""The composition root: the environment becomes ports, at the first request that needs them.

This is the one place where the package meets the process it runs in: its environment, its clocks, its
randomness and, through `aws`, its account.
"""

from __future__ import annotations

import os
import secrets
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from mcp_roundtrip import settings as settings_module
from mcp_roundtrip.auth import Authenticator
from mcp_roundtrip.errors import SettingsError
from mcp_roundtrip.server.ports import Observer, Policy, Ports
from mcp_roundtrip.settings import Settings
from mcp_roundtrip.telemetry import LogObserver

if TYPE_CHECKING:
    from mcp_roundtrip.state.codec import RequestStateCodec
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
    from mcp_roundtrip.state.claims import Limits
    from mcp_roundtrip.state.codec import RequestStateCodec

    signer, keys = _keys(settings)
    limits = Limits(round_ttl_s=settings.round_ttl_s, flow_ttl_s=settings.flow_ttl_s)
    return RequestStateCodec(signer, keys, limits, time.time, _token_id)


def _token_id() -> str:
    return secrets.token_hex(16)


@cache
def _kms() -> Any:
    from mcp_roundtrip.aws.kms import kms_client  # boto3 costs 130 ms

    return kms_client()


@cache
def _keys_for(key_arn: str, previous: tuple[str, ...]) -> tuple[Signer, PublicKeys]:
    from mcp_roundtrip.aws.kms import KmsPublicKeys, KmsSigner

    keys = KmsPublicKeys(_kms(), (key_arn, *previous), time.time)
    return KmsSigner(_kms(), key_arn, keys), keys


def _keys(settings: Settings) -> tuple[Signer, PublicKeys]:
    return _keys_for(settings.required("state_key_arn"), settings.previous_state_key_arns)


def _links(settings: Settings) -> Links:
    from mcp_roundtrip.state.links import Links

    signer, keys = _keys(settings)
    issuer, audience = settings.required("issuer"), settings.required("audience")
    return Links(signer, keys, issuer, audience, time.time, _token_id)


def _forwarder() -> Any:
    from mcp_roundtrip.aws.forwarder import LambdaForwarder  # boto3 costs 130 ms

    return LambdaForwarder.create()


def _function(settings: Settings, owner: str) -> str:
    function = (settings.owners or {}).get(owner)
    if function is None:
        raise SettingsError("MCP_OWNERS", f"names no function for {owner!r}")
    return function
