"""What calls of AWS services have in common: how long they may take, and what their failures are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

Client = TypeVar("Client", bound=Any)

AWS_ERRORS: Final = (ClientError, BotoCoreError)
"""What a call raises that came to nothing."""


def client_config() -> Config:
    """For clients that give up in time for an answer: connect 1 s, read 2 s, three attempts."""
    return Config(connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3})


def count_requests(client: Client, called: Callable[[str], None]) -> Client:
    """The client, telling `called` the service's name for each request it sends, retries included."""
    service = client.meta.service_model.service_name

    def sending(**request: Any) -> None:
        called(service)

    client.meta.events.register(f"before-send.{service}", sending)
    return client


def error_reason(failure: ClientError | BotoCoreError) -> str:
    """For the log: the AWS error code, `timeout`, or the kind of failure."""
    if isinstance(failure, ClientError):
        return failure.response["Error"]["Code"]
    if isinstance(failure, (ConnectTimeoutError, ReadTimeoutError)):
        return "timeout"
    return type(failure).__name__
