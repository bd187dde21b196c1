"""The keys that encrypt states: one for each hour, derived alike by every environment, with nothing stored.

A key is the HMAC-SHA-256 that a MAC key computes over the number of the epoch (a PRF as key derivation
function, NIST SP 800-108) and the deployment's issuer: deployments that share a MAC key share no epoch key.
The MAC key itself stays in the key service, so a leaked epoch key opens the states of its epoch and no
others. A `kid` is `<generation>.<epoch>`, the generation naming the MAC key.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mcp_roundtrip import canonical
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.jwe import ContentKey
from mcp_roundtrip.state.renewal import Renewals, early, retry_pause_s

EPOCH_S = 3600

_KID = re.compile(r"([A-Za-z0-9_-]{8})\.([1-9][0-9]{0,9})", re.ASCII)


class MacKey(Protocol):
    """A key for HMAC-SHA-256 that is used for nothing else."""

    @property
    def short_key_id(self) -> str:
        """The `short_key_id` its id."""
        ...

    def mac(self, message: bytes) -> bytes:
        """32 bytes. Raises KeyServiceError when the key cannot be reached."""
        ...


def short_key_id(key_id: str) -> str:
    """The 8 characters by which tokens name a MAC key, without telling its id.

    `key_id` is the same in every Region that holds the key, so the name is, too.
    """
    return canonical.digest("mcp-rs/v1/generation", key_id, size=6)


class LocalMacKey:
    """A secret in memory. For tests and for running on one's own computer."""

    def __init__(self, key_id: str, secret: bytes) -> None:
        self.short_key_id = short_key_id(key_id)
        self._secret = secret

    def mac(self, message: bytes) -> bytes:
        return hmac.digest(self._secret, message, "sha256")


@dataclass(frozen=True, slots=True)
class _Failure:
    """The last of so many failed derivations in a row, `at` epoch seconds."""

    count: int
    at: float
    reason: str


class EpochKeys:
    """The epoch keys of one or more generations; the first generation's encrypt.

    The next epoch's key is derived ahead, by whatever request comes after a random moment late in this epoch,
    so that the fleet does not turn to the key service on the hour. Should that fail, this epoch's key still
    serves until it ends. Keys of other generations are derived when a token comes with one.
    """

    def __init__(
        self,
        generations: Sequence[MacKey],
        typ: str,
        limits: Limits,
        *,
        issuer: str,
        clock: Callable[[], float],
        random: Callable[[], float],
        renewals: Renewals,
    ) -> None:
        """`typ` is the type of the tokens, `issuer` the deployment that mints and opens them.

        `clock` returns epoch seconds, `random` numbers in [0, 1).
        """
        self._generations = {key.short_key_id: key for key in generations}
        self._current = generations[0].short_key_id
        self._typ = typ
        self._limits = limits
        self._issuer = issuer
        self._clock = clock
        self._random = random
        self._renewals = renewals
        self._keys: dict[tuple[str, int], ContentKey] = {}
        self._failures: dict[str, _Failure] = {}
        self._ahead = (-1, 0.0)  # an epoch, and when in it to derive the next one's keys

    def current(self, now: float) -> ContentKey:
        """The key to encrypt with at `now` (epoch seconds). Raises KeyServiceError."""
        self._forget(now)
        epoch = int(now // EPOCH_S)
        key = self._key(self._current, epoch, now)
        self._derive_ahead(epoch, now)
        return key

    def find(self, kid: str, now: float) -> ContentKey:
        """The key of an unverified `kid`.

        Raises StateRejected, without a call, unless a current token can have been encrypted under it;
        KeyServiceError when it cannot be derived.
        """
        self._forget(now)
        match = _KID.fullmatch(kid)
        if match is None:
            raise StateRejected("header")
        generation, epoch = match[1], int(match[2])
        if generation not in self._generations:
            raise StateRejected("unknown_key")
        oldest, newest = now - self._limits.round_ttl_s, now + self._limits.skew_s
        if not oldest // EPOCH_S <= epoch <= newest // EPOCH_S:
            raise StateRejected("epoch")
        key = self._key(generation, epoch, now)
        self._derive_ahead(int(now // EPOCH_S), now)
        return key

    def _key(self, generation: str, epoch: int, now: float) -> ContentKey:
        """The key, derived unless the last attempts with this generation failed a moment ago."""
        if (generation, epoch) not in self._keys:
            failure = self._failures.get(generation, _Failure(0, now, ""))
            if failure.count and failure.at <= now < failure.at + retry_pause_s(failure.count):
                # A new one: an exception that is raised again takes every traceback along.
                raise KeyServiceError(failure.reason)
            try:
                self._derive(generation, epoch)
            except KeyServiceError as error:
                # Not the time before the call, which may have taken longer than the pause.
                self._failures[generation] = _Failure(failure.count + 1, self._clock(), error.reason)
                raise
            self._failures.pop(generation, None)
        return self._keys[generation, epoch]

    def _derive(self, generation: str, epoch: int) -> None:
        message = f"mcp-rs/v2/epoch:{epoch}:{self._issuer}".encode()
        secret = self._generations[generation].mac(message)
        self._keys[generation, epoch] = ContentKey(f"{generation}.{epoch}", secret, self._typ)

    def _forget(self, now: float) -> None:
        """Leave no key in memory that opens nothing current any more."""
        oldest = (now - self._limits.round_ttl_s) // EPOCH_S
        if any(epoch < oldest for _, epoch in self._keys):
            self._keys = {name: key for name, key in self._keys.items() if name[1] >= oldest}

    def _derive_ahead(self, epoch: int, now: float) -> None:
        if self._ahead[0] != epoch:
            start = epoch * EPOCH_S
            self._ahead = (epoch, early(start, start + EPOCH_S, self._random()))
        if now >= self._ahead[1] and (self._current, epoch + 1) not in self._keys:
            self._renewals.attempt(lambda: self._derive(self._current, epoch + 1))
