"""What calls of AWS services have in common: how long they may take, and what their failures are called."""

from __future__ import annotations

from typing import Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

FAILURES: Final = (ClientError, BotoCoreError)
"""What a call raises that came to nothing."""


def patience() -> Config:
    """For clients that give up in time for an answer: connect 1 s, read 2 s, three attempts."""
    return Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})


def reason_of(failure: ClientError | BotoCoreError) -> str:
    """For the log: the AWS error code, `timeout`, or the kind of failure."""
    if isinstance(failure, ClientError):
        return failure.response["Error"]["Code"]
    if isinstance(failure, (ConnectTimeoutError, ReadTimeoutError)):
        return "timeout"
    return type(failure).__name__
