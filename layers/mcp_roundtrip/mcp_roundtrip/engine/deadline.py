"""When a request, or a task's worker, has to end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from msgspec import Struct

RESPONSE_MARGIN_MS: Final = 1_000
"""Subtracted from each limit of a request: the time to seal the state and to send the response."""

CHECKPOINT_RESERVE_MS: Final = 3_000
"""A pass with less time left begins no new step."""

ANSWER_WAIT_MS: Final = 3_000
"""How long a repeated call waits for the user at most: some clients give up a request after five seconds. The
model calls again when the user says that they are done."""

WORKER_RESERVE: Final = 0.1
"""The last fraction of a worker's time, in which it begins no step: a step that outlasts it runs again."""

MAX_LAMBDA_TIMEOUT_MS: Final = 900_000

retries_end_at_ms: ContextVar[float] = ContextVar("retries_end_at_ms", default=math.inf)
"""When the retries of AWS calls end in this invocation, on the monotonic scale, in milliseconds."""


class Deadline(Struct, frozen=True):
    """The end of a pass: `at_ms` on the monotonic scale of `clock_ms`, both in milliseconds.

    `can_continue` returns whether the call can continue after this pass. The last pass uses its reserve.
    """

    at_ms: float
    clock_ms: Callable[[], float]
    can_continue: Callable[[], bool] = lambda: True

    @property
    def reserve_ms(self) -> int:
        return CHECKPOINT_RESERVE_MS if self.can_continue() else 0

    def remaining_ms(self) -> int:
        return max(0, int(self.at_ms - self.clock_ms()))

    def is_short_of(self, needs_ms: float | None = None) -> bool:
        """Return whether less is left than `needs_ms`.

        By default, whether nothing is left, or less than the reserve of a call that can continue.
        """
        remaining_ms = self.remaining_ms()
        if needs_ms is not None:
            return remaining_ms < needs_ms
        # At the end of the last pass, an error can still be sent. Lambda would send none.
        return remaining_ms <= 0 or (remaining_ms < CHECKPOINT_RESERVE_MS and self.can_continue())


@contextmanager
def retries_until(deadline_ms: float) -> Iterator[None]:
    """End the retries of the AWS calls in the block at `deadline_ms`, on the monotonic scale."""
    token = retries_end_at_ms.set(deadline_ms)
    try:
        yield
    finally:
        retries_end_at_ms.reset(token)


def lambda_remaining_ms(context: Any) -> int:
    """Return the milliseconds that Lambda leaves an invocation; without a context, the longest timeout."""
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return MAX_LAMBDA_TIMEOUT_MS if remaining is None else int(remaining())


def request_deadline_ms(now_ms: float, context: Any, *limits_ms: float | None) -> float:
    """Return when a request has to end, on the scale of `now_ms`. A limit of None is no limit."""
    limits = [lambda_remaining_ms(context), *(limit for limit in limits_ms if limit is not None)]
    return now_ms + min(limits) - RESPONSE_MARGIN_MS


def worker_deadline_ms(now_ms: float, remaining_ms: float) -> float:
    """Return when a task's worker stops beginning steps, on the scale of `now_ms`."""
    return now_ms + remaining_ms * (1 - WORKER_RESERVE)
