"""The stand-in for KMS: what it has in common with ministack, and what it refuses as AWS does and ministack
does not (support/ministack.py lists the differences)."""

import hashlib
import hmac
import http.client
import json
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_der_public_key

from support.fake_kms import FailingKms, serve
from support.kms_clients import mac_key, running, signing_key

pytest_plugins = ["support.ministack"]

SIGN = {"SigningAlgorithm": "ECDSA_SHA_256"}
MAC = {"MacAlgorithm": "HMAC_SHA_256"}
LONG = b"x" * 4097


@pytest.fixture
def strict_kms():
    return FailingKms()


@pytest.fixture
def kms(strict_kms):
    with running(strict_kms) as connected:
        yield connected


@pytest.fixture(params=["kms", "ministack_kms"])
def emulator(request):
    return request.getfixturevalue(request.param)


def code(call, **members):
    with pytest.raises(ClientError) as refused:
        call(**members)
    return refused.value.response["Error"]["Code"]


def test_a_message_and_its_digest_have_signatures_of_the_same_kind(emulator):
    arn, digest = signing_key(emulator), hashlib.sha256(b"message").digest()
    described = emulator.get_public_key(KeyId=arn)
    assert (described["KeySpec"], described["KeyUsage"]) == ("ECC_NIST_P256", "SIGN_VERIFY")
    assert described["SigningAlgorithms"] == ["ECDSA_SHA_256"]
    public = load_der_public_key(described["PublicKey"])
    for sent in ({"Message": b"message"}, {"Message": digest, "MessageType": "DIGEST"}):
        answer = emulator.sign(KeyId=arn, **sent, **SIGN)
        assert answer["SigningAlgorithm"] == "ECDSA_SHA_256"
        public.verify(answer["Signature"], b"message", ec.ECDSA(hashes.SHA256()))
        signed = {"KeyId": arn, "Signature": answer["Signature"], **SIGN}
        assert emulator.verify(Message=b"message", **signed)["SignatureValid"]
        assert emulator.verify(Message=digest, MessageType="DIGEST", **signed)["SignatureValid"]


def test_a_mac_is_deterministic_and_depends_on_the_message(emulator):
    arn = mac_key(emulator)
    one, same, other = (
        emulator.generate_mac(KeyId=arn, Message=message, **MAC)["Mac"] for message in (b"a", b"a", b"b")
    )
    assert one == same != other
    assert len(one) == 32
    assert len(emulator.generate_mac(KeyId=arn, Message=LONG[1:], **MAC)["Mac"]) == 32


def test_responses_name_the_key_by_its_arn(emulator):
    arn, mac_arn = signing_key(emulator), mac_key(emulator)
    emulator.create_alias(AliasName="alias/state", TargetKeyId=arn)
    for name in (arn, arn.rpartition("/")[2], "alias/state", arn.partition("key/")[0] + "alias/state"):
        assert emulator.get_public_key(KeyId=name)["KeyId"] == arn
        assert emulator.sign(KeyId=name, Message=b"x", **SIGN)["KeyId"] == arn
    bare = mac_arn.rpartition("/")[2]
    assert emulator.generate_mac(KeyId=bare, Message=b"x", **MAC)["KeyId"] == mac_arn


WRONG = "KMSInvalidSignatureException"
USAGE = "InvalidKeyUsageException"
INVALID = "ValidationException"
UNKNOWN = "00000000-0000-0000-0000-000000000000"
REFUSED = {
    "an unknown key": ("sign", {"KeyId": UNKNOWN}, "NotFoundException"),
    "another message": ("verify", {"Message": b"other"}, WRONG),
    "no signature": ("verify", {"Signature": b"x"}, WRONG),
    "a digest that is too short": ("sign", {"Message": b"x" * 31, "MessageType": "DIGEST"}, INVALID),
    "a digest that is too long": ("sign", {"Message": b"x" * 33, "MessageType": "DIGEST"}, INVALID),
    "another curve": ("sign", {"SigningAlgorithm": "ECDSA_SHA_384"}, USAGE),
    "another algorithm": ("sign", {"SigningAlgorithm": "RSASSA_PSS_SHA_256"}, USAGE),
    "another MAC": ("generate_mac", {"MacAlgorithm": "HMAC_SHA_512"}, USAGE),
    "a long message for a MAC": ("generate_mac", {"Message": LONG}, INVALID),
}


