"""Compare signed tokens with PyJWT and joserfc. test_oracles compares complete states."""

import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws as joserfc_jws
from joserfc.jwk import ECKey

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import StateTooLarge
from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.state import jws
from mcp_roundtrip.state.jws import P256_ORDER
from support.tokens import (
    BINDING,
    KEY,
    NOW,
    PRIVATE,
    b64,
    claims_of,
    codec,
    header_of,
    lower_s,
    sealed,
    unb64,
    with_signature,
)

PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
HEADER = {"alg": "ES256", "kid": KEY.kid, "typ": "mcp-rs+jwt"}


def read(token, typ):
    return jws.verify(token.encode(), typ, jws.key_finder(KEY))[0]


def minted_by_pyjwt(claims):
    return lower_s(jwt.encode(claims, PRIVATE, "ES256", headers=HEADER))


def minted_by_joserfc(claims):
    return lower_s(joserfc_jws.serialize_compact(HEADER, json.dumps(claims), ECKey.import_key(PEM)))


@pytest.mark.parametrize("mint", [minted_by_pyjwt, minted_by_joserfc])
@given(st.dictionaries(st.text(), st.integers() | st.text(), max_size=4))
def test_claims_of_tokens_from_the_libraries_are_read_unchanged(mint, claims):
    claims = {"iss": "x"} | claims | {"exp": NOW}
    claims = {name: value for name, value in claims.items() if name not in {"iat", "nbf", "aud"}}
    claims["iss"] = "x"
    assert read(mint(claims), "mcp-rs+jwt") == claims


@given(st.binary(min_size=1))
def test_every_minted_signature_has_the_lower_s(message):
    assert int.from_bytes(KEY.sign(message)[32:], "big") <= P256_ORDER // 2


def test_a_minted_header_holds_exactly_alg_kid_and_typ():
    assert header_of(sealed()) == HEADER


@given(st.dictionaries(st.text(), st.text(), max_size=3))
def test_the_signing_input_of_a_token_is_that_of_pyjwt(claims):
    claims = {"iss": "x", **claims, "exp": NOW}
    minted = jws.mint(KEY, HEADER["typ"], claims, max_length=100_000)
    assert minted.rpartition(".")[0] == minted_by_pyjwt(claims).rpartition(".")[0]


@given(st.dictionaries(st.text(), st.text(), max_size=3))
def test_the_length_of_a_token_is_known_before_signing(claims):
    token = jws.mint(KEY, "t+jwt", claims, max_length=100_000)
    with pytest.raises(StateTooLarge) as refused:
        jws.mint(KEY, "t+jwt", claims, max_length=len(token) - 1)
    assert refused.value.size == len(token)
    assert read(token, "t+jwt") == claims


def test_a_token_of_another_type_is_refused():
    token = jws.mint(KEY, "one+jwt", {}, max_length=1000)
    with pytest.raises(StateRejected) as refused:
        read(token, "other+jwt")
    assert refused.value.reason == "header"


def test_malleable_tokens_that_pyjwt_accepts_are_refused():
    """PyJWT cannot replace the strict verifier: it accepts several spellings of one token."""
    good = sealed(1, now=time.time())
    raw = unb64(good.rpartition(".")[2])
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    negated_s = with_signature(good, r.to_bytes(32, "big") + (P256_ORDER - s).to_bytes(32, "big"))
    duplicate = minted_raw(compact_json(claims_of(good))[:-1] + ',"rnd":9}')
    for spelling in (good + "==", negated_s, duplicate):
        assert jwt.decode(spelling, PRIVATE.public_key(), ["ES256"], audience=BINDING.audience)
        with pytest.raises(StateRejected):
            codec(time.time()).open(BINDING, spelling)


def minted_raw(payload):
    signing_input = f"{b64(compact_json(HEADER).encode())}.{b64(payload.encode())}"
    return f"{signing_input}.{b64(KEY.sign(signing_input.encode()))}"
