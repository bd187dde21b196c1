"""The stand-in for KMS, compared with moto and ministack: common behavior, behavior that moto lacks, and
refusals that only the stand-in has."""

import hashlib
import hmac
import http.client
import json
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    load_der_public_key,
)
from moto import mock_aws

from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.fake_kms import serve
from support.kms_clients import client, mac_key, running, signing_key

pytest_plugins = ["support.ministack"]

SIGN = {"SigningAlgorithm": "ECDSA_SHA_256"}
MAC = {"MacAlgorithm": "HMAC_SHA_256"}


@pytest.fixture
def strict_kms():
    return FakeKms()


@pytest.fixture
def kms(strict_kms):
    with running(strict_kms) as connected:
        yield connected


@pytest.fixture
def moto_kms():
    with mock_aws():
        yield client()


@pytest.fixture(params=["kms", "moto_kms", "ministack_kms"])
def emulators(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["kms", "ministack_kms"])
def strict(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def arn(kms):
    return signing_key(kms)


def bare(arn):
    """Return the key id of an ARN, because moto does not accept ARNs everywhere."""
    return arn.rpartition("/")[2]


def code(call, **members):
    with pytest.raises(ClientError) as refused:
        call(**members)
    return refused.value.response["Error"]["Code"]


# common behavior


def test_a_created_key_describes_itself(emulators):
    created = emulators.create_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]
    described = emulators.describe_key(KeyId=created["KeyId"])["KeyMetadata"]
    assert described["Arn"] == created["Arn"]
    assert described["KeySpec"] == "ECC_NIST_P256"
    assert described["KeyUsage"] == "SIGN_VERIFY"
    assert described["KeyState"] == "Enabled"
    assert described["Enabled"] is True


def test_a_raw_signature_verifies_with_the_public_key(emulators):
    arn = signing_key(emulators)
    answer = emulators.sign(KeyId=arn, Message=b"message", MessageType="RAW", **SIGN)
    public = load_der_public_key(emulators.get_public_key(KeyId=arn)["PublicKey"])
    public.verify(answer["Signature"], b"message", ec.ECDSA(hashes.SHA256()))
    assert answer["SigningAlgorithm"] == "ECDSA_SHA_256"


def test_verify_accepts_what_sign_signed(emulators):
    arn = signing_key(emulators)
    signature = emulators.sign(KeyId=arn, Message=b"message", **SIGN)["Signature"]
    assert emulators.verify(KeyId=arn, Message=b"message", Signature=signature, **SIGN)["SignatureValid"]


def test_a_mac_is_deterministic_and_depends_on_the_message(emulators):
    arn = mac_key(emulators)
    one, same, other = (
        emulators.generate_mac(KeyId=arn, Message=message, **MAC)["Mac"] for message in (b"a", b"a", b"b")
    )
    assert one == same != other
    assert len(one) == 32


def test_an_unknown_key_is_not_found(emulators):
    assert code(emulators.describe_key, KeyId="00000000-0000-0000-0000-000000000000") == "NotFoundException"


# moto hashes a digest again, and accepts wrong lengths, wrong signatures and withdrawn keys


def test_a_digest_is_signed_without_hashing(strict):
    arn = signing_key(strict)
    digest = hashlib.sha256(b"message").digest()
    answer = strict.sign(KeyId=arn, Message=digest, MessageType="DIGEST", **SIGN)
    public = load_der_public_key(strict.get_public_key(KeyId=arn)["PublicKey"])
    public.verify(answer["Signature"], b"message", ec.ECDSA(hashes.SHA256()))
    signed = {"KeyId": arn, "Signature": answer["Signature"], **SIGN}
    assert strict.verify(Message=b"message", **signed)["SignatureValid"]
    assert strict.verify(Message=digest, MessageType="DIGEST", **signed)["SignatureValid"]


@pytest.mark.parametrize("size", [1, 31, 33, 64])
def test_a_digest_of_another_length_is_refused(strict, size):
    members = {"KeyId": signing_key(strict), "Message": b"x" * size, "MessageType": "DIGEST"}
    assert code(strict.sign, **members, **SIGN) == "ValidationException"


