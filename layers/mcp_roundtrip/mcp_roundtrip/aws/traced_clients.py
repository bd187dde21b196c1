"""Clients of AWS services whose calls are client spans.

https://github.com/open-telemetry/semantic-conventions/blob/main/docs/cloud-providers/aws-sdk.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind

from mcp_roundtrip.aws.clients import AwsClients
from mcp_roundtrip.aws.services import AwsClient, AwsError
from mcp_roundtrip.observing.tracer import Attribute, Tracer, fail, fail_with_class

_SERVICES: Final[Mapping[str, str]] = {
    "dynamodb": "DynamoDB",
    "kms": "KMS",
    "lambda": "Lambda",
    "logs": "CloudWatch Logs",
    "sqs": "SQS",
}
"""Name in endpoints -> name in spans, which is the `sdkId` of the service's model."""

_EXPECTED: Final = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""How DynamoDB says that a conditional write came too late, which is no failure."""


class TracedAwsClients(AwsClients):
    """Traces the calls of other clients, but those outside of a span, such as the renewal of a lease."""

    def __init__(self, clients: AwsClients, tracer: Tracer) -> None:
        self._clients = clients
        self._tracer = tracer

    def client(self, service: str) -> AwsClient:
        return TracedClient(self._clients.client(service), service, self._tracer)

    def invoke_client(self) -> AwsClient:
        return TracedClient(self._clients.invoke_client(), "lambda", self._tracer)


class TracedClient:
    """Makes a span of each call of another client. The span covers all attempts."""

    def __init__(self, client: AwsClient, service: str, tracer: Tracer) -> None:
        self._client = client
        self._service = _SERVICES.get(service, service)
        self._tracer = tracer

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        if self._tracer.current() is None:
            return self._client.call(operation, timeout_s=timeout_s, **parameters)
        name = f"{self._service}.{operation}"
        attributes = self._attributes(operation)
        with self._tracer.span(name, SpanKind.CLIENT, attributes, on_error=_describe_error):
            return self._client.call(operation, timeout_s=timeout_s, **parameters)

    def close(self) -> None:
        self._client.close()

    def _attributes(self, operation: str) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {
            "rpc.system.name": "aws-api",
            "rpc.method": f"{self._service}/{operation}",
        }
        if self._service == "DynamoDB":
            attributes |= {"db.system.name": "aws.dynamodb", "db.operation.name": operation}
        return attributes


def _describe_error(span: Span, error: Exception) -> None:
    if not isinstance(error, AwsError):
        fail_with_class(span, error)
    elif error.code in _EXPECTED:
        span.set_attribute("db.response.status_code", error.code)
    else:
        fail(span, error.code)
