"""The stand-in for KMS: over it and moto what moto does faithfully, over it alone what it refuses."""

import http.client
import json
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_public_key,
)
from moto import mock_aws

from mcp_roundtrip.local.kms import FakeKms, KmsFault, serve
from support.kms import client, running, signing_key

SIGN = {"SigningAlgorithm": "ECDSA_SHA_256"}
MAC = {"MacAlgorithm": "HMAC_SHA_256"}


@pytest.fixture
def fake():
    return FakeKms()


@pytest.fixture
def kms(fake):
    with running(fake) as connected:
        yield connected


@pytest.fixture(params=["stand-in", "moto"])
def either(request, fake):
    if request.param == "moto":
        with mock_aws():
            yield client()
    else:
        with running(fake) as connected:
            yield connected


@pytest.fixture
def arn(kms):
    return signing_key(kms)


def mac_key(kms):
    return kms.create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")["KeyMetadata"]["Arn"]


def bare(arn):
    """The key's id alone: moto does not take an ARN everywhere."""
    return arn.rpartition("/")[2]


def code(call, **members):
    with pytest.raises(ClientError) as refused:
        call(**members)
    return refused.value.response["Error"]["Code"]


# what both do


def test_a_created_key_describes_itself(either):
    created = either.create_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]
    described = either.describe_key(KeyId=created["KeyId"])["KeyMetadata"]
    assert described["Arn"] == created["Arn"]
    assert described["KeySpec"] == "ECC_NIST_P256"
    assert described["KeyUsage"] == "SIGN_VERIFY"
    assert described["KeyState"] == "Enabled"
    assert described["Enabled"] is True


def test_a_raw_signature_verifies_with_the_public_key(either):
    arn = signing_key(either)
    answer = either.sign(KeyId=arn, Message=b"message", MessageType="RAW", **SIGN)
    public = load_der_public_key(either.get_public_key(KeyId=arn)["PublicKey"])
    public.verify(answer["Signature"], b"message", ec.ECDSA(hashes.SHA256()))
    assert answer["SigningAlgorithm"] == "ECDSA_SHA_256"


def test_verify_accepts_what_sign_signed(either):
    arn = signing_key(either)
    signature = either.sign(KeyId=arn, Message=b"message", **SIGN)["Signature"]
    assert either.verify(KeyId=arn, Message=b"message", Signature=signature, **SIGN)["SignatureValid"]


def test_a_mac_is_the_same_each_time_and_another_for_another_message(either):
    arn = mac_key(either)
    one, same, other = (
        either.generate_mac(KeyId=arn, Message=message, **MAC)["Mac"] for message in (b"a", b"a", b"b")
    )
    assert one == same != other
    assert len(one) == 32


def test_an_alias_stands_for_its_key_and_can_be_moved(either):
    first, second = signing_key(either), signing_key(either)
    either.create_alias(AliasName="alias/state", TargetKeyId=first)
    assert either.describe_key(KeyId="alias/state")["KeyMetadata"]["Arn"] == first
    either.update_alias(AliasName="alias/state", TargetKeyId=second)
    assert either.describe_key(KeyId="alias/state")["KeyMetadata"]["Arn"] == second


def test_an_unknown_key_is_not_found(either):
    assert code(either.describe_key, KeyId="00000000-0000-0000-0000-000000000000") == "NotFoundException"


def test_disabling_and_enabling_show_in_the_state(either):
    arn = bare(signing_key(either))
    either.disable_key(KeyId=arn)
    assert either.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "Disabled"
    either.enable_key(KeyId=arn)
    assert either.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "Enabled"


def test_scheduling_deletion_shows_in_the_state(either):
    arn = bare(signing_key(either))
    assert either.schedule_key_deletion(KeyId=arn, PendingWindowInDays=7)["DeletionDate"]
    assert either.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "PendingDeletion"


# what only the stand-in refuses


def test_a_digest_is_signed_as_it_is(kms, arn):
    digest = hashes.Hash(hashes.SHA256())
    digest.update(b"message")
    answer = kms.sign(KeyId=arn, Message=digest.finalize(), MessageType="DIGEST", **SIGN)
    public = load_der_public_key(kms.get_public_key(KeyId=arn)["PublicKey"])
    public.verify(answer["Signature"], b"message", ec.ECDSA(hashes.SHA256()))
    assert kms.verify(KeyId=arn, Message=b"message", Signature=answer["Signature"], **SIGN)["SignatureValid"]


def test_a_public_key_says_what_it_is_for(kms, arn):
    answer = kms.get_public_key(KeyId=arn)
    assert answer["KeySpec"] == "ECC_NIST_P256"
    assert answer["KeyUsage"] == "SIGN_VERIFY"
    assert answer["SigningAlgorithms"] == ["ECDSA_SHA_256"]


def test_answers_name_the_key_by_its_arn(kms, arn):
    kms.create_alias(AliasName="alias/state", TargetKeyId=arn)
    alias_arn = arn.partition("key/")[0] + "alias/state"
    for name in (arn, bare(arn), "alias/state", alias_arn):
        assert kms.get_public_key(KeyId=name)["KeyId"] == arn
        assert kms.sign(KeyId=name, Message=b"x", **SIGN)["KeyId"] == arn


