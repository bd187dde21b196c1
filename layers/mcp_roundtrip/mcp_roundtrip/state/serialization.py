"""The compact serialization of JWS and JWE (RFC 7515 §7.1, RFC 7516 §7.1): one valid form for each token.

Libraries also accept padding, other characters and non-zero bits in the last character, so a token would have
several valid forms. Here, lengths are checked before anything is read, and parts before anything is decoded.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.protocol import canonical

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
