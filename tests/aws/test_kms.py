"""The KMS adapter through a real boto3 client against a strict KMS on 127.0.0.1."""

import hashlib
import hmac
import secrets
import socket
from contextlib import contextmanager

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from moto import mock_aws

from mcp_roundtrip.aws.clients import kms_client
from mcp_roundtrip.aws.kms import (
    CONFIRM_INTERVAL_S,
    MAX_UNCONFIRMED_S,
    KmsKey,
    KmsMacKey,
    KmsPublicKeys,
    KmsSigner,
    PinnedKey,
    PublicHalf,
)
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.keys import is_valid_signature, kid_of
from mcp_roundtrip.state.renewal import FIRST_RETRY_S, RENEWAL_RETRY_S
from mcp_roundtrip_local.services.kms import FakeKms
from mcp_roundtrip_local.services.kms_key import KmsFault
from mcp_roundtrip_testing import FakeClock
from support.kms_clients import REGION, client, mac_key, running, signing_key


@pytest.fixture
def arn(kms):
    return signing_key(kms)


@pytest.fixture
def key(kms, arn, clock):
    return KmsKey(kms, arn, clock)


@pytest.fixture
def signer(kms, key):
    return KmsSigner(kms, key)


@contextmanager
def fails_with(reason):
    with pytest.raises(KeyServiceError) as failed:
        yield
    assert failed.value.reason == reason


# signing


@pytest.mark.parametrize(("size", "message_type"), [(4096, "RAW"), (4097, "DIGEST")])
def test_what_is_too_long_to_be_signed_raw_is_signed_by_its_digest(size, message_type):
    message_types = []

    class Seen(FakeKms):
        def Sign(self, **members):
            message_types.append(members["MessageType"])
            return super().Sign(**members)

    with running(Seen()) as kms:
        key = KmsKey(kms, signing_key(kms), FakeClock())
        signature = KmsSigner(kms, key).sign(b"x" * size)
        kms_says = kms.verify(
            KeyId=key.arn,
            Message=hashlib.sha256(b"x" * size).digest(),
            MessageType="DIGEST",
            SigningAlgorithm="ECDSA_SHA_256",
            Signature=der(signature),
        )
    assert message_types == [message_type]
    assert kms_says["SignatureValid"]


def der(raw):
    return encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))


def test_a_signer_names_the_key_whose_signatures_it_makes(signer, key):
    half = key.trusted_public_half()
    assert signer.key_members == {"kid": half.kid} == {"kid": kid_of(half.public_key)}
    assert is_valid_signature(signer.sign(b"x"), b"x", half.public_key)


def test_signing_and_checking_load_the_public_key_once_for_both(fake, signer, key):
    keys = KmsPublicKeys([key])
    for _ in range(2):
        assert keys.find(signer.key_members["kid"])
        signer.sign(b"x")
    assert (fake.calls["GetPublicKey"], fake.calls["Sign"]) == (1, 2)


def test_a_signature_by_another_key_than_asked_for_is_not_used():
    class Moved(FakeKms):
        def Sign(self, *, KeyId, **members):
            return super().Sign(KeyId=other, **members)

    with running(Moved()) as kms:
        arn, other = signing_key(kms), signing_key(kms)
        with fails_with("signed_by_another_key"):
            KmsSigner(kms, KmsKey(kms, arn, FakeClock())).sign(b"x")


def test_a_signature_that_is_no_der_is_not_used():
    class Odd(FakeKms):
        def Sign(self, **members):
            return super().Sign(**members) | {"Signature": bytes(64)}

    with running(Odd()) as kms, fails_with("malformed_answer"):
        KmsSigner(kms, KmsKey(kms, signing_key(kms), FakeClock())).sign(b"x")


# failures


STATES = {
    "throttled": (lambda fake, arn: fake.fail_next(9), "ThrottlingException"),
    "denied": (lambda fake, arn: fake.fail_next(9, "AccessDeniedException"), "AccessDeniedException"),
    "failing": (lambda fake, arn: fake.fail_next(9, "KMSInternalException"), "KMSInternalException"),
    "disabled": (lambda fake, arn: fake.DisableKey(KeyId=arn), "DisabledException"),
    "being deleted": (lambda fake, arn: fake.ScheduleKeyDeletion(KeyId=arn), "KMSInvalidStateException"),
}


