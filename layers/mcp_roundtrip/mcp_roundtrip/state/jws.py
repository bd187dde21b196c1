"""Signed tokens: JWS in compact serialization (RFC 7515 §7.1), in exactly one form.

The header has ES256, a `typ` that keeps tokens made for different purposes apart (RFC 8725 §3.11), and the
members that identify the key. PyJWT is not used. Its decoder accepts padding, any `typ`, duplicate and
unknown members and the second valid s of a signature, so a token would have several valid forms. Its import
takes twice as long as that of the parts of cryptography that a token needs. The tests compare the tokens with
PyJWT's and joserfc's.

Lengths are checked before anything is read, and parts before anything is decoded.
"""

from __future__ import annotations

import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from msgspec import Struct

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import StateTooLarge
from mcp_roundtrip.protocol import canonical
from mcp_roundtrip.state.keys import PublicKeys, Signer, is_valid_signature

ALG = "ES256"
_SIGNATURE_CHARACTERS = 86
# A header with a certificate has about 900 characters. The limit bounds what is parsed before verification.
_MAX_HEADER = 4096


class TrustedKey(Struct, frozen=True):
    """A trusted key until `expires_at` (epoch seconds). `kid` identifies the root key that certified it."""

    public_key: EllipticCurvePublicKey
    kid: str
    expires_at: float = math.inf


FindKey = Callable[[Mapping[str, Any]], TrustedKey]
"""Takes the header members except `alg` and `typ`. Raises StateRejected if they identify no trusted key."""


def mint(
    signer: Signer,
    typ: str,
    claims: Mapping[str, Any],
    *,
    max_length: int,
    encrypted_length: Callable[[int], int] = lambda length: length,
) -> str:
    """Sign `claims` into a token of type `typ`.

    `encrypted_length` returns the length of the encrypted token for the length of the signed one. Raises
    StateTooLarge, before signing, if that is over `max_length`, and KeyServiceError if signing fails.
    """
    header = _encode_json({"alg": ALG, **signer.key_members, "typ": typ})
    signing_input = header + b"." + _encode_json(claims)
    length = encrypted_length(len(signing_input) + 1 + _SIGNATURE_CHARACTERS)
    if length > max_length:
        raise StateTooLarge(length, max_length)
    signature = encode(signer.sign(signing_input))
    return f"{signing_input.decode('ascii')}.{signature.decode('ascii')}"


def _encode_json(members: Mapping[str, Any]) -> bytes:
    return encode(canonical.compact_json(members).encode("ascii"))


def verify(token: bytes, typ: str, find_key: FindKey) -> tuple[dict[str, Any], TrustedKey]:
    """Verify a token of type `typ`; return its claims and the key that signed it.

    The caller checks the claims. Raises StateRejected, and the exceptions of `find_key`.
    """
    header, payload, signature = split(token, 3)
    if len(header) > _MAX_HEADER or len(signature) != _SIGNATURE_CHARACTERS:
        raise StateRejected("malformed")
    key = find_key(_key_members(header, typ))
    signing_input = token[: -_SIGNATURE_CHARACTERS - 1]
    if not is_valid_signature(decode(signature), signing_input, key.public_key):
        raise StateRejected("signature")
    # Deeper than a request's body: the journal adds levels.
    return decode_json_object(payload, "payload", max_depth=2 * canonical.MAX_DEPTH), key


def key_finder(keys: PublicKeys) -> FindKey:
    """Return a FindKey that accepts a header with `kid` and no other member."""

    def find(members: Mapping[str, Any]) -> TrustedKey:
        kid = members.get("kid")
        if members.keys() != {"kid"} or not isinstance(kid, str):
            raise StateRejected("header")
        key = keys.find(kid)
        if key is None:
            raise StateRejected("unknown_key")
        return TrustedKey(key, kid)

    return find


def _key_members(header: bytes, typ: str) -> dict[str, Any]:
    members = decode_json_object(header, "header")
    # The algorithm is never the token's choice (RFC 8725 §3.1).
    if (members.pop("alg", None), members.pop("typ", None)) != (ALG, typ):
        raise StateRejected("header")
    return members


_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def to_ascii(token: object, max_length: int) -> bytes:
    """Return the token as ASCII. Raises StateRejected if it is not a string, too long or not ASCII."""
    if not isinstance(token, str):
        raise StateRejected("not_a_string")
    if len(token) > max_length:
        raise StateRejected("too_long")
    try:
        return token.encode("ascii")
    except UnicodeEncodeError:
        raise StateRejected("malformed") from None


def split(token: bytes, count: int) -> list[bytes]:
    """Split a token into `count` encoded parts. Raises StateRejected for another number or alphabet."""
    if token.translate(None, _ALPHABET) != b"." * (count - 1):
        raise StateRejected("malformed")
    return token.split(b".")


def decode(part: bytes) -> bytes:
    """Decode a part. Raises StateRejected for a form that `encode` does not write."""
    tail = len(part) % 4
    if tail == 1:
        raise StateRejected("malformed")
    decoded = urlsafe_b64decode(part + b"=" * (-tail % 4))
    # The unused bits of the last character must be zero (RFC 4648 §3.5).
    if tail and encode(decoded[1 - tail :]) != part[-tail:]:
        raise StateRejected("malformed")
    return decoded


def decode_json_object(part: bytes, reason: str, *, max_depth: int = canonical.MAX_DEPTH) -> dict[str, Any]:
    """Return the JSON object in an encoded part. Raises StateRejected with `reason` if there is none."""
    try:
        value = canonical.parse_json(decode(part), max_depth=max_depth)
    except ValueError:
        raise StateRejected(reason) from None
    if not isinstance(value, dict):
        raise StateRejected(reason)
    return value


def encode(data: bytes) -> bytes:
    """Encode bytes as Base64url without padding (RFC 7515 §2)."""
    return urlsafe_b64encode(data).rstrip(b"=")


def encoded_length(size: int) -> int:
    """Return the number of characters that `encode` returns for `size` bytes."""
    return (size * 4 + 2) // 3
