"""Encrypted tokens: JWE in compact form (RFC 7516 §7.1) with exactly one shape.

The content is encrypted directly under a shared key (`dir`, RFC 7518 §4.5) with AES-256 in GCM (`A256GCM`,
§5.3), and is itself a JWT (`cty`, RFC 7519 §5.2). Nothing is compressed: the length of a compressed text
tells what is in it (RFC 8725 §3.6).

cryptography is imported where it is used: a call without state does without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp_roundtrip import canonical
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import compact

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

IV_BYTES = 12
"""One key serves 2^32 tokens with random IVs of this size (NIST SP 800-38D §8.3)."""

_IV_CHARACTERS = 16
_TAG_BYTES = 16
_TAG_CHARACTERS = 22
_MAX_HEADER = 512


@dataclass(frozen=True)  # no slots: cached_property needs a dictionary
class ContentKey:
    """32 bytes that encrypt tokens of type `typ`, and their name."""

    kid: str
    secret: bytes = field(repr=False)
    typ: str

    @cached_property
    def header(self) -> bytes:
        """The protected header, encoded."""
        return compact.encode(canonical.compact_json(_header(self.kid, self.typ)).encode("ascii"))

    @cached_property
    def aead(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # see the module's docstring

        return AESGCM(self.secret)

    def wrapped(self, length: int) -> int:
        """How many characters a token around a content of `length` characters has."""
        fixed = len(self.header) + _IV_CHARACTERS + _TAG_CHARACTERS + 4
        return fixed + compact.encoded_length(length)


def encrypt(content: str, key: ContentKey, iv: bytes) -> str:
    """A token around the token `content`. `iv` has IV_BYTES, and must never be used twice with one key."""
    sealed = key.aead.encrypt(iv, content.encode("ascii"), key.header)
    parts = (key.header, b"", *map(compact.encode, (iv, sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:])))
    return b".".join(parts).decode("ascii")


def decrypt(token: bytes, typ: str, find_key: Callable[[str], ContentKey]) -> bytes:
    """The content of a token of type `typ`.

    `find_key` takes the `kid` of an unverified header and raises StateRejected if it names no key. Raises
    StateRejected for every other token.
    """
    from cryptography.exceptions import InvalidTag  # see the module's docstring

    header, encrypted_key, iv, ciphertext, tag = compact.split(token, 5)
    if encrypted_key or len(header) > _MAX_HEADER:
        raise StateRejected("malformed")
    if (len(iv), len(tag)) != (_IV_CHARACTERS, _TAG_CHARACTERS):
        raise StateRejected("malformed")
    key = find_key(_kid(header, typ))
    try:
        sealed = compact.decode(ciphertext) + compact.decode(tag)
        return key.aead.decrypt(compact.decode(iv), sealed, header)
    except InvalidTag:
        raise StateRejected("decryption") from None


def _kid(header: bytes, typ: str) -> str:
    members = compact.json_object(header, "header")
    kid = members.get("kid")
    if not isinstance(kid, str) or members != _header(kid, typ):
        raise StateRejected("header")
    return kid


def _header(kid: str, typ: str) -> dict[str, Any]:
    return {"alg": "dir", "cty": "JWT", "enc": "A256GCM", "kid": kid, "typ": typ}
