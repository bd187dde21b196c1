"""When a failed call is repeated, and after which pause.

`StandardRetries` follows the standard mode of the AWS SDKs as botocore 1.44 implements it:
https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import Final, Protocol

from mcp_roundtrip.aws.client_interface import AwsError, NoResponse, NotSent

MAX_PAUSE_S: Final = 20.0

MAX_EXTRA_PAUSE_S: Final = 5.0
"""What a response can add to the pause in its header x-amz-retry-after."""

THROTTLING_PAUSE_S: Final = 1.0
"""The longest pause before the second attempt of a throttled call. It doubles for each further attempt."""

TRANSIENT_STATUSES: Final = frozenset({500, 502, 503, 504})

TRANSIENT_CODES: Final = frozenset(
    {"RequestTimeout", "RequestTimeoutException", "ReplicatedWriteConflictException"}
)
"""The last one is marked in the service model of DynamoDB."""

THROTTLING_CODES: Final = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException"),
        *("TooManyRequestsException", "ProvisionedThroughputExceededException", "RequestThrottled"),
        *("TransactionInProgressException", "RequestLimitExceeded", "BandwidthLimitExceeded", "SlowDown"),
        *("LimitExceededException", "PriorRequestNotComplete", "EC2ThrottledException"),
    }
)

QUOTA: Final = 500
RETRY_COST: Final = 14
THROTTLING_RETRY_COST: Final = 5


def kernel_random() -> float:
    """Return a random number of at least 0 and less than 1, from the kernel.

    Environments of one snapshot share the state of the module `random`.
    """
    return (int.from_bytes(os.urandom(7), "big") >> 3) / 2**53


class Retries(Protocol):
    """Decides for all calls of a client. Thread-safe."""

    def pause_s(self, error: AwsError, attempt: int) -> float | None:
        """Return the pause in seconds after the failed attempt (1 is the first); None to give up."""
        ...

    def on_success(self, last_error: AwsError | None) -> None:
        """Note that a call succeeded, after `last_error` if it was repeated."""
        ...


class ConnectRetry:
    """Repeats a call once if nothing was sent. It suits operations that must not be executed twice."""

    def pause_s(self, error: AwsError, attempt: int) -> float | None:
        return 0 if isinstance(error, NotSent) and attempt == 1 else None

    def on_success(self, last_error: AwsError | None) -> None:
        pass


class StandardRetries:
    """Repeats calls that failed for a transient reason, while the quota of the client allows it.

    The longest pause before the second attempt is `first_pause_s`; with full jitter. `time_left_s` returns
    the seconds until the invocation ends: a pause that would outlast it is not begun.
    """

    def __init__(
        self,
        first_pause_s: float = 0.05,
        time_left_s: Callable[[], float] = lambda: math.inf,
        random: Callable[[], float] = kernel_random,
        max_attempts: int = 3,
    ) -> None:
        self._first_pause_s = first_pause_s
        self._time_left_s = time_left_s
        self._random = random
        self._max_attempts = max_attempts
        self._quota = QUOTA
        self._lock = threading.Lock()

    def pause_s(self, error: AwsError, attempt: int) -> float | None:
        if attempt >= self._max_attempts or not is_retryable(error):
            return None
        first_pause_s = THROTTLING_PAUSE_S if is_throttling(error) else self._first_pause_s
        pause_s: float = self._random() * min(first_pause_s * 2 ** (attempt - 1), MAX_PAUSE_S)
        if error.retry_after_s is not None:
            pause_s = max(pause_s, min(error.retry_after_s, pause_s + MAX_EXTRA_PAUSE_S))
        if pause_s >= self._time_left_s() or not self._take(_cost(error)):
            return None
        return pause_s

    def on_success(self, last_error: AwsError | None) -> None:
        returned = 1 if last_error is None else _cost(last_error)
        with self._lock:
            self._quota = min(QUOTA, self._quota + returned)

    def _take(self, cost: int) -> bool:
        with self._lock:
            if cost > self._quota:
                return False
            self._quota -= cost
            return True


def is_throttling(error: AwsError) -> bool:
    return error.code in THROTTLING_CODES or error.status == 429


def is_retryable(error: AwsError) -> bool:
    return (
        isinstance(error, (NotSent, NoResponse))
        or error.status in TRANSIENT_STATUSES
        or error.code in TRANSIENT_CODES
        or is_throttling(error)
    )


def _cost(error: AwsError) -> int:
    return THROTTLING_RETRY_COST if is_throttling(error) else RETRY_COST
