"""The wire formats of AWS services: awsJson, and Lambda's operation Invoke.

https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html
https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from msgspec import Struct

from mcp_roundtrip.aws.client_interface import MAX_CODE, AwsError, Headers, ServiceResponse


class ServiceRequest(NamedTuple):
    """A request without its authentication. Its method is POST."""

    path: str
    headers: Headers
    body: bytes


class JsonService(Struct, frozen=True):
    """A service with the protocol awsJson. `decode` decodes the binary members of an object."""

    name: str
    version: str
    target: str
    decode: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def format_request(self, operation: str, parameters: Mapping[str, Any]) -> ServiceRequest:
        headers = (
            ("X-Amz-Target", f"{self.target}.{operation}"),
            ("Content-Type", f"application/x-amz-json-{self.version}"),
        )
        return ServiceRequest("/", headers, json.dumps(parameters, default=_base64).encode())

    def parse_response(self, response: ServiceResponse) -> dict[str, Any]:
        members = _read_members(response, self.decode)
        if response.status >= 300:
            refusal = members or {}
            raise _error(response, refusal.get("__type"), refusal)
        if members is None:
            raise AwsError("malformed_answer", status=response.status)
        return members


class InvokeService:
    """Lambda's operation Invoke. The payload of a response is bytes."""

    name = "lambda"

    def format_request(self, operation: str, parameters: Mapping[str, Any]) -> ServiceRequest:
        headers = [
            (header, parameters[name]) for name, header in _INVOKE_HEADERS.items() if name in parameters
        ]
        path = f"/2015-03-31/functions/{quote(parameters['FunctionName'], safe='')}/invocations"
        return ServiceRequest(path, headers, parameters["Payload"])

    def parse_response(self, response: ServiceResponse) -> dict[str, Any]:
        if response.status >= 300:
            refusal = _read_members(response) or {}
            code = response.headers.get("x-amzn-errortype") or refusal.get("code") or refusal.get("Code")
            raise _error(response, code or refusal.get("__type"), refusal)
        members = {"StatusCode": response.status, "Payload": response.body}
        if "x-amz-function-error" in response.headers:
            members["FunctionError"] = response.headers["x-amz-function-error"]
        return members


_INVOKE_HEADERS: Final = {
    "InvocationType": "X-Amz-Invocation-Type",
    "ClientContext": "X-Amz-Client-Context",
}


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _decode_kms(found: dict[str, Any]) -> dict[str, Any]:
    for name in ("Mac", "PublicKey", "Signature"):
        if isinstance(found.get(name), str):
            found[name] = b64decode(found[name], validate=True)
    return found


def _decode_attribute(found: dict[str, Any]) -> dict[str, Any]:
    """Decode an AttributeValue of type B. The value of an attribute with the name B is an object."""
    if len(found) == 1 and isinstance(value := found.get("B"), str):
        return {"B": b64decode(value, validate=True)}
    return found


def _read_members(
    response: ServiceResponse, decode: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> dict[str, Any] | None:
    """Return the members of a response; None if it is no JSON object."""
    try:
        members = json.loads(response.body or b"{}", object_hook=decode)
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def _error(response: ServiceResponse, code: Any, members: Mapping[str, Any]) -> AwsError:
    message = members.get("message", members.get("Message", ""))
    # "com.amazonaws.dynamodb.v20120810#ThrottlingException", "ResourceNotFoundException:http://…"
    code = code.partition(":")[0].rpartition("#")[2][:MAX_CODE] if isinstance(code, str) else ""
    return AwsError(
        code or str(response.status),
        message if isinstance(message, str) else "",
        members,
        status=response.status,
    )


Service = JsonService | InvokeService
"""The format of a service. `name` is the same in endpoints, signatures and boto3."""

SERVICES: Final[Mapping[str, Service]] = {
    "lambda": InvokeService(),
    "kms": JsonService("kms", "1.1", "TrentService", _decode_kms),
    "dynamodb": JsonService("dynamodb", "1.0", "DynamoDB_20120810", _decode_attribute),
    "logs": JsonService("logs", "1.1", "Logs_20140328"),
    "sqs": JsonService("sqs", "1.0", "AmazonSQS"),
}
