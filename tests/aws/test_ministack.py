"""Signatures by the KMS of ministack, and states in every configuration with its keys in two regions."""

import hashlib
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.aws.kms import MAX_RAW_BYTES, KmsKey, KmsSigner
from mcp_roundtrip_testing import FakeClock
from support.aws_clients import REGION
from support.kms_clients import signing_key
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


@pytest.mark.parametrize("size", [1, MAX_RAW_BYTES, MAX_RAW_BYTES + 1])
def test_a_signature_covers_the_message_whether_kms_gets_the_message_or_its_digest(kms, size):
    arn = signing_key(kms)
    raw = KmsSigner(kms, KmsKey(kms, arn, FakeClock())).sign(b"x" * size)
    answer = kms.verify(
        KeyId=arn,
        Message=hashlib.sha256(b"x" * size).digest(),
        MessageType="DIGEST",
        Signature=encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:])),
        SigningAlgorithm="ECDSA_SHA_256",
    )
    assert answer["SignatureValid"]


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
