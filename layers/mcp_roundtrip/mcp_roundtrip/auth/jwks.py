"""Parse a JSON Web Key Set (RFC 7517) into the keys that may verify tokens.

Keys are found by `kid` and algorithm, so that a key is used with the algorithms of its type only, and a
public key never as the secret of an HMAC (RFC 8725 §2.1, §3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from mcp_roundtrip.protocol.canonical import parse_json

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = MappingProxyType(
    {
        ("RSA", None): _RSA,
        ("EC", "P-256"): ("ES256",),
        ("EC", "P-384"): ("ES384",),
        ("EC", "P-521"): ("ES512",),
        ("OKP", "Ed25519"): ("EdDSA",),
    }
)
"""Key type and curve -> the algorithms of its signatures."""

SIGNATURE_ALGORITHMS: Final = frozenset(name for names in _ALGORITHMS.values() for name in names)
"""The algorithms that a deployment can allow; HMAC is not among them."""

RSA_BITS: Final = range(2048, 8193)
"""Accepted sizes. RFC 7518 §3.3 requires 2,048; larger keys than these slow down every token."""

_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

KeySet = Mapping[tuple[str, str], Any]
"""(kid, algorithm) -> public key."""


def parse_key_set(document: bytes) -> KeySet:
    """Return the usable keys of a JWK Set. Raises ValueError if the document is not one.

    Ignored are private and symmetric keys, which are compromised once published, keys for encryption, keys of
    unknown types or sizes, and different keys with the same `kid` and algorithm.
    """
    content = parse_json(document)
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, list):
        raise ValueError("not a JWK Set")
    found: dict[tuple[str, str], list[Any]] = {}
    for jwk in keys:
        for name, key in _entries(jwk):
            found.setdefault(name, []).append(key)
    return {name: same[0] for name, same in found.items() if all(key == same[0] for key in same)}


def _entries(jwk: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield the key for each of its algorithms."""
    if not isinstance(jwk, dict) or not isinstance(kid := jwk.get("kid"), str):
        return
    algorithms = [name for name in _algorithms(jwk) if jwk.get("alg", name) == name]
    key = _public_key(jwk) if algorithms and _verifies(jwk) else None
    if key is not None:
        yield from (((kid, algorithm), key) for algorithm in algorithms)


def _algorithms(jwk: Mapping[str, Any]) -> tuple[str, ...]:
    kty, crv = jwk.get("kty"), jwk.get("crv")
    if not isinstance(kty, str) or not isinstance(crv, str | None):
        return ()
    return _ALGORITHMS.get((kty, crv), ())


def _verifies(jwk: Mapping[str, Any]) -> bool:
    operations = jwk.get("key_ops", ["verify"])
    return (
        jwk.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and _PRIVATE.isdisjoint(jwk)
    )


def _public_key(jwk: dict[str, Any]) -> Any:
    """Return the public key; None if its numbers are not a usable key."""
    from cryptography.exceptions import UnsupportedAlgorithm  # only at the first token
    from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm  # only at the first token
    from jwt.exceptions import InvalidKeyError  # only at the first token

    readers = {"RSA": RSAAlgorithm.from_jwk, "EC": ECAlgorithm.from_jwk, "OKP": OKPAlgorithm.from_jwk}
    try:
        key = readers[jwk["kty"]](jwk)
    except (InvalidKeyError, ValueError, TypeError, UnsupportedAlgorithm):
        return None
    bits = getattr(key, "key_size", 0)
    return None if jwk["kty"] == "RSA" and bits not in RSA_BITS else key
