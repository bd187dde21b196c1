"""Encrypted tokens: JWE in compact serialization (RFC 7516 §7.1), in exactly one form.

The content is encrypted directly under a shared key (`dir`, RFC 7518 §4.5) with AES-256 in GCM (`A256GCM`,
§5.3), and is itself a JWT (`cty`, RFC 7519 §5.2). Nothing is compressed, because the length of a compressed
text reveals its content (RFC 8725 §3.6).

Each environment derives the same key for each hour, and stores nothing. A key is the HMAC-SHA-256 that a MAC
key computes over the number of the epoch (a PRF as key derivation function, NIST SP 800-108) and the
deployment's issuer: deployments that share a MAC key share no epoch key. The MAC key stays in the key
service, so a leaked epoch key only decrypts the states of its epoch. A `kid` is `<short key id>.<epoch>`,
with the short id of the MAC key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct, field

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.protocol import strict_json
from mcp_roundtrip.state import jws
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.jws import FIRST_RETRY_S, Backoff, renewal_time

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
        return jws.encode(strict_json.compact_json(_header(self.kid, self.typ)).encode("ascii"))

    @cached_property
    def aead(self) -> AESGCM:
        return AESGCM(self.secret)

    def encrypted_length(self, length: int) -> int:
        """Return the length of a token whose content has `length` characters."""
        fixed = len(self.header) + _IV_CHARACTERS + _TAG_CHARACTERS + 4
        return fixed + jws.encoded_length(length)


def encrypt(content: str, key: ContentKey, iv: bytes) -> str:
    """Encrypt a signed token. `iv` has IV_BYTES and must not be used twice with one key."""
    sealed = key.aead.encrypt(iv, content.encode("ascii"), key.header)
    parts = (key.header, b"", *map(jws.encode, (iv, sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:])))
    return b".".join(parts).decode("ascii")


def decrypt(token: bytes, typ: str, find_key: Callable[[str], ContentKey]) -> bytes:
    """Decrypt a token of type `typ`. `find_key` takes an unverified `kid`. Raises StateRejected."""
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


EPOCH_S = 3600

_KID = re.compile(r"([A-Za-z0-9_-]{8})\.([1-9][0-9]{0,9})", re.ASCII)


class MacKey(Protocol):
    """A key for HMAC-SHA-256 that has no other use: `aws.kms.KmsMacKey`."""

    @property
    def short_key_id(self) -> str: ...

    def mac(self, message: bytes) -> bytes:
        """Return 32 bytes. Raises KeyServiceError if the key is not available."""


def short_key_id(key_id: str) -> str:
    """Return 8 characters that identify a MAC key in tokens without revealing its id, in any Region."""
    return strict_json.digest("mcp-rs/v1/key_id", key_id, size=6)


class EpochKeys(Struct):
    """The epoch keys of one or more MAC keys. States are encrypted with those of the first.

    `clock` returns epoch seconds, `random` numbers in [0, 1).

    The first request after a random time late in an epoch derives the key of the next one, so that the
    environments do not all call the key service on the hour. If that fails, the current key is used until its
    epoch ends. Keys of the other MAC keys are derived when a token needs them.
    """

    mac_keys: Sequence[MacKey]
    typ: str
    limits: Limits
    issuer: str
    clock: Callable[[], float]
    random: Callable[[], float]
    renewals: Backoff
    _keys: dict[tuple[str, int], ContentKey] = field(default_factory=dict)
    _backoffs: dict[str, Backoff] = field(default_factory=dict)
    _ahead: tuple[int, float] = (-1, 0.0)  # an epoch, and the time to derive the key of the next one

    def current(self, now: float) -> ContentKey:
        """Return the key to encrypt with at `now` (epoch seconds). Raises KeyServiceError."""
        self._discard_expired(now)
        epoch = int(now // EPOCH_S)
        key = self._key(self.mac_keys[0].short_key_id, epoch)
        self._derive_ahead(epoch, now)
        return key

    def find(self, kid: str, now: float) -> ContentKey:
        """Return the key of an unverified `kid`. Raises KeyServiceError.

        Raises StateRejected, without calling the key service, if no valid token can have this `kid`.
        """
        self._discard_expired(now)
        match = _KID.fullmatch(kid)
        if match is None:
            raise StateRejected("header")
        key_id, epoch = match[1], int(match[2])
        if key_id not in {key.short_key_id for key in self.mac_keys}:
            raise StateRejected("unknown_key")
        oldest, newest = now - self.limits.round_ttl_s, now + self.limits.skew_s
        if not oldest // EPOCH_S <= epoch <= newest // EPOCH_S:
            raise StateRejected("epoch")
        key = self._key(key_id, epoch)
        self._derive_ahead(int(now // EPOCH_S), now)
        return key

    def _key(self, key_id: str, epoch: int) -> ContentKey:
        if (key_id, epoch) not in self._keys:
            backoff = self._backoffs.setdefault(key_id, Backoff(self.clock, FIRST_RETRY_S))
            backoff.attempt(lambda: self._derive(key_id, epoch))
        return self._keys[key_id, epoch]

    def _derive(self, key_id: str, epoch: int) -> None:
        message = f"mcp-rs/v2/epoch:{epoch}:{self.issuer}".encode()
        mac_key = next(key for key in self.mac_keys if key.short_key_id == key_id)
        secret = mac_key.mac(message)
        self._keys[key_id, epoch] = ContentKey(f"{key_id}.{epoch}", secret, self.typ)

    def _discard_expired(self, now: float) -> None:
        oldest = (now - self.limits.round_ttl_s) // EPOCH_S
        if any(epoch < oldest for _, epoch in self._keys):
            self._keys = {name: key for name, key in self._keys.items() if name[1] >= oldest}

    def _derive_ahead(self, epoch: int, now: float) -> None:
        if self._ahead[0] != epoch:
            start = epoch * EPOCH_S
            self._ahead = (epoch, renewal_time(start, start + EPOCH_S, self.random()))
        key_id = self.mac_keys[0].short_key_id
        if now >= self._ahead[1] and (key_id, epoch + 1) not in self._keys:
            with suppress(KeyServiceError):
                self.renewals.attempt(lambda: self._derive(key_id, epoch + 1))
