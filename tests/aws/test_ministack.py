"""Signatures by the KMS of ministack, and states in every configuration with its keys in two regions."""

from dataclasses import replace

import pytest

from mcp_roundtrip.aws.clients import AwsClients
from support.aws_clients import REGION
from support.tokens import BINDING

pytest_plugins = ["support.ministack"]

ANOTHER_REGION = "eu-west-1"
MAC_KEY = {"KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC"}
SIGNING_KEY = {"KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY"}


@pytest.fixture
def kms(ministack_kms):
    return ministack_kms


def seal(codec, payload=None):
    return codec.seal(BINDING, payload, round=1, first_issued_at=None)


def test_replica_keys_open_the_states_of_another_region(deployed, clock, ministack, kms, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", ANOTHER_REGION)
    monkeypatch.setenv("AWS_ENDPOINT_URL", ministack)
    elsewhere = AwsClients().client("kms")
    signing, mac = (replicated(kms, **kind) for kind in (SIGNING_KEY, MAC_KEY))
    here, there = (
        replace(deployed, keys=[key], mac_keys=[mac_key] if deployed.mac_keys else []).environment(
            each, clock
        )
        for each, key, mac_key in zip((kms, elsewhere), signing, mac, strict=True)
    )
    assert there.open(BINDING, seal(here, "from here")).payload == "from here"
    assert here.open(BINDING, seal(there, "from there")).payload == "from there"
    elsewhere.close()


def replicated(kms, **kind):
    """Return the ARNs of a multi-Region key and of its replica."""
    arn = kms.create_key(MultiRegion=True, **kind)["KeyMetadata"]["Arn"]
    replica = kms.replicate_key(KeyId=arn, ReplicaRegion=ANOTHER_REGION)["ReplicaKeyMetadata"]["Arn"]
    assert replica == arn.replace(REGION, ANOTHER_REGION)
    return arn, replica
