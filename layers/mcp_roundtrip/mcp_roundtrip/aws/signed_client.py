"""Call AWS services with signed requests, without botocore and its service models.

Importing botocore and creating one client takes longer than everything else in a first request.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_roundtrip.aws.client_interface import AwsError, OnRequest, ignore_request
from mcp_roundtrip.aws.connections import Connections
from mcp_roundtrip.aws.credentials import CredentialSource
from mcp_roundtrip.aws.endpoints import ServiceEndpoint
from mcp_roundtrip.aws.retries import Retries
from mcp_roundtrip.aws.services import Service, ServiceRequest
from mcp_roundtrip.aws.sigv4 import percent_encode, sign

READ_TIMEOUT_S: Final = 2.0

USER_AGENT: Final = "mcp-roundtrip"


class SignedClient:
    """An `AwsClient` of one service. Several threads may use it.

    Each attempt connects in 1 s, and sends the request and reads the response in 2 s or `timeout_s`.
    `clock` returns epoch seconds.
    """

    def __init__(
        self,
        service: Service,
        region: str,
        endpoint: ServiceEndpoint,
        credentials: CredentialSource,
        connections: Connections,
        retries: Retries,
        *,
        on_request: OnRequest = ignore_request,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        environment: Mapping[str, str] = os.environ,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self.endpoint = endpoint
        self._service = service
        self._region = region
        self._credentials = credentials
        self._connections = connections
        self._retries = retries
        self._on_request = on_request
        self._clock = clock
        self._sleep = sleep
        self._environment = environment
        self._read_timeout_s = read_timeout_s

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        request = self._service.format_request(operation, parameters)
        attempt, last_error = 1, None
        while True:
            try:
                members = self._attempt(operation, request, timeout_s or self._read_timeout_s)
            except AwsError as error:
                pause_s = self._retries.pause_s(error, attempt)
                if pause_s is None:
                    raise
                attempt, last_error = attempt + 1, error
            else:
                self._retries.on_success(last_error)
                return members
            self._sleep(pause_s)

    def close(self) -> None:
        self._connections.close()

    def _attempt(self, operation: str, request: ServiceRequest, timeout_s: float) -> dict[str, Any]:
        path = self.endpoint.path + request.path
        headers = self._headers(path, request)
        self._on_request(self._service.name, operation)
        try:
            response = self._connections.request("POST", path, headers, request.body, timeout_s)
        except ValueError as error:
            raise AwsError("invalid_header") from error
        return self._service.parse_response(response)

    def _headers(self, path: str, request: ServiceRequest) -> list[tuple[str, str]]:
        headers = [("Host", self.endpoint.authority), *request.headers]
        headers += sign(
            "POST",
            path,
            "",
            headers,
            request.body,
            credentials=self._credentials(),
            region=self._region,
            service=self._service.name,
            at=self._clock(),
        )
        return [*headers, ("User-Agent", USER_AGENT), *self._trace_header()]

    def _trace_header(self) -> list[tuple[str, str]]:
        """Return Lambda's trace id, with which AWS traces requests and stops recursive invocations."""
        trace = self._environment.get("_X_AMZN_TRACE_ID")
        if not trace or "AWS_LAMBDA_FUNCTION_NAME" not in self._environment:
            return []
        return [("X-Amzn-Trace-Id", percent_encode(trace, safe="-=;:+&[]{}\"',"))]