def test_a_public_key_has_its_usage_and_algorithms(strict):
    answer = strict.get_public_key(KeyId=signing_key(strict))
    assert answer["KeySpec"] == "ECC_NIST_P256"
    assert answer["KeyUsage"] == "SIGN_VERIFY"
    assert answer["SigningAlgorithms"] == ["ECDSA_SHA_256"]


def test_responses_name_the_key_by_its_arn(strict):
    arn, mac_arn = signing_key(strict), mac_key(strict)
    strict.create_alias(AliasName="alias/state", TargetKeyId=arn)
    alias_arn = arn.partition("key/")[0] + "alias/state"
    for name in (arn, bare(arn), "alias/state", alias_arn):
        assert strict.get_public_key(KeyId=name)["KeyId"] == arn
        assert strict.sign(KeyId=name, Message=b"x", **SIGN)["KeyId"] == arn
    assert strict.generate_mac(KeyId=bare(mac_arn), Message=b"x", **MAC)["KeyId"] == mac_arn


TAMPERINGS = {
    "another message": lambda message, signature: (b"other", signature),
    "another signature": lambda message, signature: (message, signature[:-1] + bytes([signature[-1] ^ 1])),
    "no signature": lambda message, signature: (message, b"x"),
}


@pytest.mark.parametrize("tamper", TAMPERINGS.values(), ids=TAMPERINGS)
def test_a_wrong_signature_is_an_error(strict, tamper):
    arn = signing_key(strict)
    signature = strict.sign(KeyId=arn, Message=b"message", **SIGN)["Signature"]
    message, signature = tamper(b"message", signature)
    members = {"KeyId": arn, "Message": message, "Signature": signature}
    assert code(strict.verify, **members, **SIGN) == "KMSInvalidSignatureException"


WITHDRAWN = pytest.mark.parametrize(
    ("withdraw", "expected"),
    [("disable_key", "DisabledException"), ("schedule_key_deletion", "KMSInvalidStateException")],
)


@WITHDRAWN
def test_a_withdrawn_key_neither_signs_nor_makes_macs(strict, withdraw, expected):
    signing, mac = signing_key(strict), mac_key(strict)
    for arn in (signing, mac):
        getattr(strict, withdraw)(KeyId=arn)
    assert code(strict.sign, KeyId=signing, Message=b"x", **SIGN) == expected
    assert code(strict.verify, KeyId=signing, Message=b"x", Signature=b"x", **SIGN) == expected
    assert code(strict.generate_mac, KeyId=mac, Message=b"x", **MAC) == expected


def test_an_enabled_key_signs_again(strict):
    arn = signing_key(strict)
    strict.disable_key(KeyId=arn)
    strict.enable_key(KeyId=arn)
    assert strict.sign(KeyId=arn, Message=b"x", **SIGN)


def test_a_key_is_used_only_for_its_usage(strict):
    signing, mac = signing_key(strict), mac_key(strict)
    assert code(strict.sign, KeyId=mac, Message=b"x", **SIGN) == "InvalidKeyUsageException"
    assert code(strict.generate_mac, KeyId=signing, Message=b"x", **MAC) == "InvalidKeyUsageException"
    for algorithm in ("ECDSA_SHA_384", "RSASSA_PSS_SHA_256"):
        members = {"KeyId": signing, "Message": b"x", "SigningAlgorithm": algorithm}
        assert code(strict.sign, **members) == "InvalidKeyUsageException"
    members = {"KeyId": mac, "Message": b"x", "MacAlgorithm": "HMAC_SHA_512"}
    assert code(strict.generate_mac, **members) == "InvalidKeyUsageException"


def test_a_message_for_a_mac_has_at_most_4096_bytes(strict):
    arn = mac_key(strict)
    assert len(strict.generate_mac(KeyId=arn, Message=b"x" * 4096, **MAC)["Mac"]) == 32
    assert code(strict.generate_mac, KeyId=arn, Message=b"x" * 4097, **MAC) == "ValidationException"


