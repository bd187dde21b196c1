"""The wire formats of AWS services: operations to HTTP requests, and HTTP responses to members.

https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html
https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from mcp_roundtrip.aws.client_interface import AwsError, NoResponse
from mcp_roundtrip.aws.sigv4 import Headers, percent_encode

if TYPE_CHECKING:
    from http.client import HTTPMessage


MAX_CODE: Final = 128
"""Characters of an error code, which becomes a reason in the log and a dimension of a metric."""


class ServiceRequest(NamedTuple):
    """A request without its authentication. Its method is POST."""

    path: str
    headers: Headers
    body: bytes


class ServiceResponse(NamedTuple):
    """A response with any status."""

    status: int
    headers: HTTPMessage
    """A mapping that ignores the case of names."""
    body: bytes


class Service(Protocol):
    """The format of one service."""

    @property
    def name(self) -> str:
        """The name of the service in its endpoints, in signatures and in boto3."""
        ...

    def format_request(self, operation: str, parameters: Mapping[str, Any]) -> ServiceRequest: ...

    def parse_response(self, response: ServiceResponse) -> dict[str, Any]:
        """Return the members. Raises AwsError for an error response, NoResponse for a damaged one."""
        ...


def read_json(body: bytes, object_hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Read the JSON of a response. Raises ValueError, also for JSON that is nested too deeply."""
    try:
        return json.loads(body, object_hook=object_hook)
    except RecursionError:
        raise ValueError("nested too deeply") from None


class JsonService:
    """A service with the protocol awsJson. `decode` returns the JSON of a response with its binary members.

    `extra_headers` are sent with each request.
    """

    def __init__(
        self,
        name: str,
        version: str,
        target: str,
        decode: Callable[[bytes], Any] = read_json,
        extra_headers: Headers = (),
    ) -> None:
        self.name = name
        self._target = target
        self._decode = decode
        self._headers = (("Content-Type", f"application/x-amz-json-{version}"), *extra_headers)

    def format_request(self, operation: str, parameters: Mapping[str, Any]) -> ServiceRequest:
        headers = (("X-Amz-Target", f"{self._target}.{operation}"), *self._headers)
        return ServiceRequest("/", headers, json.dumps(parameters, default=_base64).encode())

    def parse_response(self, response: ServiceResponse) -> dict[str, Any]:
        _verify_checksum(response)
        if response.status >= 300:
            refusal = _error_members(response, self._decode)
            raise _error(response, self._error_code(response, refusal), refusal)
        try:
            members = self._decode(response.body or b"{}")
        except ValueError:
            raise AwsError("malformed_answer", status=response.status) from None
        if not isinstance(members, dict):
            raise AwsError("malformed_answer", status=response.status)
        return members

    def _error_code(self, response: ServiceResponse, members: Mapping[str, Any]) -> Any:
        # SQS names the errors of its former protocol, which botocore reports.
        former, separator, _ = response.headers.get("x-amzn-query-error", "").partition(";")
        return former if former and separator else members.get("__type")


class InvokeService:
    """Lambda's operation Invoke. The payload of a response is bytes."""

    name = "lambda"

    def format_request(self, operation: str, parameters: Mapping[str, Any]) -> ServiceRequest:
        if operation != "Invoke":
            raise ValueError(f"{operation} is not supported")
        headers = [
            (header, parameters[name]) for name, header in _INVOKE_HEADERS.items() if name in parameters
        ]
        path = f"/2015-03-31/functions/{percent_encode(parameters['FunctionName'])}/invocations"
        return ServiceRequest(path, headers, parameters["Payload"])

    def parse_response(self, response: ServiceResponse) -> dict[str, Any]:
        if response.status >= 300:
            members = _error_members(response, read_json)
            code = response.headers.get("x-amzn-errortype") or members.get("code") or members.get("Code")
            raise _error(response, code or members.get("__type"), members)
        members = {"StatusCode": response.status, "Payload": response.body}
        if "x-amz-function-error" in response.headers:
            members["FunctionError"] = response.headers["x-amz-function-error"]
        return members


_INVOKE_HEADERS: Final = {
    "InvocationType": "X-Amz-Invocation-Type",
    "ClientContext": "X-Amz-Client-Context",
}


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not a member of a request")


def _decode_kms(body: bytes) -> Any:
    members = read_json(body)
    if isinstance(members, dict):
        for name in ("Mac", "PublicKey", "Signature"):
            if isinstance(members.get(name), str):
                members[name] = b64decode(members[name], validate=True)
    return members


def _decode_dynamodb(body: bytes) -> Any:
    return read_json(body, _decode_binary)


def _decode_binary(found: dict[str, Any]) -> dict[str, Any]:
    """Decode an AttributeValue of type B. An attribute with the name B is not a string, but such a value."""
    if len(found) == 1 and isinstance(value := found.get("B"), str):
        return {"B": b64decode(value, validate=True)}
    return found


def _error_members(response: ServiceResponse, decode: Callable[[bytes], Any]) -> dict[str, Any]:
    try:
        members = decode(response.body)
    except ValueError:
        return {}
    return members if isinstance(members, dict) else {}


def _error(response: ServiceResponse, code: Any, members: Mapping[str, Any]) -> AwsError:
    """Return the error of a response. Without a code, that is the HTTP status."""
    message = members.get("message", members.get("Message", ""))
    # "com.amazonaws.dynamodb.v20120810#ThrottlingException", "ResourceNotFoundException:http://…"
    code = code.partition(":")[0].rpartition("#")[2][:MAX_CODE] if isinstance(code, str) else ""
    return AwsError(
        code or str(response.status),
        message if isinstance(message, str) else "",
        members,
        status=response.status,
        retry_after_s=_retry_after_s(response),
    )


def _retry_after_s(response: ServiceResponse) -> float | None:
    value = response.headers.get("x-amz-retry-after", "")
    return int(value) / 1000 if value.isascii() and value.isdecimal() and len(value) < 10 else None


def _verify_checksum(response: ServiceResponse) -> None:
    """Compare DynamoDB's checksum of the body. Other services send none."""
    expected = response.headers.get("x-amz-crc32")
    if expected is not None and expected != str(zlib.crc32(response.body)):
        raise NoResponse("checksum_mismatch")


SERVICES: Final[Mapping[str, Service]] = {
    "lambda": InvokeService(),
    "kms": JsonService("kms", "1.1", "TrentService", _decode_kms),
    # Compressed responses would have another checksum.
    "dynamodb": JsonService(
        "dynamodb", "1.0", "DynamoDB_20120810", _decode_dynamodb, (("Accept-Encoding", "identity"),)
    ),
    "logs": JsonService("logs", "1.1", "Logs_20140328"),
    "sqs": JsonService("sqs", "1.0", "AmazonSQS", extra_headers=(("x-amzn-query-mode", "true"),)),
}
"""The services that can be called without boto3."""
