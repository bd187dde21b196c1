"""Count the KMS requests of a busy execution environment, per state and per hour."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.aws.kms import KmsKey, KmsMacKey, KmsPublicKeys, KmsSigner
from mcp_roundtrip.aws.services import AwsClient
from mcp_roundtrip.state.certificates import Delegation, TrustedKeys
from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip.state.codec import STATE_TYP, RequestStateCodec
from mcp_roundtrip.state.jwe import EpochKeys
from mcp_roundtrip.state.jws import Backoff
from mcp_roundtrip_tools.run.services.kms import FakeKms, respond
from state_codecs import BINDING, CONFIGURATIONS
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
    return {
        title: _simulate(delegates=signing == "delegated", encrypts=encrypts)
        for title, (signing, encrypts) in CONFIGURATIONS.items()
    }


def _simulate(*, delegates: bool, encrypts: bool) -> KmsUsage:
    kms = FakeKms(region=REGION)
    with serve_stub(partial(respond, kms)) as url, closing(_client(url)) as client:
        clock = Clock()
        codec = _codec(kms, client, clock, delegates=delegates, encrypts=encrypts)
        kms.calls.clear()  # creating the keys is not counted
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
    account = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_CONFIG_FILE": os.devnull}
    return AwsClients(environment=account).client("kms", REGION, endpoint_url)


def _codec(
    kms: FakeKms, client: AwsClient, clock: Clock, *, delegates: bool, encrypts: bool
) -> RequestStateCodec:
    """Build the codec as `wiring` does in a function, except for the clock and the random numbers."""

    def arn_of_new_key(spec: str, usage: str) -> str:
        return str(kms.CreateKey(KeySpec=spec, KeyUsage=usage)["KeyMetadata"]["Arn"])

    limits, renewals = Limits(), Backoff(clock)
    key = KmsKey(client, arn_of_new_key("ECC_NIST_P256", "SIGN_VERIFY"), clock)
    root = KmsSigner(client, key)
    given = {
        "issuer": BINDING["issuer"],
        "limits": limits,
        "clock": clock,
        "random": lambda: HALFWAY,
        "renewals": renewals,
    }
    delegation = Delegation(
        root=root,
        audience=BINDING["audience"],
        random_bytes=secrets.token_bytes,
        on_issued=lambda jti, expires_at: None,
        **given,
    )
    epochs = None
    if encrypts:
        mac_key = KmsMacKey(client, arn_of_new_key("HMAC_256", "GENERATE_VERIFY_MAC"))
        epochs = EpochKeys([mac_key], STATE_TYP, **given)
    return RequestStateCodec(
        signer=delegation.signer if delegates else lambda: root,
        trusted_keys=TrustedKeys(KmsPublicKeys([key]), ()),
        epochs=epochs,
        limits=limits,
        clock=clock,
        random_bytes=secrets.token_bytes,
    )
