"""Public keys that verify JWTs: read from a JWK (RFC 7517, RFC 7518 §6, RFC 8037 §2), and used (RFC 7518 §3).

PyJWT is not used. Its import takes longer than that of all of cryptography that a signature needs, because it
also loads certificates and an HTTP client. The tests compare the signatures with PyJWT's.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

PublicKey = RSAPublicKey | ec.EllipticCurvePublicKey | Ed25519PublicKey

RSA_BITS: Final = range(2048, 8193)
"""Accepted sizes. RFC 7518 §3.3 requires 2,048; larger keys than these slow down every token."""

_CURVES: Final[Mapping[str, ec.EllipticCurve]] = {
    "P-256": ec.SECP256R1(),
    "P-384": ec.SECP384R1(),
    "P-521": ec.SECP521R1(),
}

_HASHES: Final[Mapping[str, hashes.HashAlgorithm]] = {
    "256": hashes.SHA256(),
    "384": hashes.SHA384(),
    "512": hashes.SHA512(),
}
"""The last digits of an algorithm's name -> its hash."""


def read_public_key(jwk: Mapping[str, Any]) -> PublicKey | None:
    """Return the key of a JWK with the `kty` RSA, EC or OKP; None if its members are not a usable key."""
    try:
        match jwk["kty"]:
            case "RSA":
                key = RSAPublicNumbers(_number(jwk, "e"), _number(jwk, "n")).public_key()
                return key if key.key_size in RSA_BITS else None
            case "EC":
                return _point(jwk)
            case _:
                return Ed25519PublicKey.from_public_bytes(_octets(jwk, "x"))
    except (KeyError, ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _point(jwk: Mapping[str, Any]) -> ec.EllipticCurvePublicKey:
    curve, x, y = _CURVES[jwk["crv"]], _octets(jwk, "x"), _octets(jwk, "y")
    if not len(x) == len(y) == _octets_of(curve):
        raise ValueError("a coordinate has the length of the curve's field")
    numbers = ec.EllipticCurvePublicNumbers(int.from_bytes(x, "big"), int.from_bytes(y, "big"), curve)
    return numbers.public_key()


def _octets_of(curve: ec.EllipticCurve) -> int:
    return (curve.key_size + 7) // 8


def _number(jwk: Mapping[str, Any], name: str) -> int:
    return int.from_bytes(_octets(jwk, name), "big")


def _octets(jwk: Mapping[str, Any], name: str) -> bytes:
    text = jwk[name]
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def is_valid_signature(signature: bytes, signing_input: bytes, key: PublicKey, algorithm: str) -> bool:
    """Return whether a JWS signature is valid. `algorithm` is one that `jwks` allows for this key."""
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, signing_input)
        elif isinstance(key, RSAPublicKey):
            digest = _HASHES[algorithm[-3:]]
            key.verify(signature, signing_input, _rsa_padding(algorithm, digest), digest)
        else:
            digest = _HASHES[algorithm[-3:]]
            key.verify(_der_signature(signature, key.curve), signing_input, ec.ECDSA(digest))
    except (InvalidSignature, ValueError):
        return False
    return True


def _rsa_padding(algorithm: str, digest: hashes.HashAlgorithm) -> padding.PKCS1v15 | padding.PSS:
    """Return the padding of RSASSA-PKCS1-v1_5, or that of RSASSA-PSS with a salt as long as the hash."""
    if algorithm.startswith("RS"):
        return padding.PKCS1v15()
    return padding.PSS(padding.MGF1(digest), digest.digest_size)


def _der_signature(raw: bytes, curve: ec.EllipticCurve) -> bytes:
    """Convert r‖s to DER (RFC 7518 §3.4). Raises ValueError for another length."""
    size = _octets_of(curve)
    if len(raw) != 2 * size:
        raise ValueError("r and s have the length of the curve's order")
    return encode_dss_signature(int.from_bytes(raw[:size], "big"), int.from_bytes(raw[size:], "big"))
