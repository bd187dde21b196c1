"""The interface of AWS clients, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from http.client import HTTPMessage

Headers = Sequence[tuple[str, str]]

MAX_CODE: Final = 128
"""Characters of an error code, which becomes a reason in the log and the dimension of a metric."""

_CODES_ABOUT_RESOURCES: Final = (
    *("AccessDenied", "NotFound", "ResourceNotFound", "Disabled", "InvalidKeyUsage"),
    *("KMSAccessDenied", "KMSDisabled", "KMSInvalidState", "KMSNotFound", "Kms"),
)
"""The beginnings of the codes whose messages name the role, the action or the resource."""

MAX_MESSAGE: Final = 500
"""Characters of AWS's message in the log."""

OnRequest = Callable[[str, str], None]
"""Called with the names of the service and the operation for each request, retries included."""


def ignore_request(service: str, operation: str) -> None:
    """The default of `OnRequest`."""


class AwsClient(Protocol):
    """A client of one AWS service: `SignedClient`, or one of `boto3_client`. Thread-safe."""

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        """Call an operation with the names of its API Reference, and return the members of its response.

        Binary members are bytes. `timeout_s` limits the wait for the response. Raises AwsError.
        """


class ClientFactory(Protocol):
    """Creates clients: `AwsClients`, `Boto3Clients`, or `TracedClients` around one of these."""

    def client(self, service: str) -> AwsClient:
        """Create a client: connect in 1 s, read in 2 s, three attempts. Raises SettingsError."""

    def invoke_client(self) -> AwsClient:
        """Create a client that sends an invocation at most once: a second could run a tool twice.

        Only opening a connection is tried again. Raises SettingsError.
        """


class AwsError(Exception):
    """A call failed. The text has only messages of AWS about a resource: others may quote the request.

    `code` is AWS's error code or, without a response, `timeout` or the name of the error in botocore.
    `members` and the HTTP `status` are those of the error response.
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        members: Mapping[str, Any] | None = None,
        *,
        status: int | None = None,
    ) -> None:
        is_about_resource = message and code.startswith(_CODES_ABOUT_RESOURCES)
        super().__init__(f"{code}: {str(message)[:MAX_MESSAGE]}" if is_about_resource else code)
        self.code = code
        self.message = message
        self.members = members or {}
        self.status = status


class NotSent(AwsError):
    """No connection could be opened, so AWS did not get the request."""


class NoResponse(AwsError):
    """The connection failed, or the response is damaged. AWS may have executed the request."""


class ServiceResponse(NamedTuple):
    """A response with any status."""

    status: int
    headers: HTTPMessage  # ignores the case of names
    body: bytes
