"""Error responses of emulated AWS services in the AWS JSON protocol."""

from __future__ import annotations

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


def respond_json(operation: Callable[[], Mapping[str, Any] | None], version: str = "1.1") -> Response:
    """Return the response of an operation, which returns a JSON object or nothing; or its error response."""
    headers = (("content-type", f"application/x-amz-json-{version}"),)
    try:
        answer = operation()
    except ServiceFault as fault:
        error = {"__type": fault.code, "message": fault.message}
        more = (("x-amzn-errortype", fault.code),)
        return Response(fault.status, (*headers, *more), json.dumps(error).encode())
    return Response(200, headers, b"" if answer is None else json.dumps(answer).encode())
