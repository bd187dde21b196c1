"""Error responses of emulated AWS services."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from mcp_roundtrip_tools.run.http.messages import Response


class ServiceFault(Exception):
    """An error response: `code` is the AWS error code, such as `DisabledException`."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status

    def response(self, content_type: str = "application/json") -> Response:
        """Return the error response: clients of different services read different members of it."""
        error = {"__type": self.code, "message": self.message, "Message": self.message}
        headers = (("content-type", content_type), ("x-amzn-errortype", self.code))
        return Response(self.status, headers, json.dumps(error).encode())


def respond_json(operation: Callable[[], Mapping[str, Any] | None], version: str = "1.1") -> Response:
    """Return the response, or error response, of an operation, in a version of the AWS JSON protocol."""
    content_type = f"application/x-amz-json-{version}"
    try:
        answer = operation()
    except ServiceFault as fault:
        return fault.response(content_type)
    body = b"" if answer is None else json.dumps(answer).encode()
    return Response(200, (("content-type", content_type),), body)
