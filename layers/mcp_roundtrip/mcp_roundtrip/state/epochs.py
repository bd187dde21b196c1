"""The keys that encrypt states: one for each hour, derived alike by every environment, with nothing stored.

A key is the HMAC-SHA-256 that a MAC key computes over the number of the epoch (a PRF as key derivation
function, NIST SP 800-108). The MAC key itself stays in the key service, so a leaked epoch key opens the
states of its epoch and no others. A `kid` is `<generation>.<epoch>`, the generation naming the MAC key.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from mcp_roundtrip import canonical
from mcp_roundtrip.errors import KeyServiceError, StateRejected
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.jwe import ContentKey
from mcp_roundtrip.state.renewal import RETRY_S, Renewals, early

EPOCH_S = 3600

_KID = re.compile(r"([A-Za-z0-9_-]{8})\.([1-9][0-9]{0,9})", re.ASCII)


class MacKey(Protocol):
    """A key for HMAC-SHA-256 that is used for nothing else."""

    @property
    def generation(self) -> str:
        """The `generation_of` its id."""
        ...

    def mac(self, message: bytes) -> bytes:
        """32 bytes. Raises KeyServiceError when the key cannot be reached."""
        ...


def generation_of(key_id: str) -> str:
    """The 8 characters by which tokens name a MAC key, without telling its id.

    `key_id` is the same in every Region that holds the key, so the name is, too.
    """
    return canonical.digest("mcp-rs/v1/generation", key_id, size=6)


class LocalMacKey:
    """A secret in memory. For tests and for running on one's own computer."""

    def __init__(self, key_id: str, secret: bytes) -> None:
        self.generation = generation_of(key_id)
        self._secret = secret

    def mac(self, message: bytes) -> bytes:
        return hmac.digest(self._secret, message, "sha256")


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
        clock: Callable[[], float],
        random: Callable[[], float],
        renewals: Renewals,
    ) -> None:
        """`typ` is the type of the tokens, `clock` returns epoch seconds, `random` numbers in [0, 1)."""
        self._generations = {key.generation: key for key in generations}
        self._current = generations[0].generation
        self._typ = typ
        self._limits = limits
        self._clock = clock
        self._random = random
        self._renewals = renewals
        self._keys: dict[tuple[str, int], ContentKey] = {}
        self._failures: dict[tuple[str, int], tuple[float, str]] = {}
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
        wanted = (generation, epoch)
        if wanted not in self._keys:
            failed_at, reason = self._failures.get(wanted, (float("-inf"), ""))
            if failed_at <= now < failed_at + RETRY_S:
                # A new one: an exception that is raised again takes every traceback along.
                raise KeyServiceError(reason)
            self._keys[wanted] = self._derived(generation, epoch)
        return self._keys[wanted]

    def _derived(self, generation: str, epoch: int) -> ContentKey:
        try:
            secret = self._generations[generation].mac(f"mcp-rs/v1/epoch:{epoch}".encode())
        except KeyServiceError as failure:
            # Not the time before the call, which may have taken longer than the pause.
            self._failures[generation, epoch] = (self._clock(), failure.reason)
            raise
        self._failures.clear()
        return ContentKey(f"{generation}.{epoch}", secret, self._typ)

    def _forget(self, now: float) -> None:
        """Leave no key in memory that opens nothing current any more."""
        oldest = (now - self._limits.round_ttl_s) // EPOCH_S
        if any(epoch < oldest for _, epoch in self._keys):
            self._keys = {name: key for name, key in self._keys.items() if name[1] >= oldest}

    def _derive_ahead(self, epoch: int, now: float) -> None:
        if self._ahead[0] != epoch:
            start = epoch * EPOCH_S
            self._ahead = (epoch, early(start, start + EPOCH_S, self._random()))
        if now >= self._ahead[1]:
            self._renewals.attempt(lambda: self._key(self._current, epoch + 1, now))
