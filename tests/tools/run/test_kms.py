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
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_public_key,
)
from moto import mock_aws

from mcp_roundtrip_tools.run.services.kms import FakeKms
from mcp_roundtrip_tools.run.services.kms_key import KmsFault
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


def test_an_alias_stands_for_its_key_and_can_be_moved(emulators):
    first, second = signing_key(emulators), signing_key(emulators)
    emulators.create_alias(AliasName="alias/state", TargetKeyId=first)
    assert emulators.describe_key(KeyId="alias/state")["KeyMetadata"]["Arn"] == first
    emulators.update_alias(AliasName="alias/state", TargetKeyId=second)
    assert emulators.describe_key(KeyId="alias/state")["KeyMetadata"]["Arn"] == second


def test_an_alias_is_created_once_and_moved_only_when_it_exists(emulators):
    arn = signing_key(emulators)
    emulators.create_alias(AliasName="alias/state", TargetKeyId=arn)
    assert code(emulators.create_alias, AliasName="alias/state", TargetKeyId=arn) == "AlreadyExistsException"
    assert code(emulators.update_alias, AliasName="alias/other", TargetKeyId=arn) == "NotFoundException"


def test_an_unknown_key_is_not_found(emulators):
    assert code(emulators.describe_key, KeyId="00000000-0000-0000-0000-000000000000") == "NotFoundException"


def test_disabling_and_enabling_change_the_key_state(emulators):
    arn = bare(signing_key(emulators))
    emulators.disable_key(KeyId=arn)
    assert emulators.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "Disabled"
    emulators.enable_key(KeyId=arn)
    assert emulators.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "Enabled"


def test_scheduling_deletion_changes_the_key_state(emulators):
    arn = bare(signing_key(emulators))
    assert emulators.schedule_key_deletion(KeyId=arn, PendingWindowInDays=7)["DeletionDate"]
    assert emulators.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "PendingDeletion"


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


@pytest.mark.parametrize("days", [6, 31])
def test_the_waiting_period_of_a_deletion_is_bounded(strict, days):
    members = {"KeyId": signing_key(strict), "PendingWindowInDays": days}
    assert code(strict.schedule_key_deletion, **members) == "ValidationException"


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


def test_a_dry_run_of_a_mac_is_checked_but_returns_no_mac(strict):
    arn = mac_key(strict)
    dry = {"KeyId": arn, "DryRun": True, **MAC}
    assert code(strict.generate_mac, Message=b"x", **dry) == "DryRunOperationException"
    assert code(strict.generate_mac, Message=b"x" * 4097, **dry) == "ValidationException"


def test_keys_of_another_account_or_region_are_not_found(strict):
    arn = signing_key(strict)
    for foreign in (arn.replace("us-east-1", "eu-west-1"), arn.replace(":0000", ":6666")):
        assert code(strict.sign, KeyId=foreign, Message=b"x", **SIGN) == "NotFoundException"


def test_a_mac_key_has_the_usage_of_macs(strict):
    members = {"KeySpec": "HMAC_256", "KeyUsage": "SIGN_VERIFY"}
    assert code(strict.create_key, **members) == "ValidationException"


# a MAC under known key material


MATERIAL = bytes(range(32))


def test_a_mac_of_the_stand_in_is_hmac_sha_256_under_the_key_material(strict_kms, kms):
    answer = kms.generate_mac(KeyId=strict_kms.import_key(MATERIAL), Message=b"message", **MAC)
    assert answer["Mac"] == hmac.digest(MATERIAL, b"message", "sha256")


def test_a_mac_of_ministack_is_hmac_sha_256_under_the_key_material(ministack_kms):
    arn = import_mac_key(ministack_kms, MATERIAL)
    answer = ministack_kms.generate_mac(KeyId=arn, Message=b"message", **MAC)
    assert answer["Mac"] == hmac.digest(MATERIAL, b"message", "sha256")


def import_mac_key(kms, material):
    """Create a key with imported key material, encrypted with the wrapping key as on AWS."""
    created = kms.create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC", Origin="EXTERNAL")
    arn = created["KeyMetadata"]["Arn"]
    wrapping = {"WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048"}
    parameters = kms.get_parameters_for_import(KeyId=arn, **wrapping)
    oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), label=None)
    kms.import_key_material(
        KeyId=arn,
        ImportToken=parameters["ImportToken"],
        EncryptedKeyMaterial=load_der_public_key(parameters["PublicKey"]).encrypt(material, oaep),
        ExpirationModel="KEY_MATERIAL_DOES_NOT_EXPIRE",
    )
    return arn


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