@pytest.mark.parametrize("size", [1, 4096])
def test_messages_up_to_the_limit_are_taken(kms, arn, size):
    assert kms.sign(KeyId=arn, Message=b"x" * size, **SIGN)
    assert kms.generate_mac(KeyId=mac_key(kms), Message=b"x" * size, **MAC)


def test_longer_messages_are_refused(kms, arn):
    assert code(kms.sign, KeyId=arn, Message=b"x" * 4097, **SIGN) == "ValidationException"
    verify = {"KeyId": arn, "Message": b"x" * 4097, "Signature": b"x", **SIGN}
    assert code(kms.verify, **verify) == "ValidationException"
    assert code(kms.generate_mac, KeyId=mac_key(kms), Message=b"x" * 4097, **MAC) == "ValidationException"


@pytest.mark.parametrize("size", [1, 31, 33, 64])
def test_a_digest_of_another_length_is_refused(kms, arn, size):
    members = {"KeyId": arn, "Message": b"x" * size, "MessageType": "DIGEST"}
    assert code(kms.sign, **members, **SIGN) == "ValidationException"


def test_a_wrong_signature_is_an_error(kms, arn):
    signature = kms.sign(KeyId=arn, Message=b"message", **SIGN)["Signature"]
    members = {"KeyId": arn, "Message": b"other", "Signature": signature}
    assert code(kms.verify, **members, **SIGN) == "KMSInvalidSignatureException"


@pytest.mark.parametrize("operation", ["sign", "get_public_key"])
@pytest.mark.parametrize(
    ("withdraw", "expected"),
    [("disable_key", "DisabledException"), ("schedule_key_deletion", "KMSInvalidStateException")],
)
def test_a_withdrawn_key_does_nothing(kms, arn, operation, withdraw, expected):
    getattr(kms, withdraw)(KeyId=arn)
    members = {"Message": b"x", **SIGN} if operation == "sign" else {}
    assert code(getattr(kms, operation), KeyId=arn, **members) == expected


def test_an_enabled_key_signs_again(kms, arn):
    kms.disable_key(KeyId=arn)
    kms.enable_key(KeyId=arn)
    assert kms.sign(KeyId=arn, Message=b"x", **SIGN)


def test_a_key_pending_deletion_is_neither_enabled_nor_disabled_nor_scheduled_again(kms, arn):
    kms.schedule_key_deletion(KeyId=arn)
    for operation in (kms.enable_key, kms.disable_key, kms.schedule_key_deletion):
        assert code(operation, KeyId=arn) == "KMSInvalidStateException"


@pytest.mark.parametrize("days", [6, 31])
def test_the_waiting_period_of_a_deletion_is_bounded(kms, arn, days):
    assert code(kms.schedule_key_deletion, KeyId=arn, PendingWindowInDays=days) == "ValidationException"


def test_a_key_is_used_for_its_usage_alone(kms, arn):
    hmac = mac_key(kms)
    assert code(kms.sign, KeyId=hmac, Message=b"x", **SIGN) == "InvalidKeyUsageException"
    assert code(kms.generate_mac, KeyId=arn, Message=b"x", **MAC) == "InvalidKeyUsageException"
    assert code(kms.get_public_key, KeyId=hmac) == "UnsupportedOperationException"
    wrong = {"KeyId": arn, "Message": b"x", "SigningAlgorithm": "ECDSA_SHA_384"}
    assert code(kms.sign, **wrong) == "InvalidKeyUsageException"


def test_a_dry_run_signs_nothing_and_is_checked_like_a_real_one(kms, arn):
    assert code(kms.sign, KeyId=arn, Message=b"x", DryRun=True, **SIGN) == "DryRunOperationException"
    assert code(kms.sign, KeyId=arn, Message=b"x" * 4097, DryRun=True, **SIGN) == "ValidationException"


def test_key_usage_and_spec_must_agree(kms):
    for members in ({"KeySpec": "ECC_NIST_P256"}, {"KeySpec": "HMAC_256", "KeyUsage": "SIGN_VERIFY"}):
        assert code(kms.create_key, **members) == "ValidationException"
    assert code(kms.create_key) == "UnsupportedOperationException"


def test_aliases_are_named_rightly_once_and_for_keys_that_exist(kms, arn):
    for name in ("state", "alias/aws/state"):
        assert code(kms.create_alias, AliasName=name, TargetKeyId=arn) == "InvalidAliasNameException"
    kms.create_alias(AliasName="alias/state", TargetKeyId=arn)
    assert code(kms.create_alias, AliasName="alias/state", TargetKeyId=arn) == "AlreadyExistsException"
    assert code(kms.update_alias, AliasName="alias/other", TargetKeyId=arn) == "NotFoundException"
    assert code(kms.create_alias, AliasName="alias/b", TargetKeyId="alias/state") == "NotFoundException"
    assert code(kms.disable_key, KeyId="alias/state") == "NotFoundException"


