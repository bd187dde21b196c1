"""Count the KMS requests of a busy execution environment, per state and per hour."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import measure
from mcp_roundtrip.aws.client_interface import AwsClient
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment import state_codec_factory
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.deployment.state_codec_factory import StateProtection
from mcp_roundtrip.state.claims import Binding
from mcp_roundtrip.state.codec import RequestStateCodec
from mcp_roundtrip_tools.run.services.kms import FakeKms, respond
from state_codecs import BINDING, CONFIGURATIONS, settings_with_keys
from stub_server import serve_stub

HOURS, STATES_PER_HOUR = 8, 30
"""Simulated time, and the states that are sealed and opened in each hour."""

REGION = "us-east-1"
HALFWAY = 0.5
"""The value of every random number: renewals happen in the middle of their random interval."""


@dataclass(frozen=True, slots=True)
class KmsUsage:
    """KMS requests by operation: for each state, and per hour regardless of the number of states."""

    per_state: Mapping[str, int]
    per_hour: Mapping[str, float]


def measure_kms_usage() -> dict[str, KmsUsage]:
    """Simulate each of CONFIGURATIONS."""
    return {title: _simulate(title) for title in CONFIGURATIONS}


def _simulate(configuration: str) -> KmsUsage:
    kms = FakeKms(region=REGION)
    settings = settings_with_keys(kms)[configuration]
    with serve_stub(partial(respond, kms)) as url:
        client, clock = _client(url), Clock()
        with closing(client.connections):
            codec = _codec(client, clock, settings)
            rounds = [_round(codec, kms, clock) for _ in range(HOURS * STATES_PER_HOUR)]
    per_state = {operation: min(used[operation] for used in rounds) for operation in kms.calls}
    per_hour = {
        operation: (count - per_state[operation] * len(rounds)) / HOURS
        for operation, count in kms.calls.items()
    }
    return KmsUsage(per_state, per_hour)


def _round(codec: RequestStateCodec, kms: FakeKms, clock: Clock) -> Counter[str]:
    """Seal and open a state; return the KMS requests."""
    before = kms.calls.copy()
    binding = Binding(**BINDING)
    codec.open(binding, codec.seal(binding, {}, round=1, first_issued_at=None))
    clock.now += 3_600 / STATES_PER_HOUR
    return kms.calls - before


@dataclass
class Clock:
    """A clock in epoch seconds that starts at a full hour."""

    now: float = 500_000 * 3_600

    def __call__(self) -> float:
        return self.now


def _client(endpoint_url: str) -> AwsClient:
    account = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
    place = {"AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": endpoint_url}
    return AwsClients(environment={**account, **place}).client("kms")


def _codec(client: AwsClient, clock: Clock, settings: Mapping[str, str]) -> RequestStateCodec:
    """Return the codec of a function with these settings, except for the clock and the random numbers."""
    given = load_settings({**measure.ENVIRONMENT, **settings})
    clients: Any = SimpleNamespace(client=lambda service: client)
    protection = StateProtection(given, clients, clock, secrets.token_bytes, lambda jti, end: None)
    with patch.object(state_codec_factory, "kernel_random", lambda: HALFWAY):
        return protection.codec
