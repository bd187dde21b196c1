"""HTTP requests and responses, as the servers and their handlers exchange them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request: `target` is encoded, `body` empty if `too_large`. The console's is `from_console`."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    too_large: bool = False
    protocol: str = "HTTP/1.1"
    source_ip: str = "127.0.0.1"
    from_console: bool = False

    def header(self, name: str) -> str | None:
        """Return the first value of the header; `name` is in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response. The server adds Content-Length and Date."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


Respond = Callable[[Request], Response]


def json_response(status: int, document: Any) -> Response:
    """Return a response with a JSON body."""
    return Response(status, (("content-type", "application/json"),), json.dumps(document).encode())


def error_response(status: int, message: str) -> Response:
    """Return a response whose JSON body says why a request is refused."""
    return json_response(status, {"message": message})
