"""The KMS adapter through a real boto3 client against a strict KMS on 127.0.0.1."""

import hashlib
import json
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from moto import mock_aws

from mcp_roundtrip.aws.kms import (
    MAX_UNCONFIRMED_S,
    RETRY_S,
    KmsKey,
    KmsPublicKeys,
    KmsSigner,
    kms_client,
)
from mcp_roundtrip.errors import KeyServiceError, StateRejected
from mcp_roundtrip.local.kms import FakeKms
from mcp_roundtrip.state.keys import LocalKey
from support import tokens
from support.kms import client, running, signing_key
from support.tokens import BINDING, NOW, codec, header_of, signed, unb64

TTL_S = 900


class Clock:
    now = float(NOW)

    def __call__(self):
        return self.now


@pytest.fixture
def fake():
    return FakeKms()


@pytest.fixture
def kms(fake):
    with running(fake) as connected:
        yield connected


@pytest.fixture
def arn(kms):
    return signing_key(kms)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keys(kms, arn, clock):
    return KmsPublicKeys(kms, [arn], clock, TTL_S)


@pytest.fixture
def states(kms, arn, keys):
    return codec(signer=KmsSigner(kms, arn, keys), keys=keys)


def seal(states, payload=None):
    return states.seal(BINDING, payload, round=1, first_issued_at=None)


@contextmanager
def fails_with(reason):
    with pytest.raises(KeyServiceError) as failed:
        yield
    assert failed.value.reason == reason


# signing


@pytest.mark.parametrize("size", [0, 200, 2_000, 20_000])
def test_a_state_of_any_size_is_signed_and_opened(states, size):
    assert states.open(BINDING, seal(states, "x" * size)).payload == "x" * size


@pytest.mark.parametrize(("size", "message_type"), [(4096, "RAW"), (4097, "DIGEST")])
def test_what_is_too_long_to_be_signed_raw_is_signed_by_its_digest(size, message_type):
    message_types = []

    class Seen(FakeKms):
        def Sign(self, **members):
            message_types.append(members["MessageType"])
            return super().Sign(**members)

    with running(Seen()) as kms:
        key = KmsKey(kms, signing_key(kms), Clock())
        signer = KmsSigner(kms, key.trusted().arn)
        signature = signer.sign(b"x" * size)
        kms_says = kms.verify(
            KeyId=key.trusted().arn,
            Message=hashlib.sha256(b"x" * size).digest(),
            MessageType="DIGEST",
            SigningAlgorithm="ECDSA_SHA_256",
            Signature=der(signature),
        )
    assert message_types == [message_type]
    assert kms_says["SignatureValid"]


def der(raw):
    return encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))


def test_one_public_key_is_loaded_for_signing_and_checking(fake, states):
    states.open(BINDING, seal(states))
    states.open(BINDING, seal(states))
    assert (fake.calls["GetPublicKey"], fake.calls["Sign"]) == (1, 2)


def test_checking_calls_kms_once(fake, states, kms, arn, clock):
    token = seal(states)
    before = fake.calls["GetPublicKey"]
    elsewhere = codec(keys=KmsPublicKeys(kms, [arn], clock))
    for _ in range(10):
        elsewhere.open(BINDING, token)
    assert fake.calls["GetPublicKey"] == before + 1
    assert fake.calls["Verify"] == 0


def test_an_alias_is_resolved_once_and_moving_it_breaks_no_token(fake, kms, arn, clock):
    kms.create_alias(AliasName="alias/state", TargetKeyId=arn)
    keys = KmsPublicKeys(kms, ["alias/state"], clock, TTL_S)
    states = codec(signer=KmsSigner(kms, "alias/state", keys), keys=keys)
    first = seal(states, 1)
    kms.update_alias(AliasName="alias/state", TargetKeyId=signing_key(kms))
    second = seal(states, 2)
    clock.now += TTL_S
    third = seal(states, 3)
    assert [states.open(BINDING, token).payload for token in (first, second, third)] == [1, 2, 3]
    assert header_of(first)["kid"] == header_of(third)["kid"]


def test_a_signature_by_another_key_than_asked_for_is_not_used():
    class Moved(FakeKms):
        def Sign(self, *, KeyId, **members):
            return super().Sign(KeyId=other, **members)

    with running(Moved()) as kms:
        arn, other = signing_key(kms), signing_key(kms)
        with fails_with("signed_by_another_key"):
            KmsSigner(kms, arn).sign(b"x")


