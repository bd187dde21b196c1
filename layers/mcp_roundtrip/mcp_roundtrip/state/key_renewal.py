"""When to call the key service: early, spread over the environments, and after a pause if a call failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mcp_roundtrip.internal_errors import KeyServiceError

T = TypeVar("T")

FIRST_RETRY_S = 1
"""The pause after the first failed call for a key that is needed now, so that many forgeries do not cause
many calls."""

RENEWAL_RETRY_S = 60
"""The pause after a failed call for a key that is needed later, so that requests do not wait for it."""


def retry_pause_s(failures: int) -> int:
    """Return the pause in seconds after this number of failed calls in a row (at least 1).

    It doubles up to a minute: while the key service does not answer, each call blocks its request until the
    SDK times out.
    """
    return min(FIRST_RETRY_S << min(failures - 1, 16), RENEWAL_RETRY_S)


def renewal_time(start: float, end: float, random: float) -> float:
    """Return a time between two thirds and eleven twelfths of the way from `start` to `end`.

    `random`, in [0, 1), spreads the calls of environments that started together. The last twelfth is for
    retries.
    """
    return start + (end - start) * (8 + 3 * random) / 12


class RenewalBackoff:
    """Makes the calls for keys that are still valid, and pauses all of them after a failure.

    Requests wait for these calls.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without a failure. `clock` returns epoch seconds."""
        self._clock = clock
        self._failed_at = float("-inf")

    def attempt(self, call: Callable[[], T]) -> T | None:
        """Return the result of `call`, or None if it raised KeyServiceError or was skipped."""
        if self._failed_at <= self._clock() < self._failed_at + RENEWAL_RETRY_S:
            return None
        try:
            return call()
        except KeyServiceError:
            self._failed_at = self._clock()  # after the call, which may have taken longer than the pause
            return None
