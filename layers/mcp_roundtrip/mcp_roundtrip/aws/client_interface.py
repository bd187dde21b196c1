"""The interface of the clients of AWS services, and the errors of their calls.

Two clients implement it: `signed_client` (this package's own) and `boto3_client`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

OnRequest = Callable[[str, str], None]
"""Called with the names of the service and of the operation for each request, retries included."""


def ignore_request(service: str, operation: str) -> None:
    """Do nothing: the default of `OnRequest`."""


class AwsClient(Protocol):
    """A client of one AWS service. Several threads may use it."""

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        """Call an operation with the names of its API Reference, and return the members of its response.

        Binary members are bytes. `timeout_s` limits the wait for the response. Raises AwsError.
        """
        ...

    def close(self) -> None:
        """Close the idle connections. The client can still be used."""
        ...


class AwsError(Exception):
    """A call failed. Only the code is part of the text, because AWS's messages may quote the request.

    `code` is AWS's error code or, without a response, `timeout` or the name of the error in botocore.
    `members` are those of the error response, `status` is its HTTP status. `retry_after_s` is AWS's wish.
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        members: Mapping[str, Any] | None = None,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.members = members or {}
        self.status = status
        self.retry_after_s = retry_after_s


class NotSent(AwsError):
    """No connection could be opened, so AWS did not get the request."""


class NoResponse(AwsError):
    """The connection failed, or the response is damaged. AWS may have executed the request."""
