"""When a failed call is repeated, and after which pause.

`StandardRetries` follows the standard mode of the AWS SDKs as botocore 1.44 implements it, without its quota:
https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from mcp_roundtrip.aws.services import AwsError, NoResponse, NotSent

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

Retries = Callable[[AwsError, int], float | None]
"""Returns the pause in seconds after a failed attempt, of which the first is 1; None to give up."""


def kernel_random() -> float:
    """Return a random number of at least 0 and less than 1, from the kernel.

    Environments of one snapshot share the state of the module `random`.
    """
    return (int.from_bytes(os.urandom(7), "big") >> 3) / 2**53


def retry_connection(error: AwsError, attempt: int) -> float | None:
    """Repeat a call once if nothing was sent. It suits operations that must not be executed twice."""
    return 0 if isinstance(error, NotSent) and attempt == 1 else None


class StandardRetries(Struct, frozen=True):
    """Repeats calls that failed for a transient reason.

    The longest pause before the second attempt is `first_pause_s`; with full jitter. `time_left_s` returns
    the seconds until the invocation ends: a pause that would outlast it is not begun.
    """

    first_pause_s: float = 0.05
    time_left_s: Callable[[], float] = lambda: math.inf
    random: Callable[[], float] = kernel_random
    max_attempts: int = 3

    def __call__(self, error: AwsError, attempt: int) -> float | None:
        if attempt >= self.max_attempts or not is_retryable(error):
            return None
        first_pause_s = THROTTLING_PAUSE_S if is_throttling(error) else self.first_pause_s
        pause_s: float = self.random() * first_pause_s * 2 ** (attempt - 1)
        if error.retry_after_s is not None:
            pause_s = max(pause_s, min(error.retry_after_s, pause_s + MAX_EXTRA_PAUSE_S))
        return pause_s if pause_s < self.time_left_s() else None


def is_throttling(error: AwsError) -> bool:
    return error.code in THROTTLING_CODES or error.status == 429


def is_retryable(error: AwsError) -> bool:
    return (
        isinstance(error, (NotSent, NoResponse))
        or error.status in TRANSIENT_STATUSES
        or error.code in TRANSIENT_CODES
        or is_throttling(error)
    )
