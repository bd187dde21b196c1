"""A request to the console's API: its path, its query and its JSON body, and the errors that it can get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

from mcp_roundtrip.protocol.canonical import parse_json
from mcp_roundtrip_tools.run.http.messages import Request

MAX_BODY: Final = 2 * 1024 * 1024
"""The largest body of a request to the API, in bytes: the edited files of a function."""


class ConsoleError(Exception):
    """The API answers with this status and message. `members` are further members of the JSON document."""

    def __init__(self, status: int, message: str, **members: Any) -> None:
        super().__init__(message)
        self.status = status
        self.members = members


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request.

    `parameters` are those of the path and of the query, `body` is the JSON object or {}. `endpoint_host` is
    the authority of the HTTP API with the host name of the page: 127.0.0.1 or localhost, with the port.
    """

    parameters: Mapping[str, str]
    body: Mapping[str, Any]
    endpoint_host: str = "127.0.0.1"

    def whole_number(self, name: str, default: int, most: int) -> int:
        """Return a parameter that is a whole number from 0; at most `most`. Raises ConsoleError."""
        text = self.parameters.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < 16):
            raise ConsoleError(400, f"{name} must be a whole number")
        return min(int(text), most)

    def text(self, name: str) -> str:
        """Return a member of the body that is a string. Raises ConsoleError."""
        value = self.body.get(name)
        if not isinstance(value, str):
            raise ConsoleError(400, f"{name} must be a string")
        return value


def read_request(request: Request, path_parameters: Mapping[str, str], endpoint_host: str) -> ApiRequest:
    """Return a request to the API; of a repeated parameter in the query, the last. Raises ConsoleError."""
    try:
        query = dict(parse_qsl(request.target.partition("?")[2], max_num_fields=20))
    except ValueError:
        raise ConsoleError(400, "the query has too many parameters") from None
    body = {} if request.method == "GET" else _read_body(request)
    return ApiRequest({**query, **path_parameters}, body, endpoint_host)


def _read_body(request: Request) -> dict[str, Any]:
    if request.too_large or len(request.body) > MAX_BODY:
        raise ConsoleError(413, f"the body must be at most {MAX_BODY} bytes")
    try:
        value = parse_json(request.body or b"{}", max_values=100_000)
    except ValueError as error:
        raise ConsoleError(400, f"the body is not a JSON document: {error}") from None
    if not isinstance(value, dict):
        raise ConsoleError(400, "the body must be a JSON object")
    return value
