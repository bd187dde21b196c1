"""JSON Web Key Sets: usable keys, and keys that must not be used."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.auth.jwks import SIGNATURE_ALGORITHMS, parse_key_set
from support.token_issuer import ONE, RSA, TWO, Key, jwks

ED = Key("ed", "EdDSA")


def without(key: Key, *names: str) -> dict[str, Any]:
    return {name: member for name, member in key.jwk().items() if name not in names}


def test_keys_are_found_by_kid_and_algorithm() -> None:
    keys = parse_key_set(jwks(ONE, RSA, Key("p384", "ES384"), ED))
    assert keys.keys() == {("one", "ES256"), ("rsa", "RS256"), ("p384", "ES384"), ("ed", "EdDSA")}
    assert keys["one", "ES256"] == ONE.private.public_key()


def test_a_key_without_alg_verifies_the_algorithms_of_its_type() -> None:
    keys = parse_key_set(jwks(without(RSA, "alg", "use"), without(ONE, "alg")))
    rsa = {("rsa", name) for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")}
    assert keys.keys() == {("one", "ES256"), *rsa}


def test_symmetric_algorithms_cannot_be_allowed() -> None:
    assert not {name for name in SIGNATURE_ALGORITHMS if name.startswith("HS") or name.lower() == "none"}


UNUSABLE: dict[str, Any] = {
    "private EC": TWO.jwk(private=True),
    "private RSA": {**RSA.jwk(private=True), "kid": "x"},
    "private Ed25519": ED.jwk(private=True),
    "symmetric": {"kty": "oct", "kid": "x", "k": "c2VjcmV0", "alg": "HS256"},
    "an RSA key with a secret": {**RSA.jwk(), "kid": "x", "k": "c2VjcmV0"},
    "an RSA key for HMAC": {**RSA.jwk(), "kid": "x", "alg": "HS256"},
    "an EC key for RS256": {**TWO.jwk(), "alg": "RS256"},
    "an EC key with the name of another curve": {**TWO.jwk(), "crv": "P-384", "alg": "ES384"},
    "for encryption": {**TWO.jwk(), "use": "enc"},
    "for signing only": {**TWO.jwk(), "key_ops": ["sign"]},
    "key_ops of another kind": {**TWO.jwk(), "key_ops": "verify"},
    "no kid": without(TWO, "kid"),
    "kid is a number": {**TWO.jwk(), "kid": 7},
    "no kty": without(TWO, "kty"),
    "kty is a list": {**TWO.jwk(), "kty": ["EC"]},
    "crv is a list": {**TWO.jwk(), "crv": ["P-256"]},
    "an unknown curve": {**TWO.jwk(), "crv": "secp256k1", "alg": "ES256K"},
    "a point that is not on the curve": {**TWO.jwk(), "x": TWO.jwk()["y"]},
    "a point without y": without(TWO, "y"),
    "coordinates that are numbers": {**TWO.jwk(), "x": 7},
    "coordinates that are no Base64": {**TWO.jwk(), "x": "é"},
    "1,024 bits": Key("short", "RS256").jwk(),
    "an even exponent": {**RSA.jwk(), "kid": "x", "e": "Ag"},
    "16,384 bits": {**RSA.jwk(), "kid": "x", "n": "_" + "_" * 2_730},
    "not an object": "a key",
    "nothing": None,
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_key_is_skipped_and_the_others_are_used(name: str) -> None:
    assert parse_key_set(jwks(UNUSABLE[name], ONE)).keys() == {("one", "ES256")}
    assert parse_key_set(jwks(UNUSABLE[name])) == {}


def test_different_keys_with_one_kid_are_all_unusable() -> None:
    keys = parse_key_set(jwks(ONE, {**TWO.jwk(), "kid": "one"}, RSA))
    assert keys.keys() == {("rsa", "RS256")}


def test_a_repeated_key_counts_once() -> None:
    assert parse_key_set(jwks(ONE, ONE)).keys() == {("one", "ES256")}


def test_keys_of_different_types_may_share_a_kid() -> None:
    assert len(parse_key_set(jwks(ONE, {**RSA.jwk(), "kid": "one"}))) == 2


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<!doctype html><title>Sign in</title>",
        b"[]",
        b"{}",
        b'{"keys":{}}',
        b'{"keys":[],"keys":[]}',
        b'{"keys":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b"\xff\xfe",
    ],
)
def test_a_malformed_key_set_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text is not used
        parse_key_set(document)
