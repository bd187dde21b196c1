"""What a busy environment asks of KMS by the hour, whatever the number of its calls; and for each state."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3

from mcp_roundtrip.aws.kms import KmsKey, KmsMacKey, KmsPublicKeys, KmsSigner
from mcp_roundtrip.state.certificates import TrustedKeys
from mcp_roundtrip.state.claims import Binding, Limits
from mcp_roundtrip.state.codec import TYP, RequestStateCodec
from mcp_roundtrip.state.delegation import Delegation
from mcp_roundtrip.state.epochs import EpochKeys
from mcp_roundtrip.state.renewal import RenewalBackoff
from mcp_roundtrip_local.services.kms import FakeKms, serve
from states import BINDING, CONFIGURATIONS

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

HOURS, STATES = 8, 30
"""How long an environment is watched, and how many states it seals and opens in an hour."""

REGION = "us-east-1"
HALFWAY = 0.5
"""Of what is random: renewals come in the middle of the time that is left to chance."""


@dataclass(frozen=True, slots=True)
class Hour:
    """KMS requests by operation: for `each` state, and what an hour takes `besides`, on average."""

    each: Mapping[str, int]
    besides: Mapping[str, float]


def hours() -> dict[str, Hour]:
    """For each of CONFIGURATIONS."""
    return {
        title: _hour(delegates=signing == "delegated", encrypts=encrypts)
        for title, (signing, encrypts) in CONFIGURATIONS.items()
    }


def _hour(*, delegates: bool, encrypts: bool) -> Hour:
    kms = FakeKms(region=REGION)
    with serve(kms) as endpoint, closing(_client(endpoint.endpoint_url)) as client:
        clock = Clock()
        codec = _codec(client, clock, delegates=delegates, encrypts=encrypts)
        kms.calls.clear()  # the keys have been made
        rounds = [_round(codec, kms, clock) for _ in range(HOURS * STATES)]
    each = {operation: min(used[operation] for used in rounds) for operation in kms.calls}
    besides = {
        operation: (count - each[operation] * len(rounds)) / HOURS for operation, count in kms.calls.items()
    }
    return Hour(each, besides)


def _round(codec: RequestStateCodec, kms: FakeKms, clock: Clock) -> Counter[str]:
    """What sealing a state and opening it takes."""
    before = kms.calls.copy()
    binding = Binding(**BINDING)
    codec.open(binding, codec.seal(binding, {}, round=1, first_issued_at=None))
    clock.now += 3_600 / STATES
    return kms.calls - before


@dataclass
class Clock:
    """Epoch seconds, from the beginning of an hour."""

    now: float = 500_000 * 3_600

    def __call__(self) -> float:
        return self.now


def _client(endpoint_url: str) -> KMSClient:
    account = {"aws_access_key_id": "bench", "aws_secret_access_key": "bench"}
    return boto3.client("kms", region_name=REGION, endpoint_url=endpoint_url, **account)


def _codec(client: KMSClient, clock: Clock, *, delegates: bool, encrypts: bool) -> RequestStateCodec:
    """As in a function (`wiring`), but for the clock and what is random."""

    def arn_of_new_key(spec: str, usage: str) -> str:
        return client.create_key(KeySpec=spec, KeyUsage=usage)["KeyMetadata"]["Arn"]

    limits, renewals = Limits(), RenewalBackoff(clock)
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
        issued=lambda jti, expires_at: None,
        **given,
    )
    epochs = None
    if encrypts:
        mac_key = KmsMacKey(client, arn_of_new_key("HMAC_256", "GENERATE_VERIFY_MAC"))
        epochs = EpochKeys([mac_key], TYP, **given)
    return RequestStateCodec(
        signer=delegation.signer if delegates else lambda: root,
        trust=TrustedKeys(KmsPublicKeys([key]), ()),
        epochs=epochs,
        limits=limits,
        clock=clock,
        random_bytes=secrets.token_bytes,
    )
