"""Public keys of issuers, with PyJWT as the oracle for keys and signatures."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.auth.jwks import SIGNATURE_ALGORITHMS
from mcp_roundtrip.auth.public_keys import is_valid_signature, read_public_key
from support.token_issuer import RSA, Key

RSA_ALGORITHMS = frozenset(name for name in SIGNATURE_ALGORITHMS if name.startswith(("RS", "PS")))
INPUT = b"header.payload"

every_algorithm = pytest.mark.parametrize("algorithm", sorted(SIGNATURE_ALGORITHMS))


def key_for(algorithm: str) -> Key:
    return RSA if algorithm in RSA_ALGORITHMS else Key(algorithm, algorithm)


def public_key(algorithm: str) -> Any:
    return read_public_key(key_for(algorithm).jwk())


def sign(algorithm: str, message: bytes = INPUT) -> bytes:
    signed: bytes = jwt.PyJWS().get_algorithm_by_name(algorithm).sign(message, key_for(algorithm).private)
    return signed


@every_algorithm
def test_a_key_equals_the_one_that_the_issuer_published(algorithm: str) -> None:
    assert public_key(algorithm) == key_for(algorithm).private.public_key()


@every_algorithm
def test_a_signature_of_pyjwt_is_valid(algorithm: str) -> None:
    assert is_valid_signature(sign(algorithm), INPUT, public_key(algorithm), algorithm)


@every_algorithm
def test_a_signature_of_another_message_is_invalid(algorithm: str) -> None:
    assert not is_valid_signature(sign(algorithm), INPUT + b".", public_key(algorithm), algorithm)


@pytest.mark.parametrize("algorithm", sorted(RSA_ALGORITHMS))
def test_a_signature_of_another_rsa_algorithm_is_invalid(algorithm: str) -> None:
    signature = sign(algorithm)
    valid = {each for each in RSA_ALGORITHMS if is_valid_signature(signature, INPUT, public_key(each), each)}
    assert valid == {algorithm}


def test_a_pss_salt_that_is_not_as_long_as_the_hash_is_refused() -> None:
    """RFC 7518 §3.5."""
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 20)
    signature = RSA.private.sign(INPUT, pss, hashes.SHA256())
    assert not is_valid_signature(signature, INPUT, public_key("PS256"), "PS256")


@every_algorithm
@given(position=st.integers(0), mask=st.integers(1, 255))
def test_a_changed_signature_is_invalid(algorithm: str, position: int, mask: int) -> None:
    signature = bytearray(sign(algorithm))
    signature[position % len(signature)] ^= mask
    assert not is_valid_signature(bytes(signature), INPUT, public_key(algorithm), algorithm)


@every_algorithm
@pytest.mark.parametrize("change", [b"", b"\0", None])
def test_a_signature_of_another_length_is_invalid(algorithm: str, change: bytes | None) -> None:
    signature = b"" if change == b"" else sign(algorithm)[:-1] if change is None else sign(algorithm) + change
    assert not is_valid_signature(signature, INPUT, public_key(algorithm), algorithm)


@pytest.mark.parametrize("size", [32, 48, 66])
def test_zeros_are_no_signature_of_an_elliptic_curve(size: int) -> None:
    """Some verifiers accepted r = s = 0 for every message (CVE-2022-21449)."""
    algorithm = {32: "ES256", 48: "ES384", 66: "ES512"}[size]
    assert not is_valid_signature(bytes(2 * size), INPUT, public_key(algorithm), algorithm)
