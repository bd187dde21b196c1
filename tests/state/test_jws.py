"""Compare signed tokens with PyJWT and joserfc."""

import hashlib
import json
import time
from base64 import urlsafe_b64encode
from functools import partial
from operator import mul

import jwt
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws as joserfc_jws
from joserfc.jwk import ECKey

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.state import jws
from mcp_roundtrip.state.jws import (
    FIRST_RETRY_S,
    P256_ORDER,
    RENEWAL_RETRY_S,
    Backoff,
    LocalKey,
    is_valid_signature,
    kid_of,
    raw_signature,
    renewal_time,
)
from mcp_roundtrip_testing import FakeClock
from support import tokens

PEM = tokens.PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
HEADER = {"alg": "ES256", "kid": tokens.KEY.kid, "typ": "mcp-rs+jwt"}


def read(token, typ):
    return jws.verify(token.encode(), typ, jws.key_finder(tokens.KEY))[0]


def minted_by_pyjwt(claims):
    return tokens.lower_s(jwt.encode(claims, tokens.PRIVATE, "ES256", headers=HEADER))


def minted_by_joserfc(claims):
    return tokens.lower_s(joserfc_jws.serialize_compact(HEADER, json.dumps(claims), ECKey.import_key(PEM)))


@pytest.mark.parametrize("mint", [minted_by_pyjwt, minted_by_joserfc])
@given(st.dictionaries(st.text(), st.integers() | st.text(), max_size=4))
def test_claims_of_tokens_from_the_libraries_are_read_unchanged(mint, claims):
    claims = {name: value for name, value in claims.items() if name not in {"iat", "nbf", "aud"}}
    claims |= {"iss": "x", "exp": tokens.NOW}
    assert read(mint(claims), "mcp-rs+jwt") == claims


@given(st.dictionaries(st.text(), st.text(), max_size=3))
def test_the_signing_input_of_a_token_is_that_of_pyjwt_and_its_type_is_checked(claims):
    claims = {"iss": "x", **claims, "exp": tokens.NOW}
    minted = jws.mint(tokens.KEY, HEADER["typ"], claims, max_length=100_000)
    assert tokens.header_of(minted) == HEADER
    assert minted.rpartition(".")[0] == minted_by_pyjwt(claims).rpartition(".")[0]
    with pytest.raises(StateRejected) as refused:
        read(minted, "other+jwt")
    assert refused.value.reason == "header"


def test_malleable_tokens_that_pyjwt_accepts_are_refused():
    """PyJWT cannot replace the strict verifier: it accepts several spellings of one token."""
    good = tokens.sealed(1, now=time.time())
    raw = tokens.unb64(good.rpartition(".")[2])
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    negated_s = tokens.with_signature(good, r.to_bytes(32, "big") + (P256_ORDER - s).to_bytes(32, "big"))
    duplicate = minted_raw(compact_json(tokens.claims_of(good))[:-1] + ',"rnd":9}')
    for spelling in (good + "==", negated_s, duplicate):
        assert jwt.decode(spelling, tokens.PRIVATE.public_key(), ["ES256"], audience=tokens.BINDING.audience)
        with pytest.raises(StateRejected):
            tokens.codec(time.time()).open(tokens.BINDING, spelling)


def minted_raw(payload):
    signing_input = f"{tokens.b64(compact_json(HEADER).encode())}.{tokens.b64(payload.encode())}"
    return f"{signing_input}.{tokens.b64(tokens.KEY.sign(signing_input.encode()))}"


ONE = ec.generate_private_key(ec.SECP256R1())


def test_a_kid_is_a_digest_of_the_public_key_and_a_local_key_trusts_only_itself():
    spki = ONE.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert kid_of(ONE.public_key()) == urlsafe_b64encode(hashlib.sha256(spki).digest()[:12]).decode()
    assert LocalKey(ONE).kid == kid_of(ONE.public_key())
    assert LocalKey(ONE).find(LocalKey.generate().kid) is None


@pytest.mark.parametrize(
    "der",
    [
        b"",
        b"not DER",
        utils.encode_dss_signature(0, 1),
        utils.encode_dss_signature(1, 0),
        utils.encode_dss_signature(P256_ORDER, 1),
        utils.encode_dss_signature(1, P256_ORDER),
    ],
)
def test_a_malformed_p256_signature_is_refused(der):
    with pytest.raises(ValueError, match=r"asn1|order"):
        raw_signature(der)


@given(st.binary(min_size=40, max_size=40))
def test_a_key_depends_only_on_the_given_random_bytes_which_may_be_any(given_bytes):
    one, same, other = (LocalKey.generate(partial(mul, byte)) for byte in (b"a", b"a", b"b"))
    assert one.kid == same.kid != other.kid
    assert LocalKey.generate(lambda size: given_bytes[:size]).kid


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_a_signature_is_valid_only_for_its_message_and_its_key(message, other):
    key = LocalKey(ONE)
    signature = key.sign(message)
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    assert s <= P256_ORDER // 2
    key.public_key.verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
    assert key.find(key.kid) == jws.VerificationKey(key.public_key, key.kid)
    assert is_valid_signature(signature, message, key.public_key)
    assert is_valid_signature(signature, other, key.public_key) == (message == other)
    assert not is_valid_signature(signature, message, LocalKey.generate().public_key)


def test_a_key_on_another_curve_is_refused():
    p384 = ec.generate_private_key(ec.SECP384R1())
    with pytest.raises(ValueError, match="P-256"):
        LocalKey(p384)


@given(st.integers(0, 2**40), st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_renewal_is_due_late_in_the_lifetime_and_before_its_last_twelfth(start, length, random):
    moment = renewal_time(start, start + length, random)
    assert start + length * 2 / 3 <= moment + 0.001
    assert moment <= start + length * 11 / 12 + 0.001
    assert len({renewal_time(0, 3600, number / 100) for number in range(100)}) == 100


def failing(clock, seconds):
    """Return a call that takes `seconds` and fails."""

    def call():
        clock.advance(seconds)
        raise KeyServiceError("timeout", "of AWS")

    return call


@pytest.mark.parametrize(
    ("first_s", "pauses_s"), [(FIRST_RETRY_S, [1, 2, 4, 8, 16, 32, 60, 60]), (RENEWAL_RETRY_S, [60, 60])]
)
@pytest.mark.parametrize("seconds", [0, 6, 600])
def test_pauses_after_failures_grow_up_to_a_minute_unless_the_clock_is_set_back(seconds, first_s, pauses_s):
    clock = FakeClock()
    backoff = Backoff(clock, first_s)
    with pytest.raises(ZeroDivisionError):
        backoff.attempt(lambda: 1 / 0)  # no error of a key service
    for _ in range(2):  # a success ends the pauses
        for pause_s in pauses_s:
            with pytest.raises(KeyServiceError) as failed:
                backoff.attempt(failing(clock, seconds))
            clock.advance(pause_s - 1)
            with pytest.raises(KeyServiceError) as again:
                backoff.attempt(lambda: "key")
            assert again.value is not failed.value, "it would accumulate tracebacks"
            assert (again.value.reason, str(again.value)) == ("timeout", "of AWS")
            clock.advance(1)
        assert backoff.attempt(lambda: "key") == "key"
    with pytest.raises(KeyServiceError):
        backoff.attempt(failing(clock, 0))
    clock.advance(-1000)
    assert backoff.attempt(lambda: "key") == "key"
