"""A JSON Web Key Set (RFC 7517): the keys in it that may verify tokens, and nothing else of it.

Keys are found by `kid` and the algorithm of the token, so that a key serves the algorithms of its own type
alone, and a public key can never become the secret of an HMAC (RFC 8725 §2.1, §3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from mcp_roundtrip.canonical import parse

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
"""What a key of this type and curve can verify."""

SIGNATURE_ALGORITHMS: Final = frozenset(name for names in _ALGORITHMS.values() for name in names)
"""All that can be allowed: with a public key nobody can sign."""

RSA_BITS: Final = range(2048, 8193)
"""RFC 7518 §3.3 asks for 2,048; much larger keys cost every check of a token milliseconds."""

_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

KeySet = Mapping[tuple[str, str], Any]
"""(kid, algorithm) -> public key."""


def key_set(document: bytes) -> KeySet:
    """The usable keys of a JWK Set.

    Left out are: private and symmetric keys (whoever published one has given it away), keys for encryption,
    those of unknown types or bad sizes, and two different keys that one `kid` and algorithm would name.
    Raises ValueError for what is no JWK Set.
    """
    content = parse(document)
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, list):
        raise ValueError("not a JWK Set")
    found: dict[tuple[str, str], list[Any]] = {}
    for jwk in keys:
        for name, key in _named(jwk):
            found.setdefault(name, []).append(key)
    return {name: named[0] for name, named in found.items() if all(key == named[0] for key in named)}


def _named(jwk: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """The key under each name by which a token may ask for it."""
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
    """None for numbers that make no usable key."""
    from cryptography.exceptions import UnsupportedAlgorithm  # only at the first token
    from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm  # as above
    from jwt.exceptions import InvalidKeyError  # as above

    readers = {"RSA": RSAAlgorithm.from_jwk, "EC": ECAlgorithm.from_jwk, "OKP": OKPAlgorithm.from_jwk}
    try:
        key = readers[jwk["kty"]](jwk)
    except (InvalidKeyError, ValueError, TypeError, UnsupportedAlgorithm):
        return None
    bits = getattr(key, "key_size", 0)
    return None if jwk["kty"] == "RSA" and bits not in RSA_BITS else key