def members_of(call, emulator):
    if call == "generate_mac":
        return {"KeyId": mac_key(emulator), "Message": b"message", **MAC}
    signed = {"KeyId": signing_key(emulator), "Message": b"message", **SIGN}
    return signed if call == "sign" else {**signed, "Signature": emulator.sign(**signed)["Signature"]}


@pytest.mark.parametrize(("call", "changes", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_aws_refuses_is_refused(emulator, call, changes, expected):
    assert code(getattr(emulator, call), **{**members_of(call, emulator), **changes}) == expected


def test_a_key_is_found_and_used_only_where_it_belongs(emulator):
    signing, mac = signing_key(emulator), mac_key(emulator)
    assert code(emulator.sign, KeyId=mac, Message=b"x", **SIGN) == USAGE
    assert code(emulator.generate_mac, KeyId=signing, Message=b"x", **MAC) == USAGE
    for foreign in (signing.replace("us-east-1", "eu-west-1"), signing.replace(":0000", ":6666")):
        assert code(emulator.sign, KeyId=foreign, Message=b"x", **SIGN) == "NotFoundException"


WITHDRAWN = {"disable_key": "DisabledException", "schedule_key_deletion": "KMSInvalidStateException"}


@pytest.mark.parametrize(("withdraw", "expected"), WITHDRAWN.items())
def test_a_withdrawn_key_neither_signs_nor_makes_macs(emulator, withdraw, expected):
    for call in ("sign", "verify", "generate_mac"):
        members = members_of(call, emulator)
        getattr(emulator, withdraw)(KeyId=members["KeyId"])
        assert code(getattr(emulator, call), **members) == expected
        if withdraw == "disable_key":
            emulator.enable_key(KeyId=members["KeyId"])
            assert getattr(emulator, call)(**members)


def test_a_mac_of_the_stand_in_is_hmac_sha_256_under_the_key_material(strict_kms, kms):
    material = bytes(range(32))
    answer = kms.generate_mac(KeyId=strict_kms.import_key(material), Message=b"message", **MAC)
    assert answer["Mac"] == hmac.digest(material, b"message", "sha256")


# refusals of the stand-in only


def test_messages_up_to_the_limit_are_signed_and_longer_ones_neither_signed_nor_verified(kms):
    arn = signing_key(kms)
    for size in (1, 4096):
        assert kms.sign(KeyId=arn, Message=b"x" * size, **SIGN)
    assert code(kms.sign, KeyId=arn, Message=LONG, **SIGN) == "ValidationException"
    assert code(kms.verify, KeyId=arn, Message=LONG, Signature=b"x", **SIGN) == "ValidationException"


def test_the_public_key_of_a_withdrawn_key_or_of_a_mac_key_is_not_returned(kms):
    for withdraw, expected in WITHDRAWN.items():
        arn = signing_key(kms)
        getattr(kms, withdraw)(KeyId=arn)
        assert code(kms.get_public_key, KeyId=arn) == expected
    # The API Reference lists this code and InvalidKeyUsageException, which ministack uses.
    assert code(kms.get_public_key, KeyId=mac_key(kms)) == "UnsupportedOperationException"


AUTHORIZATION = {"Authorization": "AWS4-HMAC-SHA256 Credential=x"}
TARGET = {"X-Amz-Target": "TrentService.Sign"}
SIGNED = AUTHORIZATION | TARGET
BAD_REQUESTS = {
    "not JSON": (SIGNED, b"{", "SerializationException"),
    "not Base64": (SIGNED, b'{"Message":"*"}', "SerializationException"),
    "unknown": (SIGNED | {"X-Amz-Target": "TrentService.Encrypt"}, b"{}", "UnknownOperationException"),
    "another service": (SIGNED | {"X-Amz-Target": "Other.Sign"}, b"{}", "UnknownOperationException"),
    "no target": (AUTHORIZATION, b"{}", "UnknownOperationException"),
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