def test_a_key_pending_deletion_is_neither_enabled_nor_disabled_nor_scheduled_again(kms, arn):
    kms.schedule_key_deletion(KeyId=arn)
    for operation in (kms.enable_key, kms.disable_key, kms.schedule_key_deletion):
        assert code(operation, KeyId=arn) == "KMSInvalidStateException"


def test_a_mac_key_has_no_public_key(kms):
    # The API Reference lists this code and InvalidKeyUsageException, which ministack uses.
    assert code(kms.get_public_key, KeyId=mac_key(kms)) == "UnsupportedOperationException"


def test_a_dry_run_of_a_signature_is_checked_but_returns_no_signature(kms, arn):
    assert code(kms.sign, KeyId=arn, Message=b"x", DryRun=True, **SIGN) == "DryRunOperationException"
    assert code(kms.sign, KeyId=arn, Message=b"x" * 4097, DryRun=True, **SIGN) == "ValidationException"


def test_only_signing_keys_and_mac_keys_can_be_created(kms):
    assert code(kms.create_key, KeySpec="ECC_NIST_P256") == "ValidationException"
    assert code(kms.create_key) == "UnsupportedOperationException"


def test_an_alias_has_a_valid_name_and_an_existing_key(kms, arn):
    for name in ("state", "alias/aws/state"):
        assert code(kms.create_alias, AliasName=name, TargetKeyId=arn) == "InvalidAliasNameException"
    kms.create_alias(AliasName="alias/state", TargetKeyId=arn)
    assert code(kms.create_alias, AliasName="alias/b", TargetKeyId="alias/state") == "NotFoundException"
    assert code(kms.disable_key, KeyId="alias/state") == "NotFoundException"


def test_calls_fail_the_configured_number_of_times(strict_kms, kms, arn):
    strict_kms.fail_next(2, operation="Sign")
    assert kms.get_public_key(KeyId=arn)
    for _ in range(2):
        assert code(kms.sign, KeyId=arn, Message=b"x", **SIGN) == "ThrottlingException"
    assert kms.sign(KeyId=arn, Message=b"x", **SIGN)


def test_a_client_with_retries_succeeds_after_throttling(strict_kms, arn, kms):
    retrying_client = client(kms.meta.endpoint_url, attempts=3)
    strict_kms.fail_next(1)
    assert retrying_client.sign(KeyId=arn, Message=b"x", **SIGN)["ResponseMetadata"]["RetryAttempts"] == 1
    retrying_client.close()


def test_refused_calls_are_counted(strict_kms, kms, arn):
    strict_kms.fail_next(1)
    code(kms.sign, KeyId=arn, Message=b"x", **SIGN)
    kms.sign(KeyId=arn, Message=b"x", **SIGN)
    assert strict_kms.calls == {"CreateKey": 1, "Sign": 2}


# direct calls and key import


def test_operations_can_be_called_as_methods(strict_kms):
    key_id = strict_kms.CreateKey(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
    assert strict_kms.Sign(KeyId=key_id, Message=b"x", **SIGN)["Signature"]
    for wrong in ({"Message": "text", **SIGN}, {"Message": b"x"}, {"Message": b"x", "Color": "red", **SIGN}):
        with pytest.raises(KmsFault):
            strict_kms.Sign(KeyId=key_id, **wrong)


def test_an_imported_key_is_equal_in_two_instances():
    private = ec.generate_private_key(ec.SECP256R1())
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    one, other = FakeKms(), FakeKms()
    arn = one.import_key(private, key_id="shared")
    assert other.import_key(pem, key_id="shared") == arn
    signature = one.Sign(KeyId=arn, Message=b"x", **SIGN)["Signature"]
    assert other.Verify(KeyId=arn, Message=b"x", Signature=signature, **SIGN)["SignatureValid"]


def test_an_imported_secret_yields_the_same_mac_in_two_instances():
    macs = set()
    for _ in range(2):
        kms = FakeKms()
        arn = kms.import_key(b"s" * 32)
        macs.add(kms.GenerateMac(KeyId=arn, Message=b"x", **MAC)["Mac"])
    assert len(macs) == 1


def test_invalid_key_material_is_not_imported():
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


# HTTP


SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=x", "X-Amz-Target": "TrentService.Sign"}
BAD_REQUESTS = {
    "unsigned": ({"X-Amz-Target": "TrentService.Sign"}, b"{}", "MissingAuthenticationTokenException"),
    "not JSON": (SIGNED, b"{", "SerializationException"),
    "not an object": (SIGNED, b"[]", "SerializationException"),
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