def test_keys_of_another_account_or_region_are_not_found(strict):
    arn = signing_key(strict)
    for foreign in (arn.replace("us-east-1", "eu-west-1"), arn.replace(":0000", ":6666")):
        assert code(strict.sign, KeyId=foreign, Message=b"x", **SIGN) == "NotFoundException"


# a MAC under known key material


MATERIAL = bytes(range(32))


def test_a_mac_of_the_stand_in_is_hmac_sha_256_under_the_key_material(strict_kms, kms):
    answer = kms.generate_mac(KeyId=strict_kms.import_key(MATERIAL), Message=b"message", **MAC)
    assert answer["Mac"] == hmac.digest(MATERIAL, b"message", "sha256")


# refusals of the stand-in only: support/ministack.py lists the differences of ministack from AWS


@pytest.mark.parametrize("size", [1, 4096])
def test_messages_up_to_the_limit_are_signed(kms, arn, size):
    assert kms.sign(KeyId=arn, Message=b"x" * size, **SIGN)


def test_longer_messages_are_neither_signed_nor_verified(kms, arn):
    assert code(kms.sign, KeyId=arn, Message=b"x" * 4097, **SIGN) == "ValidationException"
    verify = {"KeyId": arn, "Message": b"x" * 4097, "Signature": b"x", **SIGN}
    assert code(kms.verify, **verify) == "ValidationException"


@WITHDRAWN
def test_the_public_key_of_a_withdrawn_key_is_not_returned(kms, arn, withdraw, expected):
    getattr(kms, withdraw)(KeyId=arn)
    assert code(kms.get_public_key, KeyId=arn) == expected


def test_a_mac_key_has_no_public_key(kms):
    # The API Reference lists this code and InvalidKeyUsageException, which ministack uses.
    assert code(kms.get_public_key, KeyId=mac_key(kms)) == "UnsupportedOperationException"


def test_calls_fail_the_configured_number_of_times(strict_kms, kms, arn):
    strict_kms.fail_next(2, operation="Sign")
    assert kms.get_public_key(KeyId=arn)
    for _ in range(2):
        assert code(kms.sign, KeyId=arn, Message=b"x", **SIGN) == "ThrottlingException"
    assert kms.sign(KeyId=arn, Message=b"x", **SIGN)


def test_refused_calls_are_counted(strict_kms, kms, arn):
    strict_kms.fail_next(1)
    code(kms.sign, KeyId=arn, Message=b"x", **SIGN)
    kms.sign(KeyId=arn, Message=b"x", **SIGN)
    assert strict_kms.calls == {"CreateKey": 1, "Sign": 2}


# HTTP


SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=x", "X-Amz-Target": "TrentService.Sign"}
BAD_REQUESTS = {
    "unsigned": ({"X-Amz-Target": "TrentService.Sign"}, b"{}", "MissingAuthenticationTokenException"),
    "not JSON": (SIGNED, b"{", "SerializationException"),
    "not Base64": (SIGNED, b'{"Message":"*"}', "SerializationException"),
    "an unknown operation": (
        SIGNED | {"X-Amz-Target": "TrentService.Encrypt"},
        b"{}",
        "UnknownOperationException",
    ),
    "another service": (SIGNED | {"X-Amz-Target": "Other.Sign"}, b"{}", "UnknownOperationException"),
    "no target": ({"Authorization": SIGNED["Authorization"]}, b"{}", "UnknownOperationException"),
    "too long": (SIGNED, b"x" * (1024 * 1024 + 1), "SerializationException"),
    "an unknown member": (SIGNED, b'{"Color":"red"}', "ValidationException"),
}


@pytest.mark.parametrize(("headers", "body", "expected"), BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_a_bad_request_is_answered_with_an_error(strict_kms, headers, body, expected):
    with serve(strict_kms) as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        assert response.status == 400
        assert json.loads(response.read())["__type"] == expected
        connection.close()
