"""Create clients of AWS services, with timeouts that leave time for a response, and repeat failed calls.

A `SignedClient` signs its requests itself, because botocore would take most of the time of a first request.
It has what a function needs in the Regions of the partition `aws`. `MCP_AWS_CLIENT` selects boto3 instead.

`StandardRetries` follows the standard mode of the AWS SDKs as in botocore 1.44, without its quota,
`x-amz-retry-after` and the shorter pauses of DynamoDB:
https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
"""

from __future__ import annotations

import hmac
import math
import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import sha256
from random import SystemRandom
from typing import Any, Final
from urllib.parse import SplitResult, quote

from msgspec import Struct, field

from mcp_roundtrip.aws.client_interface import (
    AwsClient,
    AwsError,
    Headers,
    NoResponse,
    NotSent,
    OnRequest,
    ignore_request,
)
from mcp_roundtrip.aws.connections import Connections, parse_endpoint
from mcp_roundtrip.aws.credentials import AwsCredentials, CredentialSource, find_credentials
from mcp_roundtrip.aws.wire_formats import SERVICES, Service, ServiceRequest
from mcp_roundtrip.internal_errors import SettingsError

FIRST_PAUSE_S: Final = 0.05
THROTTLING_PAUSE_S: Final = 1.0
"""The longest pauses before a second attempt: of any call, and of a throttled one. A third doubles them."""

TRANSIENT_STATUSES: Final = frozenset({500, 502, 503, 504})
TRANSIENT_CODES: Final = frozenset(
    {"RequestTimeout", "RequestTimeoutException", "ReplicatedWriteConflictException"}  # DynamoDB has the last
)
THROTTLING_CODES: Final = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException"),
        *("TooManyRequestsException", "ProvisionedThroughputExceededException", "RequestThrottled"),
        *("TransactionInProgressException", "RequestLimitExceeded", "BandwidthLimitExceeded", "SlowDown"),
        *("LimitExceededException", "PriorRequestNotComplete", "EC2ThrottledException"),
    }
)

Retries = Callable[[AwsError, int], float | None]
"""Takes the error and the number of an attempt, from 1; returns the pause in seconds, or None to give up."""

kernel_random: Final = SystemRandom().random
"""A function without a state, which environments of one snapshot would share."""


def retry_connection(error: AwsError, attempt: int) -> float | None:
    """Repeat a call once if nothing was sent. It suits operations that must not be executed twice."""
    return 0 if isinstance(error, NotSent) and attempt == 1 else None


class StandardRetries(Struct, frozen=True):
    """Repeats calls that failed for a transient reason, after pauses with full jitter.

    `time_left_s` returns the seconds until the invocation ends, which no pause outlasts.
    """

    time_left_s: Callable[[], float] = lambda: math.inf
    random: Callable[[], float] = kernel_random
    max_attempts: int = 3

    def __call__(self, error: AwsError, attempt: int) -> float | None:
        if attempt >= self.max_attempts or not is_retryable(error):
            return None
        first_pause_s = THROTTLING_PAUSE_S if is_throttling(error) else FIRST_PAUSE_S
        pause_s: float = self.random() * first_pause_s * 2 ** (attempt - 1)
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


USER_AGENT: Final = "mcp-roundtrip"

MAX_IDLE_S: Final = 60.0
"""A connection that was idle for longer is replaced: endpoints close idle ones (as in the SDK for Java)."""

MAX_IDLE_BEFORE_INVOKE_S: Final = 5.0
"""The same for `invoke_client`: an error on a connection that the endpoint closed would not show whether the
request arrived."""

_BOTO3_VARIABLES: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    *("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_ACCOUNT_ID_ENDPOINT_MODE"),
    *("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
)
"""Variables that change how an SDK calls AWS, and that a `SignedClient` does not support."""

_WITHOUT_EFFECT: Final = frozenset({"", "false", "preferred", "disabled", "/dev/null"})
"""Values of these variables that change nothing."""

_SERVICE_IDS: Final = {"logs": "CLOUDWATCH_LOGS"}
"""Service -> its name in the variables of endpoints, if that is not the upper-case name."""


class AwsClients(Struct, kw_only=True, eq=False, dict=True):  # dict: for cached_property
    """A `ClientFactory` whose clients sign their requests themselves.

    The Region, the endpoint and the credentials come from the environment, as for every AWS SDK.
    `time_left_s` returns the seconds that the invocation has left, `clock` returns epoch seconds.
    """

    on_request: OnRequest = ignore_request
    time_left_s: Callable[[], float] = lambda: math.inf
    clock: Callable[[], float] = time.time
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    __repr__ = object.__repr__  # that of a Struct would show the environment, which has credentials

    def client(self, service: str) -> AwsClient:
        return self._signed_client(service, StandardRetries(self.time_left_s), MAX_IDLE_S)

    def invoke_client(self) -> AwsClient:
        return self._signed_client("lambda", retry_connection, MAX_IDLE_BEFORE_INVOKE_S)

    def _signed_client(self, service: str, retries: Retries, max_idle_s: float) -> SignedClient:
        for name in _BOTO3_VARIABLES:
            if self.environment.get(name, "").lower() not in _WITHOUT_EFFECT:
                raise _unsupported(f"{name} is set")
        region = self.environment.get("AWS_DEFAULT_REGION")
        if not region:
            raise _unsupported("AWS_DEFAULT_REGION is not set")
        endpoint = find_endpoint(service, region, self.environment)
        ca_bundle = self.environment.get("AWS_CA_BUNDLE") or self.environment.get("REQUESTS_CA_BUNDLE")
        return SignedClient(
            SERVICES[service],
            region,
            endpoint,
            self._credentials,
            Connections(endpoint, max_idle_s, self.clock, ca_bundle=ca_bundle),
            retries,
            on_request=self.on_request,
            clock=self.clock,
        )

    @cached_property
    def _credentials(self) -> CredentialSource:
        """The source for all clients, so that a container is asked once."""
        credentials = find_credentials(self.environment)
        if credentials is None:
            raise _unsupported("no credentials are in the environment variables that Lambda sets")
        return credentials


