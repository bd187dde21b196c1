import hashlib
from base64 import urlsafe_b64encode
from functools import partial
from operator import mul

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.state.jws import P256_ORDER, LocalKey, is_valid_signature, kid_of, raw_signature

ONE = ec.generate_private_key(ec.SECP256R1())
SCALARS = st.integers(1, P256_ORDER - 1)


def test_a_kid_is_a_digest_of_the_public_key():
    spki = ONE.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert kid_of(ONE.public_key()) == urlsafe_b64encode(hashlib.sha256(spki).digest()[:12]).decode()
    assert LocalKey(ONE).kid == kid_of(ONE.public_key())


def test_different_keys_have_different_kids():
    assert LocalKey.generate().kid != LocalKey.generate().kid


@given(SCALARS, SCALARS)
def test_a_raw_signature_is_r_followed_by_the_lower_s(r, s):
    raw = raw_signature(utils.encode_dss_signature(r, s))
    lower = int.from_bytes(raw[32:], "big")
    assert len(raw) == 64
    assert int.from_bytes(raw[:32], "big") == r
    assert lower in (s, P256_ORDER - s)
    assert lower <= P256_ORDER // 2


@given(SCALARS, SCALARS)
def test_a_signature_with_s_and_one_with_its_negation_have_the_same_raw_form(r, s):
    negations = (utils.encode_dss_signature(r, value) for value in (s, P256_ORDER - s))
    assert len({raw_signature(der) for der in negations}) == 1


@pytest.mark.parametrize(
    "der",
    [
        b"",
        b"not DER",
        bytes(64),
        utils.encode_dss_signature(0, 1),
        utils.encode_dss_signature(1, 0),
        utils.encode_dss_signature(P256_ORDER, 1),
        utils.encode_dss_signature(1, P256_ORDER),
        utils.encode_dss_signature(1 << 256, 1),
    ],
)
def test_a_malformed_p256_signature_is_refused(der):
    with pytest.raises(ValueError, match=r"asn1|order"):
        raw_signature(der)


@given(st.binary())
def test_a_signature_of_a_local_key_verifies_with_its_public_key(message):
    key = LocalKey(ONE)
    raw = key.sign(message)
    der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    public = key.find(key.kid)
    assert public is not None
    public.verify(der, message, ec.ECDSA(hashes.SHA256()))


def test_a_key_depends_only_on_the_given_random_bytes():
    one, same, other = (LocalKey.generate(partial(mul, byte)) for byte in (b"a", b"a", b"b"))
    assert one.kid == same.kid != other.kid


@given(st.binary(min_size=40, max_size=40))
def test_any_random_bytes_yield_a_key(given_bytes):
    assert LocalKey.generate(lambda size: given_bytes[:size]).kid


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_a_signature_is_valid_only_for_its_message_and_its_key(message, other):
    key = LocalKey(ONE)
    signature = key.sign(message)
    assert is_valid_signature(signature, message, key.public_key)
    assert is_valid_signature(signature, other, key.public_key) == (message == other)
    assert not is_valid_signature(signature, message, LocalKey.generate().public_key)


def test_a_signature_with_negated_s_is_not_valid():
    key = LocalKey(ONE)
    signature = key.sign(b"x")
    negated_s = P256_ORDER - int.from_bytes(signature[32:], "big")
    assert not is_valid_signature(signature[:32] + negated_s.to_bytes(32, "big"), b"x", key.public_key)


def test_a_local_key_trusts_only_itself():
    assert LocalKey(ONE).find(LocalKey.generate().kid) is None


def test_a_key_on_another_curve_is_refused():
    p384 = ec.generate_private_key(ec.SECP384R1())
    with pytest.raises(ValueError, match="P-256"):
        LocalKey(p384)