def test_a_signature_that_is_no_der_is_not_used():
    class Odd(FakeKms):
        def Sign(self, **members):
            return super().Sign(**members) | {"Signature": bytes(64)}

    with running(Odd()) as kms, fails_with("malformed_answer"):
        KmsSigner(kms, signing_key(kms)).sign(b"x")


# failures


STATES = {
    "throttled": (lambda fake, arn: fake.fail_next(9), "ThrottlingException"),
    "denied": (lambda fake, arn: fake.fail_next(9, "AccessDeniedException"), "AccessDeniedException"),
    "failing": (lambda fake, arn: fake.fail_next(9, "KMSInternalException"), "KMSInternalException"),
    "disabled": (lambda fake, arn: fake.DisableKey(KeyId=arn), "DisabledException"),
    "being deleted": (lambda fake, arn: fake.ScheduleKeyDeletion(KeyId=arn), "KMSInvalidStateException"),
}


@pytest.mark.parametrize(("happens", "reason"), STATES.values(), ids=STATES)
def test_a_key_that_cannot_sign_is_named_by_the_aws_error_code(fake, states, arn, happens, reason):
    token = seal(states)
    happens(fake, arn)
    with fails_with(reason):
        seal(states)
    assert states.open(BINDING, token).round == 1, "checking goes on while KMS does not sign"


@pytest.mark.parametrize(("happens", "reason"), STATES.values(), ids=STATES)
def test_without_any_public_key_opening_fails_with_the_aws_error_code(fake, states, arn, happens, reason):
    happens(fake, arn)
    with fails_with(reason):
        states.open(BINDING, tokens.sealed())


def test_a_key_that_does_not_exist_is_a_failure_of_the_key_service(kms, arn):
    with fails_with("NotFoundException"):
        seal(codec(signer=KmsSigner(kms, arn[:-1])))


def test_an_hmac_key_is_a_failure_of_the_key_service(kms):
    arn = kms.create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")["KeyMetadata"]["Arn"]
    with fails_with("UnsupportedOperationException"):
        seal(codec(signer=KmsSigner(kms, arn)))


@pytest.mark.parametrize(("spec", "usage"), [("ECC_NIST_P384", "SIGN_VERIFY"), ("RSA_2048", "SIGN_VERIFY")])
def test_a_key_of_another_kind_is_a_failure_of_the_key_service(spec, usage):
    with mock_aws():
        kms = client()
        key_id = kms.create_key(KeySpec=spec, KeyUsage=usage)["KeyMetadata"]["KeyId"]
        with fails_with("malformed_answer"):
            KmsKey(kms, key_id, Clock()).trusted()


def test_a_kms_that_is_not_there_is_a_failure_of_the_key_service():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with fails_with("EndpointConnectionError"):
            seal(codec(signer=KmsSigner(client(f"http://127.0.0.1:{port}"), "alias/x")))


def test_a_kms_that_does_not_answer_times_out():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        kms = client(f"http://127.0.0.1:{port}", timeout_s=0.1)
        with fails_with("timeout"):
            seal(codec(signer=KmsSigner(kms, "alias/x")))
        kms.close()


def test_a_failure_shows_neither_token_nor_state(fake, states):
    seal(states)
    fake.fail_next(1, operation="Sign")
    with pytest.raises(KeyServiceError) as failed:
        seal(states, "very secret")
    assert "secret" not in f"{failed.value!r} {failed.value.__cause__!r}"


def test_the_clients_patience_fits_into_a_request():
    config = kms_client("eu-west-1", "http://127.0.0.1:9").meta.config
    assert (config.connect_timeout, config.read_timeout) == (1, 2)
    assert config.retries == {"mode": "standard", "total_max_attempts": 3}


# public keys over time


def test_public_keys_are_confirmed_when_they_are_old(fake, states, clock):
    token = seal(states)
    clock.now += TTL_S - 1
    states.open(BINDING, token)
    assert fake.calls["GetPublicKey"] == 1
    clock.now += 1
    states.open(BINDING, token)
    states.open(BINDING, token)
    assert fake.calls["GetPublicKey"] == 2