def find_endpoint(service: str, region: str, environment: Mapping[str, str]) -> SplitResult:
    """Return the endpoint of a service in a Region of the partition `aws`, or the configured one.

    Raises SettingsError for an invalid URL, and in another partition without a configured endpoint.
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
    """
    name = _SERVICE_IDS.get(service, service.upper())
    url = environment.get(f"AWS_ENDPOINT_URL_{name}") or environment.get("AWS_ENDPOINT_URL")
    if not url and not _is_commercial(region):
        raise _unsupported(f"{region:.100} is a Region of another partition than aws")
    if endpoint := parse_endpoint(url or f"https://{service}.{region}.amazonaws.com"):
        return endpoint
    # The URL may contain a password.
    raise _unsupported(f"the endpoint of {service} is not a URL that consists of a host and a path")


def _is_commercial(region: str) -> bool:
    """Return whether a Region is in the partition `aws`: three parts, and not in China."""
    parts = region.split("-")
    return len(parts) == 3 and parts[0] != "cn" and parts[2].isdecimal()


def _unsupported(reason: str) -> SettingsError:
    problem = f"is signed, and {reason}; set it to boto3, or correct the environment"
    return SettingsError("MCP_AWS_CLIENT", problem)


class SignedClient(Struct, eq=False):
    """An `AwsClient`. Each attempt connects in 1 s, and sends and reads in 2 s or `timeout_s`."""

    service: Service
    region: str
    endpoint: SplitResult
    credentials: CredentialSource
    connections: Connections
    retries: Retries
    on_request: OnRequest = ignore_request
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    read_timeout_s: float = 2.0

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        request = self.service.format_request(operation, parameters)
        attempt = 1
        while True:
            try:
                return self._attempt(operation, request, timeout_s or self.read_timeout_s)
            except AwsError as error:
                pause_s = self.retries(error, attempt)
                if pause_s is None:
                    raise
            self.sleep(pause_s)
            attempt += 1

    def _attempt(self, operation: str, request: ServiceRequest, timeout_s: float) -> dict[str, Any]:
        path = self.endpoint.path.rstrip("/") + request.path
        headers = self._headers(path, request)
        self.on_request(self.service.name, operation)
        try:
            response = self.connections.request("POST", path, headers, request.body, timeout_s)
        except ValueError as error:
            raise AwsError("invalid_header") from error
        return self.service.parse_response(response)

    def _headers(self, path: str, request: ServiceRequest) -> list[tuple[str, str]]:
        headers = [("Host", self.endpoint.netloc), *request.headers]
        headers += sign(
            path,
            headers,
            request.body,
            credentials=self.credentials(),
            region=self.region,
            service=self.service.name,
            at=self.clock(),
        )
        headers.append(("User-Agent", USER_AGENT))
        trace = os.environ.get("_X_AMZN_TRACE_ID")
        if trace and "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
            # With Lambda's trace id, AWS traces requests and stops recursive invocations.
            headers.append(("X-Amzn-Trace-Id", quote(trace, safe="=;:+&[]{}\"',")))
        return headers


# -- Signature Version 4: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

ALGORITHM: Final = "AWS4-HMAC-SHA256"


def sign(
    path: str,
    headers: Headers,
    body: bytes,
    *,
    credentials: AwsCredentials,
    region: str,
    service: str,
    at: float,
) -> Headers:
    """Return the headers that authenticate a POST request at the time `at` (epoch seconds).

    `path` is percent-encoded, as sent. All `headers` are signed; they include Host, and each name once.
    """
    timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
    added = [("X-Amz-Date", timestamp)]
    if credentials.session_token:
        added.append(("X-Amz-Security-Token", credentials.session_token))

    # 1. The canonical request
    values = sorted((name.lower(), " ".join(value.split())) for name, value in [*headers, *added])
    names = ";".join(name for name, _ in values)
    lines = [f"{name}:{value}" for name, value in values]
    request = "\n".join(["POST", quote(path), "", *lines, "", names, sha256(body).hexdigest()])

    # 2. The string to sign
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    to_sign = f"{ALGORITHM}\n{timestamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"

    # 3. The signature, by a key for this day, Region and service
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()

    credential = f"Credential={credentials.access_key_id}/{scope}"
    added.append(("Authorization", f"{ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"))
    return added
