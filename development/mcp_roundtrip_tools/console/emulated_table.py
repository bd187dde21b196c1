"""A client of the emulated DynamoDB for the console. Its requests are not recorded and start nothing."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPMessage
from typing import Any, Final

from mcp_roundtrip.aws.dynamodb import DynamoStore, from_attributes, to_attributes
from mcp_roundtrip.aws.services import SERVICES, ServiceResponse
from mcp_roundtrip.tasks.model import CALL, TASK
from mcp_roundtrip.tasks.store import Item
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.services.emulator import Emulator

_AUTHORIZATION: Final = (
    "AWS4-HMAC-SHA256 Credential=console/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, "
    "Signature=0"
)


class EmulatedTableClient:
    """An `AwsClient` of DynamoDB that calls the emulator in this process."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def call(self, operation: str, *, timeout_s: float | None = None, **parameters: Any) -> dict[str, Any]:
        service = SERVICES["dynamodb"]
        request = service.format_request(operation, parameters)
        headers = (("host", "localhost"), ("authorization", _AUTHORIZATION), *request.headers)
        answer = self._emulator.respond(Request("POST", request.path, headers, request.body))
        received = HTTPMessage()
        for name, value in answer.headers:
            received[name] = value
        return service.parse_response(ServiceResponse(answer.status, received, answer.body))

    def close(self) -> None:
        """Close nothing: there is no connection."""


class EmulatedTable:
    """One emulated table of tasks. While nothing has used DynamoDB, it is empty."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        self._emulator = emulator
        self._client = EmulatedTableClient(emulator)
        self._name = name
        self.store = DynamoStore(self._client, name)

    def heads(self) -> Iterator[Item]:
        """Yield the item M and the item A of each task: the task itself and its call."""
        request: dict[str, Any] = {
            "TableName": self._name,
            "FilterExpression": "sk = :task OR sk = :call",
            "ExpressionAttributeValues": to_attributes({":task": TASK, ":call": CALL}),
        }
        while self._emulator.is_running:
            page = self._client.call("Scan", **request)
            yield from map(from_attributes, page["Items"])
            if not page.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
