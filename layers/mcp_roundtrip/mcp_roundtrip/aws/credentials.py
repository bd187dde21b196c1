"""Credentials from the environment variables of a Lambda function, or from its container endpoint.

With SnapStart, Lambda has no credentials in environment variables: an endpoint on the loopback interface
returns them, for some hours. Everything else that an SDK can do (profiles, IAM Identity Center, web
identities, instance metadata) is left to boto3.

https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from mcp_roundtrip.aws.client_interface import AwsError, NoResponse, NotSent
from mcp_roundtrip.aws.connections import Connections
from mcp_roundtrip.aws.endpoints import ServiceEndpoint, parse_endpoint
from mcp_roundtrip.aws.sigv4 import AwsCredentials

REFRESH_BEFORE_S: Final = 900
"""A thread refreshes credentials that expire sooner, while others use them. botocore's value."""

MUST_REFRESH_BEFORE_S: Final = 600
"""Credentials that expire sooner are not used. botocore's value."""

CONTAINER_HOST: Final = "http://169.254.170.2"

CONTAINER_HOSTS: Final = frozenset({"169.254.170.2", "169.254.170.23", "fd00:ec2::23", "localhost"})
"""The hosts besides loopback addresses that may get the authorization token without TLS (the SDKs' rule)."""

FULL_URI: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
RELATIVE_URI: Final = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
TOKEN: Final = "AWS_CONTAINER_AUTHORIZATION_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE: Final = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"  # noqa: S105 - the name of a variable

_TIMEOUT_S: Final = 2.0
_ATTEMPTS: Final = 3

CredentialSource = Callable[[], AwsCredentials]
"""Returns the credentials for a request. Raises AwsError."""


def find_credentials(environment: Mapping[str, str], ca_bundle: str | None = None) -> CredentialSource | None:
    """Return the source of credentials that the environment names; None for one that only an SDK knows."""
    if environment.get("AWS_ACCESS_KEY_ID"):
        # Half a pair is an error, which boto3 explains.
        return (lambda: _read_environment(environment)) if environment.get("AWS_SECRET_ACCESS_KEY") else None
    uri = environment.get(RELATIVE_URI)
    uri = environment.get(FULL_URI) if uri is None else CONTAINER_HOST + uri
    endpoint = parse_endpoint(uri.partition("?")[0]) if uri else None
    if uri is None or endpoint is None or not _may_get_token(endpoint):
        return None
    return ContainerCredentials(uri, environment, ca_bundle)


def _read_environment(environment: Mapping[str, str]) -> AwsCredentials:
    """Read the variables at each call, so that credentials can be replaced."""
    token = environment.get("AWS_SECURITY_TOKEN") or environment.get("AWS_SESSION_TOKEN")
    return AwsCredentials(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], token)


class ContainerCredentials:
    """Fetches credentials at the first use, and before they expire. Thread-safe."""

    def __init__(
        self,
        uri: str,
        environment: Mapping[str, str],
        ca_bundle: str | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Fetch nothing yet. `clock` returns epoch seconds; `sleep` pauses for a second between attempts."""
        endpoint = parse_endpoint(uri.partition("?")[0])
        if endpoint is None:
            raise ValueError("not an http URL")
        self._connections = Connections(endpoint, 0, ca_bundle)
        self._authority = endpoint.authority
        self._target = "/" + uri.partition("://")[2].partition("/")[2]
        self._environment = environment
        self._clock = clock
        self._sleep = sleep
        self._fetched: tuple[AwsCredentials, float] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> AwsCredentials:
        fetched = self._fetched
        if fetched is not None and self._remaining_s(fetched) > REFRESH_BEFORE_S:
            return fetched[0]
        is_usable = fetched is not None and self._remaining_s(fetched) > MUST_REFRESH_BEFORE_S
        # While the credentials can be used, one thread refreshes them, and the others do not wait.
        if self._lock.acquire(blocking=not is_usable):
            try:
                if self._fetched is fetched:  # otherwise another thread has just refreshed them
                    self._refresh(is_usable)
            finally:
                self._lock.release()
        assert self._fetched is not None
        return self._fetched[0]

    def _remaining_s(self, fetched: tuple[AwsCredentials, float]) -> float:
        return fetched[1] - self._clock()

    def _refresh(self, is_usable: bool) -> None:
        try:
            self._fetched = self._fetch()
        except AwsError:
            if not is_usable:
                raise

    def _fetch(self) -> tuple[AwsCredentials, float]:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return _parse_credentials(self._get())
            except AwsError:
                if attempt == _ATTEMPTS:
                    raise
            self._sleep(1)
        raise AssertionError("the last attempt returns or raises")

    def _get(self) -> bytes:
        headers = [("Host", self._authority), ("Accept", "application/json"), ("Connection", "close")]
        try:
            if token := self._read_token():
                headers.append(("Authorization", token))
            response = self._connections.request("GET", self._target, headers, None, _TIMEOUT_S)
        except (OSError, ValueError) as error:  # the file, or a line feed in the token
            raise AwsError("credentials_token") from error
        except (NotSent, NoResponse) as error:
            raise AwsError("credentials_unavailable") from error
        finally:
            self._connections.close()  # the next request is hours away
        if response.status != 200:
            raise AwsError("credentials_unavailable", status=response.status)
        return response.body

    def _read_token(self) -> str | None:
        path = self._environment.get(TOKEN_FILE)
        return Path(path).read_text() if path is not None else self._environment.get(TOKEN)


def _parse_credentials(document: bytes) -> tuple[AwsCredentials, float]:
    """Return the credentials and their expiry in epoch seconds."""
    try:
        found = json.loads(document)
        credentials = AwsCredentials(found["AccessKeyId"], found["SecretAccessKey"], found["Token"])
        return credentials, datetime.fromisoformat(found["Expiration"]).timestamp()
    except (ValueError, TypeError, KeyError):
        raise AwsError("credentials_malformed") from None


def _may_get_token(endpoint: ServiceEndpoint) -> bool:
    from ipaddress import ip_address  # credentials in environment variables need none of this

    if endpoint.scheme == "https" or endpoint.host in CONTAINER_HOSTS:
        return True
    try:
        return ip_address(endpoint.host).is_loopback
    except ValueError:
        return False
