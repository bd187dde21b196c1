"""Create clients of AWS services, with timeouts that leave time for a response.

The Region, the endpoint and the credentials of a client come from the environment, as for every AWS SDK,
unless a function takes them as arguments.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mcp_roundtrip.aws.client_interface import AwsClient, OnRequest, ignore_request
from mcp_roundtrip.aws.connections import Connections
from mcp_roundtrip.aws.credentials import CredentialSource, find_credentials
from mcp_roundtrip.aws.endpoints import find_endpoint
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

_PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy"})

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
        try:
            return self._make_signed_client(service, region, endpoint_url, retries, max_idle_s)
        except _NeedsBoto3 as need:
            self._signs = False
            self._on_boto3(need.reason)
            return None

    def _make_signed_client(
        self, service: str, region: str | None, endpoint_url: str | None, retries: Retries, max_idle_s: float
    ) -> SignedClient:
        environment = self._environment
        if reason := _boto3_feature(environment):
            raise _NeedsBoto3(reason)
        region = region or environment.get("AWS_DEFAULT_REGION")
        if not region:
            raise _NeedsBoto3("region")
        endpoint = find_endpoint(service, region, environment, endpoint_url)
        if endpoint is None:
            raise _NeedsBoto3("endpoint")
        return SignedClient(
            SERVICES[service],
            region,
            endpoint,
            self._credentials,
            Connections(endpoint, max_idle_s, self._ca_bundle, self._clock),
            retries,
            on_request=self._on_request,
            clock=self._clock,
            environment=environment,
        )

    @property
    def _ca_bundle(self) -> str | None:
        return self._environment.get("AWS_CA_BUNDLE") or self._environment.get("REQUESTS_CA_BUNDLE") or None

    @cached_property
    def _credentials(self) -> CredentialSource:
        """The source for all clients: a container is asked once for all of them."""
        credentials = find_credentials(self._environment, self._ca_bundle)
        if credentials is None:
            raise _NeedsBoto3("credentials")
        return credentials


class _NeedsBoto3(Exception):
    """The environment has a configuration that only boto3 understands."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _boto3_feature(environment: Mapping[str, str]) -> str | None:
    """Return which feature of boto3 the environment asks for; None if it asks for none."""
    if any(environment[name] for name in environment if name.lower() in _PROXIES):
        return "proxy"
    if any(environment.get(name) for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")):
        return "profile"
    if _has_file(environment, "AWS_CONFIG_FILE", "config"):
        return "shared_config"
    if environment.get("AWS_ACCOUNT_ID_ENDPOINT_MODE", "").lower() == "required":
        return "account_id_endpoint"
    # Only a key in environment variables comes before these sources.
    is_other = environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") or _has_file(
        environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"
    )
    return "credentials" if is_other and not environment.get("AWS_ACCESS_KEY_ID") else None


def _has_file(environment: Mapping[str, str], variable: str, name: str) -> bool:
    """Return whether a file of the AWS CLI exists: the variable's, or ~/.aws/`name`.

    As in botocore, a file in a home directory that is unknown or not accessible does not exist. pathlib would
    raise an error.
    """
    path = environment.get(variable) or f"~/.aws/{name}"
    return os.path.isfile(os.path.expanduser(path))


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
