"""The credentials of a function.

They come from environment variables or, with SnapStart, from an endpoint on the loopback
interface. Only boto3 has the other sources of an SDK, such as profiles, web identities, and the endpoints of
other containers.

https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final
from urllib.parse import SplitResult

from msgspec import Struct, field

from mcp_roundtrip.aws.client_interface import AwsError, NoResponse, NotSent
from mcp_roundtrip.aws.connections import Connections, parse_endpoint


class AwsCredentials(Struct, frozen=True):
    """The keys of an IAM principal. They have no `repr`, so that no log can contain them."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None

    __repr__ = object.__repr__


REFRESH_BEFORE_S: Final = 900
"""Credentials that expire sooner are fetched again. botocore's value."""

RETRY_S: Final = 60
"""The pause after a failed attempt while the credentials are valid."""

CONTAINER_URI: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
CONTAINER_TOKEN: Final = "AWS_CONTAINER_AUTHORIZATION_TOKEN"  # noqa: S105 - the name of a variable

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""The hosts that may get the authorization token without TLS."""

OTHER_SOURCES: Final = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SHARED_CREDENTIALS_FILE")
"""The variables of sources that SDKs try before a container."""

_TIMEOUT_S: Final = 2.0
_ATTEMPTS: Final = 3

CredentialSource = Callable[[], AwsCredentials]
"""Returns the credentials for a request. Raises AwsError."""


def find_credentials(environment: Mapping[str, str]) -> CredentialSource | None:
    """Return the source of credentials in the environment; None for a source that only boto3 has."""
    if environment.get("AWS_ACCESS_KEY_ID"):
        # Half a pair is an error, which boto3 explains.
        return (lambda: _read_environment(environment)) if environment.get("AWS_SECRET_ACCESS_KEY") else None
    if any(map(environment.get, OTHER_SOURCES)):
        return None
    endpoint = parse_endpoint(environment.get(CONTAINER_URI, ""))
    if endpoint is None or endpoint.hostname not in LOOPBACK_HOSTS:
        return None
    return ContainerCredentials(endpoint, environment)


def _read_environment(environment: Mapping[str, str]) -> AwsCredentials:
    """Read the variables at each call, so that credentials can be replaced."""
    token = environment.get("AWS_SECURITY_TOKEN") or environment.get("AWS_SESSION_TOKEN")
    return AwsCredentials(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], token)


class ContainerCredentials(Struct, eq=False):
    """Fetches credentials at the first use, and before they expire. Thread-safe. `clock`: epoch seconds."""

    endpoint: SplitResult
    environment: Mapping[str, str]
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _fetched: AwsCredentials | None = None
    _fetch_at: float = -math.inf
    _expires_at: float = -math.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)

    __repr__ = object.__repr__  # that of a Struct would show the environment, which has a token

    def __call__(self) -> AwsCredentials:
        with self._lock:
            if self.clock() >= self._expires_at:
                self._refresh(_ATTEMPTS)
            elif self.clock() >= self._fetch_at:
                with suppress(AwsError):
                    self._refresh(1)
            assert self._fetched is not None
            return self._fetched

    def _refresh(self, attempts: int) -> None:
        self._fetch_at = self.clock() + RETRY_S
        self._fetched, self._expires_at = self._fetch(attempts)
        self._fetch_at = self._expires_at - REFRESH_BEFORE_S

    def _fetch(self, attempts: int) -> tuple[AwsCredentials, float]:
        for _ in range(attempts - 1):
            try:
                return self._request()
            except AwsError:
                self.sleep(1)
        return self._request()

    def _request(self) -> tuple[AwsCredentials, float]:
        """Return the credentials and their expiry in epoch seconds. Raises AwsError."""
        headers = [("Host", self.endpoint.netloc), ("Accept", "application/json"), ("Connection", "close")]
        if token := self.environment.get(CONTAINER_TOKEN):
            headers.append(("Authorization", token))
        connections = Connections(self.endpoint, 0)
        try:
            response = connections.request("GET", self.endpoint.path or "/", headers, None, _TIMEOUT_S)
        except ValueError as error:  # a line feed in the token
            raise AwsError("credentials_token") from error
        except (NotSent, NoResponse) as error:  # the request that needs the credentials must not be repeated
            raise AwsError("credentials_unavailable") from error
        finally:
            connections.close()
        if response.status != 200:
            raise AwsError("credentials_unavailable", status=response.status)
        try:
            found = json.loads(response.body)
            credentials = AwsCredentials(found["AccessKeyId"], found["SecretAccessKey"], found["Token"])
            return credentials, datetime.fromisoformat(found["Expiration"]).timestamp()
        except (ValueError, TypeError, KeyError):
            raise AwsError("credentials_malformed") from None