def test_keys_of_another_account_or_region_are_not_found(kms, arn):
    for foreign in (arn.replace("us-east-1", "eu-west-1"), arn.replace(":0000", ":6666")):
        assert code(kms.sign, KeyId=foreign, Message=b"x", **SIGN) == "NotFoundException"


def test_calls_fail_as_often_as_they_are_told_to(fake, kms, arn):
    fake.fail_next(2, operation="Sign")
    assert kms.get_public_key(KeyId=arn)
    for _ in range(2):
        assert code(kms.sign, KeyId=arn, Message=b"x", **SIGN) == "ThrottlingException"
    assert kms.sign(KeyId=arn, Message=b"x", **SIGN)


def test_a_client_that_retries_gets_over_throttling(fake, arn, kms):
    patient = client(kms.meta.endpoint_url, attempts=3)
    fake.fail_next(1)
    assert patient.sign(KeyId=arn, Message=b"x", **SIGN)["ResponseMetadata"]["RetryAttempts"] == 1
    patient.close()


def test_calls_are_counted_refused_ones_too(fake, kms, arn):
    fake.fail_next(1)
    code(kms.sign, KeyId=arn, Message=b"x", **SIGN)
    kms.sign(KeyId=arn, Message=b"x", **SIGN)
    assert fake.calls == {"CreateKey": 1, "Sign": 2}


# its other way in, and its keys


def test_the_operations_are_methods_too(fake):
    key_id = fake.CreateKey(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
    assert fake.Sign(KeyId=key_id, Message=b"x", **SIGN)["Signature"]
    for wrong in ({"Message": "text", **SIGN}, {"Message": b"x"}, {"Message": b"x", "Color": "red", **SIGN}):
        with pytest.raises(KmsFault):
            fake.Sign(KeyId=key_id, **wrong)


def test_a_key_given_to_two_is_one_key():
    private = ec.generate_private_key(ec.SECP256R1())
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    one, other = FakeKms(), FakeKms()
    arn = one.import_key(private, key_id="shared")
    assert other.import_key(pem, key_id="shared") == arn
    signature = one.Sign(KeyId=arn, Message=b"x", **SIGN)["Signature"]
    assert other.Verify(KeyId=arn, Message=b"x", Signature=signature, **SIGN)["SignatureValid"]


def test_a_secret_given_to_two_makes_the_same_mac():
    macs = set()
    for _ in range(2):
        kms = FakeKms()
        arn = kms.import_key(b"s" * 32)
        macs.add(kms.GenerateMac(KeyId=arn, Message=b"x", **MAC)["Mac"])
    assert len(macs) == 1


def test_what_is_no_key_is_not_imported():
    ed_pem = ec.generate_private_key(ec.SECP384R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    for material in (b"short", ed_pem, ec.generate_private_key(ec.SECP384R1())):
        with pytest.raises(ValueError, match=r"32 bytes|P-256"):
            FakeKms().import_key(material)
    kms = FakeKms()
    kms.import_key(b"s" * 32, key_id="one")
    with pytest.raises(ValueError, match="one"):
        kms.import_key(b"s" * 32, key_id="one")


# its HTTP face


SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=x", "X-Amz-Target": "TrentService.Sign"}
BAD_REQUESTS = {
    "unsigned": ({"X-Amz-Target": "TrentService.Sign"}, b"{}", "MissingAuthenticationTokenException"),
    "not JSON": (SIGNED, b"{", "SerializationException"),
    "not an object": (SIGNED, b"[]", "SerializationException"),
    "not Base64": (SIGNED, b'{"Message":"*"}', "SerializationException"),
    "an operation it has not": (
        SIGNED | {"X-Amz-Target": "TrentService.Encrypt"},
        b"{}",
        "UnknownOperationException",
    ),
    "another service": (SIGNED | {"X-Amz-Target": "Other.Sign"}, b"{}", "UnknownOperationException"),
    "no target": ({"Authorization": SIGNED["Authorization"]}, b"{}", "UnknownOperationException"),
    "too long": (SIGNED, b"x" * (1024 * 1024 + 1), "SerializationException"),
    "a member it has not": (SIGNED, b'{"Color":"red"}', "ValidationException"),
}


@pytest.mark.parametrize(("headers", "body", "expected"), BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_a_bad_request_is_answered_with_an_error(fake, headers, body, expected):
    with serve(fake) as endpoint:
        connection = http.client.HTTPConnection(urlsplit(endpoint.endpoint_url).netloc)
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        assert response.status == 400
        assert json.loads(response.read())["__type"] == expected
        connection.close()


def test_it_listens_on_this_computer_alone_and_stops(fake):
    with serve(fake) as endpoint:
        address = urlsplit(endpoint.endpoint_url)
        assert address.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection(address.netloc, timeout=1)
    with pytest.raises(OSError, match="refused"):
        connection.request("GET", "/")


def test_a_port_in_use_is_an_error(fake):
    with serve(fake) as endpoint:
        port = urlsplit(endpoint.endpoint_url).port
        with pytest.raises(OSError, match="in use"), serve(fake, port):
            pass
