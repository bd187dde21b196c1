"""The compact serialization of JWS and JWE (RFC 7515 §7.1, RFC 7516 §7.1), with one spelling for each token.

Libraries are lenient here: padding, foreign characters or stray bits in the last character would each make a
second spelling of a token. Parts are checked before anything is decoded, and lengths before anything is read.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from mcp_roundtrip import canonical
from mcp_roundtrip.errors import StateRejected

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def read(token: object, max_length: int) -> bytes:
    """The token's characters. Raises StateRejected for what is no string, too long or not in ASCII."""
    if not isinstance(token, str):
        raise StateRejected("not_a_string")
    if len(token) > max_length:
        raise StateRejected("too_long")
    try:
        return token.encode("ascii")
    except UnicodeEncodeError:
        raise StateRejected("malformed") from None


def split(token: bytes, count: int) -> list[bytes]:
    """The `count` parts of a token, still encoded. Raises StateRejected for any other number and alphabet."""
    if token.translate(None, _ALPHABET) != b"." * (count - 1):
        raise StateRejected("malformed")
    return token.split(b".")


def decode(part: bytes) -> bytes:
    """The inverse of `encode` for a part of `split`. Raises StateRejected for any other spelling."""
    tail = len(part) % 4
    if tail == 1:
        raise StateRejected("malformed")
    decoded = urlsafe_b64decode(part + b"=" * (-tail % 4))
    # The bits that the last character has too many must be zero (RFC 4648 §3.5).
    if tail and encode(decoded[1 - tail :]) != part[-tail:]:
        raise StateRejected("malformed")
    return decoded


def json_object(part: bytes, reason: str, *, max_depth: int = canonical.MAX_DEPTH) -> dict[str, Any]:
    """The JSON object in an encoded part. Raises StateRejected with `reason` if it holds none."""
    try:
        value = canonical.parse_json(decode(part), max_depth=max_depth)
    except ValueError:
        raise StateRejected(reason) from None
    if not isinstance(value, dict):
        raise StateRejected(reason)
    return value


def encode(data: bytes) -> bytes:
    """Base64url without padding (RFC 7515 §2)."""
    return urlsafe_b64encode(data).rstrip(b"=")


def encoded_length(size: int) -> int:
    """How many characters `encode` makes of `size` bytes."""
    return (size * 4 + 2) // 3