@pytest.mark.parametrize(("happens", "reason"), STATES.values(), ids=STATES)
def test_a_key_that_cannot_sign_is_named_by_the_aws_error_code(fake, signer, key, arn, happens, reason):
    key.trusted_public_half()
    happens(fake, arn)
    with fails_with(reason):
        signer.sign(b"x")
    assert key.trusted_public_half(), "checking goes on while KMS does not sign"


@pytest.mark.parametrize(("happens", "reason"), STATES.values(), ids=STATES)
def test_a_public_key_that_cannot_be_loaded_is_named_by_the_aws_error_code(fake, key, arn, happens, reason):
    happens(fake, arn)
    with fails_with(reason):
        key.trusted_public_half()


@pytest.mark.parametrize(("happens", "reason"), STATES.values(), ids=STATES)
def test_a_mac_that_cannot_be_made_is_named_by_the_aws_error_code(fake, kms, happens, reason):
    arn = mac_key(kms)
    happens(fake, arn)
    with fails_with(reason):
        KmsMacKey(kms, arn).mac(b"x")


def test_a_key_that_does_not_exist_is_a_failure_of_the_key_service(kms, arn, clock):
    with fails_with("NotFoundException"):
        KmsKey(kms, arn[:-1], clock).trusted_public_half()
    with fails_with("NotFoundException"):
        KmsMacKey(kms, arn[:-1]).mac(b"x")


def test_a_key_for_another_use_is_a_failure_of_the_key_service(kms, arn, clock):
    with fails_with("UnsupportedOperationException"):
        KmsKey(kms, mac_key(kms), clock).trusted_public_half()
    with fails_with("InvalidKeyUsageException"):
        KmsMacKey(kms, arn).mac(b"x")


@pytest.mark.parametrize(("spec", "usage"), [("ECC_NIST_P384", "SIGN_VERIFY"), ("RSA_2048", "SIGN_VERIFY")])
def test_a_key_of_another_kind_is_a_failure_of_the_key_service(spec, usage):
    with mock_aws():
        kms = client()
        key_id = kms.create_key(KeySpec=spec, KeyUsage=usage)["KeyMetadata"]["KeyId"]
        with fails_with("malformed_answer"):
            KmsKey(kms, key_id, FakeClock()).trusted_public_half()


def test_a_kms_that_is_not_there_is_a_failure_of_the_key_service():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with fails_with("EndpointConnectionError"):
            KmsKey(client(f"http://127.0.0.1:{port}"), "arn", FakeClock()).trusted_public_half()


def test_a_kms_that_does_not_answer_times_out():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        kms = client(f"http://127.0.0.1:{port}", timeout_s=0.1)
        with fails_with("timeout"):
            KmsMacKey(kms, "arn").mac(b"x")
        kms.close()


def test_a_failure_shows_nothing_of_what_was_to_be_signed(fake, signer, key):
    key.trusted_public_half()
    fake.fail_next(1, operation="Sign")
    with pytest.raises(KeyServiceError) as failed:
        signer.sign(b"very secret")
    assert "secret" not in f"{failed.value!r} {failed.value.__cause__!r}"


