from typing import Any

import pytest
from moto import mock_aws

from mcp_roundtrip.aws.kms import (
    CONFIRM_INTERVAL_S,
    MAX_UNCONFIRMED_S,
    KmsKey,
    KmsMacKey,
    KmsPublicKeys,
    KmsSigner,
    public_half,
)
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.jws import FIRST_RETRY_S, RENEWAL_RETRY_S, is_valid_signature
from mcp_roundtrip_testing import FakeClock
from support.aws_clients import KINDS
from support.fake_kms import FailingKms
from support.kms_clients import client, fails_with, mac_key, running, signing_key


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def arn(kms):
    return signing_key(kms)


@pytest.fixture
def key(kms, arn, clock):
    return KmsKey(kms, arn, clock)


@pytest.mark.parametrize(("size", "message_type"), [(4096, "RAW"), (4097, "DIGEST")])
def test_a_message_over_the_raw_limit_is_signed_by_its_digest(size, message_type):
    message_types = []

    class RecordingKms(FailingKms):
        def Sign(self, **members):
            message_types.append(members["MessageType"])
            return super().Sign(**members)

    with running(RecordingKms()) as kms:
        key = KmsKey(kms, signing_key(kms), FakeClock())
        signature = KmsSigner(kms, key).sign(b"x" * size)
        public_key = key.trusted_public_half().public_key
    assert message_types == [message_type]
    assert is_valid_signature(signature, b"x" * size, public_key)


def test_a_signature_or_a_mac_of_another_key_and_one_that_is_not_der_are_rejected():
    class KmsWithOtherKey(FailingKms):
        def Sign(self, *, KeyId, **members):
            return super().Sign(KeyId=other, **members)

        def GenerateMac(self, *, KeyId, **members):
            return super().GenerateMac(KeyId=other_mac, **members)

    class KmsWithMalformedSignature(FailingKms):
        def Sign(self, **members):
            return super().Sign(**members) | {"Signature": bytes(64)}

    with running(KmsWithOtherKey()) as kms:
        arn, other, mac_arn, other_mac = signing_key(kms), signing_key(kms), mac_key(kms), mac_key(kms)
        with fails_with("signed_by_another_key"):
            KmsSigner(kms, KmsKey(kms, arn, FakeClock())).sign(b"x")
        with fails_with("malformed_answer"):
            KmsMacKey(kms, mac_arn).mac(b"x")
    with running(KmsWithMalformedSignature()) as kms, fails_with("malformed_answer"):
        KmsSigner(kms, KmsKey(kms, signing_key(kms), FakeClock())).sign(b"x")


STATES = {
    "throttled": (lambda kms, arn: kms.fail_next(9), "ThrottlingException"),
    "denied": (lambda kms, arn: kms.fail_next(9, "AccessDeniedException"), "AccessDeniedException"),
    "failing": (lambda kms, arn: kms.fail_next(9, "KMSInternalException"), "KMSInternalException"),
    "disabled": (lambda kms, arn: kms.DisableKey(KeyId=arn), "DisabledException"),
    "being deleted": (lambda kms, arn: kms.ScheduleKeyDeletion(KeyId=arn), "KMSInvalidStateException"),
}


@pytest.mark.parametrize(("happens", "reason"), STATES.values(), ids=STATES)
def test_a_key_that_kms_refuses_is_an_error_with_the_aws_error_code(
    strict_kms, kms, key, arn, happens, reason
):
    key.trusted_public_half()
    mac_arn = mac_key(kms)
    happens(strict_kms, arn)
    with fails_with(reason):
        KmsSigner(kms, key).sign(b"x")
    assert key.trusted_public_half(), "checking works while KMS does not sign"
    with fails_with(reason):
        KmsKey(kms, arn, FakeClock()).trusted_public_half()
    happens(strict_kms, mac_arn)
    with fails_with(reason):
        KmsMacKey(kms, mac_arn).mac(b"x")


def test_the_text_of_an_error_names_the_key_also_during_the_pause_after_it(strict_kms, kms, key, arn):
    strict_kms.DisableKey(KeyId=arn)
    for _ in range(2):
        with pytest.raises(KeyServiceError, match=arn):
            key.trusted_public_half()
    assert strict_kms.calls["GetPublicKey"] == 1


