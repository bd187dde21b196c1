"""Clients of emulated AWS services, of both kinds: requests signed by this project, and boto3."""

import os
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import SplitResult

import boto3
from botocore.config import Config

from mcp_roundtrip.aws.boto3_client import Boto3Client, Boto3Clients
from mcp_roundtrip.aws.client_interface import AwsClient
from mcp_roundtrip.aws.connections import Connections, parse_endpoint
from mcp_roundtrip.aws.credentials import AwsCredentials
from mcp_roundtrip.aws.signed_client import AwsClients, SignedClient, StandardRetries
from mcp_roundtrip.aws.wire_formats import SERVICES

REGION = "us-east-1"

FUNCTION = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
}
"""The variables that Lambda sets for every function."""

CLIENTS: Mapping[str, type[AwsClients]] = {"signed": AwsClients, "boto3": Boto3Clients}
KINDS = tuple(CLIENTS)

DEFAULT_KIND = os.environ.get("MCP_AWS_CLIENT", "signed")


def boto3_client(service: str, endpoint_url: str | None, **options: Any) -> Any:
    """Return a boto3 client of an emulator: of the root user, who has all permissions."""
    create: Any = boto3.client  # the stubs demand the name of the service as a literal
    names = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": REGION}
    return create(service, endpoint_url=endpoint_url, **names, **options)


class EmulatedService:
    """A client of one kind for the code under test, and a boto3 client for everything else.

    `call` and `requests`, which counts the operations, belong to the code under test. Other attributes, such
    as `create_key`, are those of the boto3 client. Without an endpoint, moto has to intercept the requests,
    so both are the boto3 client.
    """

    def __init__(
        self,
        service: str,
        endpoint_url: str | None = None,
        *,
        kind: str = DEFAULT_KIND,
        attempts: int = 1,
        timeout_s: float = 5,
    ) -> None:
        self.requests: Counter[str] = Counter()
        self._service, self._endpoint_url = service, endpoint_url
        self._config = Config(
            retries={"mode": "standard", "total_max_attempts": attempts},
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
            max_pool_connections=16,
        )
        self._client: AwsClient
        if kind == "boto3" or endpoint_url is None:
            self._client = Boto3Client(self._boto3, self._count)
        else:
            self._client = signed_client(
                service,
                endpoint_url,
                attempts=attempts,
                timeout_s=timeout_s,
                on_request=self._count,
            )

    @cached_property
    def _boto3(self) -> Any:
        """Made when it is used: many tests use only a signed client, which takes a hundredth of the time."""
        return boto3_client(self._service, self._endpoint_url, config=self._config)

    def _count(self, service: str, operation: str) -> None:
        self.requests[operation] += 1

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        return self._client.call(operation, timeout_s=timeout_s, **parameters)

    def close(self) -> None:
        if isinstance(self._client, SignedClient):
            self._client.connections.close()
        if "_boto3" in vars(self):
            self._boto3.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._boto3, name)


class OneClient:
    """A `ClientFactory` that creates no client: each service is called with the same one."""

    def __init__(self, client: AwsClient) -> None:
        self._client = client

    def client(self, service: str) -> AwsClient:
        return self._client

    def invoke_client(self) -> AwsClient:
        return self._client


def signed_client(
    service: str, endpoint_url: str, *, attempts: int = 1, timeout_s: float = 5, **options: Any
) -> SignedClient:
    """Return a signed client with the credentials that emulators accept."""
    endpoint = endpoint_of(endpoint_url)
    return SignedClient(
        SERVICES[service],
        REGION,
        endpoint,
        lambda: AwsCredentials("test", "test"),
        Connections(endpoint, max_idle_s=60, connect_timeout_s=timeout_s),
        StandardRetries(max_attempts=attempts),
        read_timeout_s=timeout_s,
        **options,
    )


def endpoint_of(url: str) -> SplitResult:
    endpoint = parse_endpoint(url)
    assert endpoint is not None, url
    return endpoint
