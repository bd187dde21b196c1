"""The keys that encrypt states: each environment derives the same key for each hour, and stores nothing.

A key is the HMAC-SHA-256 that a MAC key computes over the number of the epoch (a PRF as key derivation
function, NIST SP 800-108) and the deployment's issuer: deployments that share a MAC key share no epoch key.
The MAC key stays in the key service, so a leaked epoch key only decrypts the states of its epoch. A `kid` is
`<short key id>.<epoch>`, with the short id of the MAC key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, field

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.protocol import canonical
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.jwe import ContentKey
from mcp_roundtrip.state.keys import RenewalBackoff, renewal_time, retry_pause_s

EPOCH_S = 3600

_KID = re.compile(r"([A-Za-z0-9_-]{8})\.([1-9][0-9]{0,9})", re.ASCII)


class MacKey(Protocol):
    """A key for HMAC-SHA-256 that has no other use."""

    @property
    def short_key_id(self) -> str:
        """The `short_key_id` of its id."""
        ...

    def mac(self, message: bytes) -> bytes:
        """Return 32 bytes. Raises KeyServiceError if the key is not available."""
        ...


def short_key_id(key_id: str) -> str:
    """Return 8 characters that identify a MAC key in tokens without revealing its id.

    They are the same in all Regions of a multi-Region key, because `key_id` is.
    """
    return canonical.digest("mcp-rs/v1/key_id", key_id, size=6)


class _Failure(Struct, frozen=True):
    """The number of failed derivations in a row, and the time of the last one (epoch seconds)."""

    count: int
    at: float
    reason: str


class EpochKeys(Struct):
    """The epoch keys of one or more MAC keys. States are encrypted with those of the first.

    They are for the tokens of type `typ` that the deployment `issuer` mints and verifies. `clock` returns
    epoch seconds, `random` numbers in [0, 1).

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
    renewals: RenewalBackoff
    _keys: dict[tuple[str, int], ContentKey] = field(default_factory=dict)
    _failures: dict[str, _Failure] = field(default_factory=dict)
    _ahead: tuple[int, float] = (-1, 0.0)  # an epoch, and the time to derive the key of the next one

    def current(self, now: float) -> ContentKey:
        """Return the key to encrypt with at `now` (epoch seconds). Raises KeyServiceError."""
        self._discard_expired(now)
        epoch = int(now // EPOCH_S)
        key = self._key(self.mac_keys[0].short_key_id, epoch, now)
        self._derive_ahead(epoch, now)
        return key

    def find(self, kid: str, now: float) -> ContentKey:
        """Return the key with an unverified `kid`.

        Raises StateRejected, without calling the key service, if no valid token can have this id, and
        KeyServiceError if the key cannot be derived.
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
        key = self._key(key_id, epoch, now)
        self._derive_ahead(int(now // EPOCH_S), now)
        return key

    def _key(self, key_id: str, epoch: int, now: float) -> ContentKey:
        """Return the key, and derive it if needed. Raises KeyServiceError, also during a pause after it."""
        if (key_id, epoch) not in self._keys:
            failure = self._failures.get(key_id, _Failure(0, now, ""))
            if failure.count and failure.at <= now < failure.at + retry_pause_s(failure.count):
                # A new exception: one that is raised again accumulates tracebacks.
                raise KeyServiceError(failure.reason)
            try:
                self._derive(key_id, epoch)
            except KeyServiceError as error:
                # The time after the call, which may have taken longer than the pause.
                self._failures[key_id] = _Failure(failure.count + 1, self.clock(), error.reason)
                raise
            self._failures.pop(key_id, None)
        return self._keys[key_id, epoch]

    def _derive(self, key_id: str, epoch: int) -> None:
        message = f"mcp-rs/v2/epoch:{epoch}:{self.issuer}".encode()
        mac_key = next(key for key in self.mac_keys if key.short_key_id == key_id)
        secret = mac_key.mac(message)
        self._keys[key_id, epoch] = ContentKey(f"{key_id}.{epoch}", secret, self.typ)

    def _discard_expired(self, now: float) -> None:
        """Delete the keys that no valid token can need any more."""
        oldest = (now - self.limits.round_ttl_s) // EPOCH_S
        if any(epoch < oldest for _, epoch in self._keys):
            self._keys = {name: key for name, key in self._keys.items() if name[1] >= oldest}

    def _derive_ahead(self, epoch: int, now: float) -> None:
        if self._ahead[0] != epoch:
            start = epoch * EPOCH_S
            self._ahead = (epoch, renewal_time(start, start + EPOCH_S, self.random()))
        key_id = self.mac_keys[0].short_key_id
        if now >= self._ahead[1] and (key_id, epoch + 1) not in self._keys:
            self.renewals.attempt(lambda: self._derive(key_id, epoch + 1))
