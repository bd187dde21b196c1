"""When to ask a key service: early, not when everybody else does, and not again at once after a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mcp_roundtrip.internal_errors import KeyServiceError

T = TypeVar("T")

RETRY_S = 1
"""The pause after the first failed call for a key that is needed now: a flood of forgeries must not become a
flood of calls."""

RENEWAL_RETRY_S = 60
"""The same for what is not needed yet: a request should not wait for a key service that is out of reach."""


def retry_pause_s(failures: int) -> int:
    """Seconds without a call for a key that is needed now, after so many failed calls in a row (at least 1).

    The pause doubles up to a minute: while the key service does not answer, each call holds up its request
    for as long as the SDK waits.
    """
    return min(RETRY_S << min(failures - 1, 16), RENEWAL_RETRY_S)


def early(start: float, end: float, random: float) -> float:
    """A moment between two thirds and eleven twelfths of the way from `start` to `end`.

    `random` is in [0, 1): environments that started together, or share the hour, ask at different times, and
    the last twelfth is left for retries.
    """
    return start + (end - start) * (8 + 3 * random) / 12


class Renewals:
    """The calls of one environment for what is still good and will be needed later.

    After one has failed there is none for a while, whatever it is for: requests wait for these calls.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns epoch seconds."""
        self._clock = clock
        self._failed_at = float("-inf")

    def attempt(self, call: Callable[[], T]) -> T | None:
        """What `call` returns; None if it raises KeyServiceError, or was not made."""
        if self._failed_at <= self._clock() < self._failed_at + RENEWAL_RETRY_S:
            return None
        try:
            return call()
        except KeyServiceError:
            self._failed_at = self._clock()  # not the time before the call, which may have taken longer
            return None