def test_public_keys_that_cannot_be_confirmed_are_used_for_a_while(fake, states, clock):
    token = seal(states)
    fake.fail_next(1000)
    clock.now += MAX_UNCONFIRMED_S - 1
    assert states.open(BINDING, token)
    clock.now += 1
    with fails_with("ThrottlingException"):
        states.open(BINDING, token)


def test_a_disabled_key_is_no_longer_trusted_once_kms_says_so(fake, states, arn, clock):
    token = seal(states)
    fake.DisableKey(KeyId=arn)
    assert states.open(BINDING, token)
    clock.now += TTL_S
    with fails_with("DisabledException"):
        states.open(BINDING, token)
    fake.EnableKey(KeyId=arn)
    clock.now += RETRY_S
    assert states.open(BINDING, token)


def test_of_two_keys_the_one_that_is_left_goes_on_being_trusted(fake, kms, arn, clock):
    old = signing_key(kms)
    keys = KmsPublicKeys(kms, [arn, old], clock, TTL_S)
    new_token, old_token = (seal(codec(signer=KmsSigner(kms, key, keys))) for key in (arn, old))
    states = codec(keys=keys)
    assert states.open(BINDING, new_token)
    assert states.open(BINDING, old_token)
    fake.DisableKey(KeyId=old)
    clock.now += TTL_S
    assert states.open(BINDING, new_token)
    with pytest.raises(StateRejected) as refused:
        states.open(BINDING, old_token)
    assert refused.value.reason == "unknown_key"


def test_a_failed_load_is_not_repeated_for_every_token(fake, states, clock):
    fake.fail_next(2, "DisabledException")
    for _ in range(100):
        with fails_with("DisabledException"):
            states.open(BINDING, tokens.sealed())
    assert fake.calls["GetPublicKey"] == 1
    clock.now += RETRY_S
    with fails_with("DisabledException"):
        states.open(BINDING, tokens.sealed())
    assert fake.calls["GetPublicKey"] == 2


def test_no_configured_key_is_a_failure_of_the_key_service(kms, clock):
    with fails_with("no_key_configured"):
        codec(keys=KmsPublicKeys(kms, [], clock)).open(BINDING, tokens.sealed())


def test_a_flood_of_forgeries_calls_kms_not_at_all(fake, states, kms):
    good = seal(states)
    attacker = LocalKey.generate()
    foreign = signing_key(kms)
    private = ec.generate_private_key(ec.SECP256R1())
    before = dict(fake.calls)
    for number in range(250):
        header = header_of(good)
        payload = {"number": number}
        forgeries = (
            signed(header, payload, private),
            signed(header | {"kid": attacker.kid}, payload),
            signed(header | {"kid": foreign}, payload),
            tokens.with_signature(good, (number + 1).to_bytes(64, "big")),
        )
        for forgery in forgeries:
            with pytest.raises(StateRejected):
                states.open(BINDING, forgery)
    assert dict(fake.calls) == before


# processes


class Process:
    def __init__(self, stack, endpoint, arn):
        script = Path(__file__).parent.parent / "support" / "state_process.py"
        self.process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, script, endpoint, arn],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={"PYTHONPATH": str(script.parent.parent)},
            )
        )
        stack.callback(self.process.stdin.close)

    def __call__(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def test_processes_that_share_nothing_but_kms_resume_each_others_tokens(fake, kms, arn):
    with ExitStack() as stack:
        one, other = (Process(stack, kms.meta.endpoint_url, arn) for _ in range(2))
        first = one(seal={"asked": ["size"]}, round=1, since=None)
        opened = other(open=first)
        assert (opened["payload"], opened["round"]) == ({"asked": ["size"]}, 1)
        second = other(seal={"asked": ["size", "region"]}, round=2, since=opened["since"])
        assert one(open=second) == {**opened, "payload": {"asked": ["size", "region"]}, "round": 2}
        raw = unb64(second.split(".")[1])
        tampered = f"{second.split('.')[0]}.{tokens.b64(raw.replace(b'region', b'regiom'))}"
        assert other(open=f"{tampered}.{second.split('.')[2]}") == {"refused": "signature"}
    assert fake.calls["Sign"] == 2
    assert fake.calls["GetPublicKey"] == 2
