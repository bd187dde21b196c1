"""Encrypted tokens: JWE in compact serialization (RFC 7516 §7.1), in exactly one form.

The content is encrypted directly under a shared key (`dir`, RFC 7518 §4.5) with AES-256 in GCM (`A256GCM`,
§5.3), and is itself a JWT (`cty`, RFC 7519 §5.2). Nothing is compressed, because the length of a compressed
text reveals its content (RFC 8725 §3.6).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.protocol import canonical
from mcp_roundtrip.state import jws

IV_BYTES = 12
"""One key may encrypt 2^32 tokens with random IVs of this size (NIST SP 800-38D §8.3)."""

_IV_CHARACTERS = 16
_TAG_BYTES = 16
_TAG_CHARACTERS = 22
_MAX_HEADER = 512


class ContentKey(Struct, frozen=True, dict=True):  # dict: for cached_property
    """A key of 32 bytes for tokens of type `typ`, and its id."""

    kid: str
    secret: bytes
    typ: str

    def __repr__(self) -> str:  # without the secret
        return f"ContentKey(kid={self.kid!r}, typ={self.typ!r})"

    @cached_property
    def header(self) -> bytes:
        """The encoded protected header."""
        return jws.encode(canonical.compact_json(_header(self.kid, self.typ)).encode("ascii"))

    @cached_property
    def aead(self) -> AESGCM:
        return AESGCM(self.secret)

    def encrypted_length(self, length: int) -> int:
        """Return the length of a token whose content has `length` characters."""
        fixed = len(self.header) + _IV_CHARACTERS + _TAG_CHARACTERS + 4
        return fixed + jws.encoded_length(length)


def encrypt(content: str, key: ContentKey, iv: bytes) -> str:
    """Encrypt the signed token `content`. `iv` has IV_BYTES and must not be used twice with one key."""
    sealed = key.aead.encrypt(iv, content.encode("ascii"), key.header)
    parts = (key.header, b"", *map(jws.encode, (iv, sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:])))
    return b".".join(parts).decode("ascii")


def decrypt(token: bytes, typ: str, find_key: Callable[[str], ContentKey]) -> bytes:
    """Decrypt a token of type `typ`.

    `find_key` takes the `kid` of an unverified header, and raises StateRejected if there is no such key.
    Raises StateRejected for every other token.
    """
    header, encrypted_key, iv, ciphertext, tag = jws.split(token, 5)
    if encrypted_key or len(header) > _MAX_HEADER:
        raise StateRejected("malformed")
    if (len(iv), len(tag)) != (_IV_CHARACTERS, _TAG_CHARACTERS):
        raise StateRejected("malformed")
    key = find_key(_kid(header, typ))
    try:
        sealed = jws.decode(ciphertext) + jws.decode(tag)
        return key.aead.decrypt(jws.decode(iv), sealed, header)
    except InvalidTag:
        raise StateRejected("decryption") from None


def _kid(header: bytes, typ: str) -> str:
    members = jws.decode_json_object(header, "header")
    kid = members.get("kid")
    if not isinstance(kid, str) or members != _header(kid, typ):
        raise StateRejected("header")
    return kid


def _header(kid: str, typ: str) -> dict[str, Any]:
    return {"alg": "dir", "cty": "JWT", "enc": "A256GCM", "kid": kid, "typ": typ}