@pytest.mark.parametrize(("throttled", "signs"), [(1, True), (2, True), (3, False)])
def test_the_client_signs_if_one_of_three_attempts_is_answered(
    fake, kms, arn, clock, monkeypatch, throttled, signs
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    patient = kms_client(REGION, kms.meta.endpoint_url)
    signer = KmsSigner(patient, KmsKey(kms, arn, clock))
    fake.fail_next(throttled, operation="Sign")
    if signs:
        assert signer.sign(b"x")
    else:
        with fails_with("ThrottlingException"):
            signer.sign(b"x")
    patient.close()
    assert fake.calls["Sign"] == min(throttled + 1, 3)


def test_the_clients_patience_fits_into_a_request():
    config = kms_client("eu-west-1", "http://127.0.0.1:9").meta.config
    assert (config.connect_timeout, config.read_timeout) == (1, 2)
    assert config.retries == {"mode": "standard", "total_max_attempts": 3}


# public keys over time


def test_a_public_key_is_confirmed_when_it_is_old(fake, key, clock):
    key.trusted_public_half()
    clock.now += CONFIRM_INTERVAL_S - 1
    key.trusted_public_half()
    assert fake.calls["GetPublicKey"] == 1
    clock.now += 1
    key.trusted_public_half()
    key.trusted_public_half()
    assert fake.calls["GetPublicKey"] == 2


def test_a_public_key_that_cannot_be_confirmed_is_used_for_a_while(fake, key, clock):
    key.trusted_public_half()
    fake.fail_next(1000)
    clock.now += MAX_UNCONFIRMED_S - 1
    assert key.trusted_public_half()
    clock.now += 1
    with fails_with("ThrottlingException"):
        key.trusted_public_half()


def test_while_a_key_is_still_good_a_failed_confirmation_is_not_repeated_for_a_minute(fake, key, clock):
    key.trusted_public_half()
    fake.fail_next(1)
    clock.now += CONFIRM_INTERVAL_S
    for _ in range(RENEWAL_RETRY_S):
        assert key.trusted_public_half()
        clock.now += 1
    assert fake.calls["GetPublicKey"] == 2
    assert key.trusted_public_half()
    assert fake.calls["GetPublicKey"] == 3


@pytest.mark.parametrize("withdrawn", ["disabled", "being deleted"])
def test_a_withdrawn_key_is_no_longer_trusted_once_kms_says_so(fake, key, arn, clock, withdrawn):
    happens, reason = STATES[withdrawn]
    key.trusted_public_half()
    happens(fake, arn)
    assert key.trusted_public_half()
    clock.now += CONFIRM_INTERVAL_S
    with fails_with(reason):
        key.trusted_public_half()


def test_a_key_that_is_enabled_again_is_trusted_again_within_a_minute(fake, key, arn, clock):
    key.trusted_public_half()
    fake.DisableKey(KeyId=arn)
    clock.now += CONFIRM_INTERVAL_S
    with fails_with("DisabledException"):
        key.trusted_public_half()
    fake.EnableKey(KeyId=arn)
    clock.now += RENEWAL_RETRY_S
    assert key.trusted_public_half()


def test_a_key_that_stays_disabled_is_asked_for_once_a_minute(fake, key, arn, clock):
    key.trusted_public_half()
    fake.DisableKey(KeyId=arn)
    clock.now += CONFIRM_INTERVAL_S
    before = fake.calls["GetPublicKey"]
    for _ in range(600):
        with fails_with("DisabledException"):
            key.trusted_public_half()
        clock.now += 1
    assert fake.calls["GetPublicKey"] - before == 600 / RENEWAL_RETRY_S


def test_a_disabled_keys_name_stays_known_so_that_signing_says_what_is_wrong(fake, key, arn, clock):
    half = key.trusted_public_half()
    fake.DisableKey(KeyId=arn)
    clock.now += CONFIRM_INTERVAL_S
    assert key.loaded_public_half() == half


def test_a_clock_that_was_set_back_does_not_keep_a_disabled_key_alive(fake, key, arn, clock):
    key.trusted_public_half()
    fake.DisableKey(KeyId=arn)
    clock.now -= 86_400
    with fails_with("DisabledException"):
        key.trusted_public_half()


def test_of_two_keys_the_remaining_one_is_still_trusted(fake, kms, key, clock):
    old = KmsKey(kms, signing_key(kms), clock)
    keys = KmsPublicKeys([key, old])
    kids = [half.loaded_public_half().kid for half in (key, old)]
    assert all(map(keys.find, kids))
    fake.DisableKey(KeyId=old.arn)
    clock.now += CONFIRM_INTERVAL_S
    assert keys.find(kids[0])
    assert keys.find(kids[1]) is None


def test_a_failed_load_is_not_repeated_for_every_token(fake, key, clock):
    fake.fail_next(2, "DisabledException")
    for _ in range(100):
        with fails_with("DisabledException"):
            key.trusted_public_half()
    assert fake.calls["GetPublicKey"] == 1
    clock.now += FIRST_RETRY_S
    with fails_with("DisabledException"):
        key.trusted_public_half()
    assert fake.calls["GetPublicKey"] == 2


def test_while_a_key_cannot_be_loaded_the_pauses_between_attempts_grow_to_a_minute(fake, key, clock):
    fake.fail_next(1000)
    for _ in range(600):
        with fails_with("ThrottlingException"):
            key.trusted_public_half()
        clock.now += 1
    assert fake.calls["GetPublicKey"] == 6 + 9, "after 0, 1, 3, 7, 15 and 31 s, then from 63 s on each minute"


def test_a_slow_failure_is_not_retried_for_a_while_after_its_end(arn, clock):
    class Silent(FakeKms):
        def GetPublicKey(self, **members):
            clock.now += 6
            raise KmsFault("KMSInternalException", "at last")

    silent = Silent()
    with running(silent) as kms:
        key = KmsKey(kms, signing_key(kms), clock)
        started = clock.now
        for _ in range(10):
            with fails_with("KMSInternalException"):
                key.trusted_public_half()
    assert clock.now == started + 6


def test_a_key_that_is_out_of_reach_does_not_hold_up_the_states_of_another(fake, kms, key, clock):
    kid = key.loaded_public_half().kid
    before = fake.calls["GetPublicKey"]
    keys = KmsPublicKeys([KmsKey(kms, key.arn[:-1], clock), key])
    for _ in range(100):
        assert keys.find(kid)
        clock.now += 1
    assert fake.calls["GetPublicKey"] == before


def test_a_state_of_a_key_that_could_not_be_loaded_yet_is_not_taken_for_a_forgery(fake, kms, key, clock):
    other = KmsKey(kms, signing_key(kms), clock)
    kid = KmsKey(kms, other.arn, clock).loaded_public_half().kid
    keys = KmsPublicKeys([key, other])
    key.trusted_public_half()
    fake.fail_next(1, operation="GetPublicKey")
    with fails_with("ThrottlingException"):
        keys.find(kid)
    clock.now += FIRST_RETRY_S
    assert keys.find(kid)
    assert keys.find("forged") is None


@pytest.mark.parametrize("seconds", [-86_400, -MAX_UNCONFIRMED_S, 0])
def test_without_kms_a_key_lasts_an_hour_however_the_clock_was_set(fake, key, clock, seconds):
    key.trusted_public_half()
    clock.now += seconds
    fake.fail_next(1000)
    assert key.trusted_public_half()
    clock.now += MAX_UNCONFIRMED_S
    with fails_with("ThrottlingException"):
        key.trusted_public_half()


def test_without_a_single_key_the_key_service_is_to_blame():
    with fails_with("no_key_configured"):
        KmsPublicKeys([]).find("kid")


# pinned public keys


def spki(kms, arn):
    return kms.get_public_key(KeyId=arn)["PublicKey"]


def test_a_pinned_key_signs_and_is_trusted_without_asking_for_it(fake, kms, arn):
    pinned = PinnedKey(arn, PublicHalf.from_der(spki(kms, arn)))
    before = fake.calls["GetPublicKey"]
    signer, keys = KmsSigner(kms, pinned), KmsPublicKeys([pinned])
    public_key = keys.find(signer.key_members["kid"])
    assert is_valid_signature(signer.sign(b"x"), b"x", public_key)
    assert fake.calls["GetPublicKey"] == before


def test_what_is_no_key_on_p256_cannot_be_pinned(kms, arn):
    p256, sm2 = bytes.fromhex("06082a8648ce3d030107"), bytes.fromhex("06082a811ccf5501822d")
    for der in (b"", b"MFkw", spki(kms, arn)[:-1], spki(kms, arn).replace(p256, sm2)):
        with pytest.raises(ValueError):  # noqa: PT011 - whatever cryptography says
            PublicHalf.from_der(der)


def test_a_public_key_pinned_to_the_wrong_key_is_found_out_before_a_token_leaves(fake, kms, arn):
    other = PublicHalf.from_der(spki(kms, signing_key(kms)))
    signer = KmsSigner(kms, PinnedKey(arn, other))
    for _ in range(2):
        with fails_with("public_key_of_another_key"):
            signer.sign(b"x")


# MACs


def test_a_mac_is_hmac_sha_256(fake, kms):
    secret = secrets.token_bytes(32)
    arn = fake.import_key(secret)
    assert KmsMacKey(kms, arn).mac(b"x") == hmac.digest(secret, b"x", "sha256")


def test_a_mac_by_another_key_than_asked_for_is_not_used():
    class Moved(FakeKms):
        def GenerateMac(self, *, KeyId, **members):
            return super().GenerateMac(KeyId=other, **members)

    with running(Moved()) as kms:
        arn, other = mac_key(kms), mac_key(kms)
        with fails_with("malformed_answer"):
            KmsMacKey(kms, arn).mac(b"x")


def test_a_generation_is_the_same_in_every_region_and_another_for_every_key():
    here = KmsMacKey(client(), "arn:aws:kms:eu-west-1:123456789012:key/mrk-1")
    there = KmsMacKey(client(), "arn:aws:kms:us-east-1:123456789012:key/mrk-1")
    other = KmsMacKey(client(), "arn:aws:kms:eu-west-1:123456789012:key/mrk-2")
    assert here.short_key_id == there.short_key_id != other.short_key_id
