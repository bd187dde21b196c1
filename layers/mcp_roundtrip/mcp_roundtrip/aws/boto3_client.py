"""Call AWS services with boto3, for what a `SignedClient` cannot do."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from mcp_roundtrip.aws.client_interface import (
    AwsClient,
    AwsError,
    NoResponse,
    NotSent,
    OnRequest,
    ignore_request,
)
from mcp_roundtrip.aws.signed_client import MAX_IDLE_BEFORE_INVOKE_S, AwsClients

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MALFORMED: Final = (
    *(ResponseParserError, RecursionError),
    *(ValueError, TypeError, KeyError, AttributeError),
)
"""What botocore raises for responses that do not fit its service models."""

_BOTOCORE: Final = logging.getLogger("botocore")
if _BOTOCORE.level == logging.NOTSET:  # otherwise the tool has chosen a level
    _BOTOCORE.setLevel(logging.INFO)  # at level DEBUG, it logs the bodies and the tokens of requests

_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def create_boto3_client(
    service: str, region: str | None = None, endpoint_url: str | None = None, **options: Any
) -> Any:
    """Create a boto3 client that connects in 1 s and reads in 2 s, in three attempts."""
    retries = {"mode": "standard", "total_max_attempts": 3}
    config = Config(**{"connect_timeout": 1, "read_timeout": 2, "retries": retries, **options})
    create: Any = boto3.client  # the stubs demand the name of the service as a literal
    return create(service, region_name=region, endpoint_url=endpoint_url, config=config)


class Boto3Clients(AwsClients):
    """Creates clients with the same timeouts and attempts. boto3 reads `os.environ`."""

    def client(self, service: str) -> AwsClient:
        return Boto3Client(create_boto3_client(service), self.on_request)

    def invoke_client(self) -> AwsClient:
        return Boto3InvokeClient(self.on_request, self.clock)


class Boto3Client:
    """An `AwsClient` that calls a boto3 client."""

    def __init__(self, client: Any, on_request: OnRequest = ignore_request) -> None:
        self.client = client
        service = self.client.meta.service_model.service_name

        def before_send(event_name: str, **_: Any) -> None:
            on_request(service, event_name.rpartition(".")[2])

        self.client.meta.events.register(f"before-send.{service}", before_send)

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        """Call an operation. `timeout_s` has no effect: botocore has timeouts for clients only."""
        method = getattr(self.client, _WORD.sub("_", operation).lower())
        try:
            response = method(**parameters)
            if "Payload" in response:
                response["Payload"] = response["Payload"].read()
        except (ClientError, BotoCoreError) as error:
            raise _to_aws_error(error) from error
        except _MALFORMED as error:
            raise AwsError("malformed_answer") from error
        return dict(response)


class Boto3InvokeClient:
    """An `AwsClient` of Lambda that invokes functions at most once, with one boto3 client for each timeout.

    Only opening a connection is tried again. A connection that was idle for long is not used: an error on it
    would not show whether the request arrived. `clock` returns epoch seconds.
    """

    def __init__(self, on_request: OnRequest, clock: Callable[[], float]) -> None:
        self._clock = clock
        once = {"total_max_attempts": 1}
        self._clients = cache(
            lambda timeout_s: Boto3Client(
                create_boto3_client("lambda", read_timeout=timeout_s, retries=once), on_request
            )
        )
        self._used_at: dict[float, float] = {}

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        timeout_s = timeout_s or 2
        client = self._clients(timeout_s)
        if not 0 <= self._clock() - self._used_at.get(timeout_s, 0) <= MAX_IDLE_BEFORE_INVOKE_S:
            client.client.close()  # its connections; the next request opens a new one
        try:
            response = client.call(operation, **parameters)
        except NotSent:
            response = client.call(operation, **parameters)
        self._used_at[timeout_s] = self._clock()
        return response


def _to_aws_error(error: ClientError | BotoCoreError) -> AwsError:
    if isinstance(error, ClientError):
        response: Any = error.response
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        found = response["Error"]
        return AwsError(str(found["Code"]), found.get("Message", ""), response, status=status)
    if isinstance(error, (ConnectTimeoutError, ReadTimeoutError)):
        return (NotSent if isinstance(error, ConnectTimeoutError) else NoResponse)("timeout")
    return (NotSent if isinstance(error, EndpointConnectionError) else NoResponse)(type(error).__name__)


def s3_client(region: str | None = None, endpoint_url: str | None = None) -> S3Client:
    """Create a boto3 client of S3 whose presigned URLs work in every Region.

    By default, boto3 presigns with version 2, which newer Regions refuse, and for the host of us-east-1,
    whose redirect invalidates the signature.
    """
    # S3 answers an upload once it has stored all of it.
    addressing = {"addressing_style": "virtual"}
    client: S3Client = create_boto3_client(
        "s3", region, endpoint_url, signature_version="s3v4", s3=addressing, read_timeout=10
    )
    return client
