"""When to ask a key service for what will be needed: early, and not when everybody else does."""

from __future__ import annotations

RENEWAL_RETRY_S = 60
"""How long a failed early renewal is left alone. What is to be renewed is still good, and callers wait."""


def early(start: float, end: float, random: float) -> float:
    """A moment between two thirds and eleven twelfths of the way from `start` to `end`.

    `random` is in [0, 1): environments that started together, or share the hour, ask at different times, and
    the last twelfth is left for retries.
    """
    return start + (end - start) * (8 + 3 * random) / 12
