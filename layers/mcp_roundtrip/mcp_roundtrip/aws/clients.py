"""Create clients of AWS services, with timeouts that leave time for a response.

The Region, the endpoint and the credentials of a client come from the environment, as for every AWS SDK,
unless a function takes them as arguments.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_roundtrip.aws.client import AwsClient, OnRequest, ignore_request
from mcp_roundtrip.aws.connections import Connections
from mcp_roundtrip.aws.credentials import CredentialSource, find_credentials
from mcp_roundtrip.aws.endpoints import ServiceEndpoint, find_endpoint
from mcp_roundtrip.aws.retries import ConnectRetry, Retries, StandardRetries
from mcp_roundtrip.aws.services import SERVICES
from mcp_roundtrip.aws.signed_client import SignedClient

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_IDLE_S: Final = 60.0
"""A connection that was idle for longer is replaced: endpoints close idle ones (as in the SDK for Java)."""

MAX_IDLE_BEFORE_INVOKE_S: Final = 5.0
"""The same for `invoke_client`. The environment may have been frozen, and the endpoint may have closed the
connection; an error on it would not show whether the request arrived."""

FIRST_DYNAMODB_PAUSE_S: Final = 0.025
FIRST_PAUSE_S: Final = 0.05
"""The longest pauses before a second attempt, as in botocore."""


class AwsClients:
    """Creates clients, which sign their requests themselves where the environment does not need boto3.

    `signs` is whether they may do so at all. `on_boto3` is called once, with the reason, if the environment
    needs boto3. `time_left_s` returns the seconds that the invocation has left, `clock` returns
    epoch seconds.
    """

    def __init__(
        self,
        *,
        signs: bool = True,
        on_request: OnRequest = ignore_request,
        on_boto3: Callable[[str], None] = lambda reason: None,
        time_left_s: Callable[[], float] = lambda: math.inf,
        clock: Callable[[], float] = time.time,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._signs = signs
        self._on_request = on_request
        self._on_boto3 = on_boto3
        self._time_left_s = time_left_s
        self._clock = clock
        self._environment = environment

    def client(self, service: str, region: str | None = None, endpoint_url: str | None = None) -> AwsClient:
        """Create a client: connect in 1 s, read in 2 s, three attempts."""
        first_pause_s = FIRST_DYNAMODB_PAUSE_S if service == "dynamodb" else FIRST_PAUSE_S
        retries = StandardRetries(first_pause_s, self._time_left_s)
        if signed := self._signed_client(service, region, endpoint_url, retries, MAX_IDLE_S):
            return signed
        from mcp_roundtrip.aws.boto3_client import Boto3Client, create_boto3_client  # costs 130 ms

        return Boto3Client(create_boto3_client(service, region, endpoint_url), self._on_request)

    def invoke_client(self) -> AwsClient:
        """Create a client that invokes a function at most once.

        Only a connection that could not be opened is tried again, because then nothing was sent. After every
        other failure a second attempt could run a tool twice.
        """
        if signed := self._signed_client("lambda", None, None, ConnectRetry(), MAX_IDLE_BEFORE_INVOKE_S):
            return signed
        from mcp_roundtrip.aws.boto3_client import Boto3InvokeClient  # costs 130 ms

        return Boto3InvokeClient(MAX_IDLE_BEFORE_INVOKE_S, self._on_request, self._clock)

    def _signed_client(
        self, service: str, region: str | None, endpoint_url: str | None, retries: Retries, max_idle_s: float
    ) -> SignedClient | None:
        if not self._signs:
            return None
        environment = self._environment
        ca_bundle = environment.get("AWS_CA_BUNDLE") or environment.get("REQUESTS_CA_BUNDLE")
        region = region or environment.get("AWS_DEFAULT_REGION")
        endpoint = find_endpoint(service, region, environment, endpoint_url) if region else None
        credentials = find_credentials(environment, ca_bundle)
        reason = boto3_reason(environment, region, endpoint, credentials)
        if reason is not None or region is None or endpoint is None or credentials is None:
            self._report(reason or "")
            return None
        connections = Connections(endpoint, max_idle_s, ca_bundle, self._clock)
        return SignedClient(
            SERVICES[service],
            region,
            endpoint,
            credentials,
            connections,
            retries,
            on_request=self._on_request,
            clock=self._clock,
            environment=environment,
        )

    def _report(self, reason: str) -> None:
        self._signs = False
        self._on_boto3(reason)


def boto3_reason(
    environment: Mapping[str, str],
    region: str | None,
    endpoint: ServiceEndpoint | None,
    credentials: CredentialSource | None,
) -> str | None:
    """Return which part of the configuration only boto3 understands; None if there is none."""
    if any(environment[name] for name in environment if name.lower() in _PROXIES):
        return "proxy"
    if any(environment.get(name) for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")):
        return "profile"
    if _exists(environment, "AWS_CONFIG_FILE", "config"):
        return "shared_config"
    if environment.get("AWS_ACCOUNT_ID_ENDPOINT_MODE", "").lower() == "required":
        return "account_id_endpoint"
    if region is None or endpoint is None:
        return "region" if region is None else "endpoint"
    is_first = bool(environment.get("AWS_ACCESS_KEY_ID"))  # otherwise these sources come before a container's
    has_others = environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") or _exists(
        environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"
    )
    return "credentials" if credentials is None or (has_others and not is_first) else None


_PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy"})


def _exists(environment: Mapping[str, str], variable: str, name: str) -> bool:
    """Return whether a file of the AWS CLI exists: the variable's, or ~/.aws/`name`."""
    return Path(environment.get(variable) or f"~/.aws/{name}").expanduser().is_file()


def s3_client(region: str | None = None, endpoint_url: str | None = None) -> S3Client:
    """Create a boto3 client of S3 whose presigned URLs work in every Region.

    It signs with version 4 and names the bucket's Region in the host. By default, boto3 presigns with version
    2, which newer Regions refuse, and for the host of us-east-1, whose redirect invalidates the signature.
    """
    from mcp_roundtrip.aws.boto3_client import create_boto3_client  # costs 130 ms

    # S3 answers an upload once it has stored all of it.
    addressing = {"addressing_style": "virtual"}
    client: S3Client = create_boto3_client(
        "s3", region, endpoint_url, signature_version="s3v4", s3=addressing, read_timeout=10
    )
    return client