@pytest.mark.parametrize("spec", ["ECC_NIST_P384", "RSA_2048"])
def test_a_key_with_another_spec_is_a_key_service_error(spec):
    with mock_aws():
        kms = client()
        key_id = kms.create_key(KeySpec=spec, KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
        with fails_with("malformed_answer"):
            KmsKey(kms, key_id, FakeClock()).trusted_public_half()


def test_keys_without_any_key_are_a_key_service_error():
    with fails_with("no_key_configured"):
        KmsPublicKeys([]).find("kid")


def test_an_unexpected_fault_is_a_key_service_error_with_the_name_of_the_exception(arn, clock):
    broken: Any = object()  # has no `call`
    with fails_with("AttributeError"):
        KmsKey(broken, arn, clock).trusted_public_half()
    with fails_with("AttributeError"):
        KmsMacKey(broken, arn).mac(b"x")


def test_an_old_public_key_is_confirmed_with_kms_and_again_a_minute_after_a_failure(strict_kms, key, clock):
    key.trusted_public_half()
    clock.now += CONFIRM_INTERVAL_S - 1
    key.trusted_public_half()
    assert strict_kms.calls["GetPublicKey"] == 1
    clock.now += 1
    strict_kms.fail_next(1)
    for _ in range(RENEWAL_RETRY_S):
        assert key.trusted_public_half()
        clock.now += 1
    assert strict_kms.calls["GetPublicKey"] == 2
    assert key.trusted_public_half()
    assert key.trusted_public_half()
    assert strict_kms.calls["GetPublicKey"] == 3


@pytest.mark.parametrize("withdrawn", ["disabled", "being deleted"])
def test_a_withdrawn_key_is_not_trusted_after_its_next_confirmation(strict_kms, key, arn, clock, withdrawn):
    happens, reason = STATES[withdrawn]
    public_key = key.trusted_public_half()
    happens(strict_kms, arn)
    assert key.trusted_public_half()
    clock.now += CONFIRM_INTERVAL_S
    with fails_with(reason):
        key.trusted_public_half()
    assert key.loaded_public_half() == public_key, "so that signing gets the error of AWS"
    if withdrawn == "disabled":
        strict_kms.EnableKey(KeyId=arn)
        clock.now += FIRST_RETRY_S
        assert key.trusted_public_half()


def test_a_clock_that_is_set_back_does_not_extend_the_trust_in_a_disabled_key(strict_kms, key, arn, clock):
    key.trusted_public_half()
    strict_kms.DisableKey(KeyId=arn)
    clock.now -= 86_400
    with fails_with("DisabledException"):
        key.trusted_public_half()


def test_of_two_keys_the_remaining_one_is_still_trusted(strict_kms, kms, key, clock):
    old = KmsKey(kms, signing_key(kms), clock)
    keys = KmsPublicKeys([key, old])
    kids = [public_key.loaded_public_half().kid for public_key in (key, old)]
    assert all(map(keys.find, kids))
    strict_kms.DisableKey(KeyId=old.arn)
    clock.now += CONFIRM_INTERVAL_S
    assert keys.find(kids[0])
    assert keys.find(kids[1]) is None


def test_a_failed_load_is_not_retried_for_every_token_and_after_growing_pauses(strict_kms, key, clock):
    strict_kms.fail_next(1000, "DisabledException")
    for attempts, pause_s in ((1, FIRST_RETRY_S), (2, 2), (3, 4)):
        for _ in range(100):
            with fails_with("DisabledException"):
                key.trusted_public_half()
        clock.now += pause_s - 1
        with fails_with("DisabledException"):
            key.trusted_public_half()
        assert strict_kms.calls["GetPublicKey"] == attempts
        clock.now += 1


def test_an_unavailable_key_does_not_delay_states_of_another(strict_kms, kms, key, clock):
    kid = key.loaded_public_half().kid
    before = strict_kms.calls["GetPublicKey"]
    keys = KmsPublicKeys([KmsKey(kms, key.arn[:-1], clock), key])
    for _ in range(100):
        assert keys.find(kid)
        clock.now += 1
    assert strict_kms.calls["GetPublicKey"] == before


def test_a_state_whose_key_is_not_loaded_yet_is_a_key_service_error(strict_kms, kms, key, clock):
    other = KmsKey(kms, signing_key(kms), clock)
    kid = KmsKey(kms, other.arn, clock).loaded_public_half().kid
    keys = KmsPublicKeys([key, other])
    key.trusted_public_half()
    strict_kms.fail_next(1, operation="GetPublicKey")
    with fails_with("ThrottlingException"):
        keys.find(kid)
    clock.now += FIRST_RETRY_S
    assert keys.find(kid)
    assert keys.find("forged") is None


@pytest.mark.parametrize("seconds", [-86_400, -MAX_UNCONFIRMED_S, 0])
def test_without_kms_a_key_is_trusted_for_an_hour_at_any_setting_of_the_clock(
    strict_kms, key, clock, seconds
):
    key.trusted_public_half()
    clock.now += seconds
    strict_kms.fail_next(1000)
    assert key.trusted_public_half()
    clock.now += MAX_UNCONFIRMED_S - 1
    assert key.trusted_public_half()
    clock.now += 1
    with fails_with("ThrottlingException"):
        key.trusted_public_half()


def spki(kms, arn):
    return kms.get_public_key(KeyId=arn)["PublicKey"]


def test_only_a_p256_key_can_be_pinned(kms, arn):
    p256, sm2 = bytes.fromhex("06082a8648ce3d030107"), bytes.fromhex("06082a811ccf5501822d")
    for der in (b"", b"MFkw", spki(kms, arn)[:-1], spki(kms, arn).replace(p256, sm2)):
        with pytest.raises(ValueError):  # noqa: PT011 - whatever cryptography says
            public_half(der)


def test_a_public_key_pinned_to_the_wrong_key_is_detected_when_signing(strict_kms, kms, arn):
    other = public_half(spki(kms, signing_key(kms)))
    signer = KmsSigner(kms, KmsKey(kms, arn, FakeClock(), other))
    for _ in range(2):
        with fails_with("public_key_of_another_key"):
            signer.sign(b"x")


def test_a_short_key_id_is_equal_in_all_regions_and_differs_between_keys():
    here = KmsMacKey(client(), "arn:aws:kms:eu-west-1:123456789012:key/mrk-1")
    there = KmsMacKey(client(), "arn:aws:kms:us-east-1:123456789012:key/mrk-1")
    other = KmsMacKey(client(), "arn:aws:kms:eu-west-1:123456789012:key/mrk-2")
    assert here.short_key_id == there.short_key_id != other.short_key_id
