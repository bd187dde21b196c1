"""HTTP requests to AWS services with `http.client`, within limits of time and size.

Importing `http.client` takes as long as a call, so this module is imported when the first connection opens.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, InvalidURL
from ssl import SSLError
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.aws.client_interface import AwsError, NoResponse, NotSent
from mcp_roundtrip.aws.services import ServiceResponse

if TYPE_CHECKING:
    from socket import socket
    from ssl import SSLContext

    from mcp_roundtrip.aws.endpoints import ServiceEndpoint

MAX_RESPONSE: Final = 32 * 1024 * 1024
"""The limit in bytes of a response. The largest are pages of Query: 1 MB of items in JSON and Base64."""


def connect(endpoint: ServiceEndpoint, context: SSLContext | None, timeout_s: float) -> HTTPConnection:
    """Open a connection, with TLS if there is a `context`.

    Raises NotSent, and NoResponse if TLS fails.
    """
    if context is None:
        connection = HTTPConnection(endpoint.host, endpoint.port, timeout=timeout_s)
    else:
        connection = HTTPSConnection(endpoint.host, endpoint.port, timeout=timeout_s, context=context)
    connection.auto_open = 0  # a connection that was closed must not be replaced unnoticed
    connection.response_class = _LimitedResponse
    try:
        connection.connect()
    except OSError as error:
        connection.close()
        raise _connect_error(error) from error
    except UnicodeError as error:  # a label of over 63 characters
        raise NotSent("EndpointConnectionError") from error
    return connection


def exchange(
    connection: HTTPConnection,
    method: str,
    target: str,
    headers: Iterable[tuple[str, str]],
    body: bytes | None,
    timeout_s: float,
) -> ServiceResponse:
    """Send a request and read the response. Afterwards the connection is closed if it cannot be used again.

    Raises ValueError if a header or the target is not valid, NoResponse, and AwsError if the response is too
    large. After an error the connection cannot be used again.
    """
    ends_at = time.monotonic() + timeout_s
    try:
        connection.sock.settimeout(timeout_s)
        try:
            connection.request(method, target, body, dict(headers))
        except (ValueError, InvalidURL):  # their messages quote credentials
            raise ValueError("a header or the target is not valid") from None
        connection.sock.settimeout(_remaining_s(ends_at))
        return _read(connection)
    except TimeoutError as error:
        raise NoResponse("timeout") from error
    except (OSError, HTTPException) as error:
        raise NoResponse("ConnectionClosedError") from error


def _read(connection: HTTPConnection) -> ServiceResponse:
    response = connection.getresponse()
    assert isinstance(response, _LimitedResponse)
    try:
        body = response.read(MAX_RESPONSE)
    except ValueError as error:
        raise HTTPException("a chunk with a negative length") from error
    if response.length:  # read() with a limit accepts a body that ends too early
        raise HTTPException("an incomplete body")
    if response.has_more:
        connection.close()
    return ServiceResponse(response.status, response.headers, body)


def _connect_error(error: OSError) -> AwsError:
    if isinstance(error, TimeoutError):
        return NotSent("timeout")
    return NoResponse("SSLError") if isinstance(error, SSLError) else NotSent("EndpointConnectionError")


def _remaining_s(ends_at: float) -> float:
    return max(ends_at - time.monotonic(), 0.001)  # a timeout of 0 would make the socket non-blocking


class _LimitedResponse(HTTPResponse):
    """A response that the socket's timeout limits as a whole. Otherwise it would limit each read."""

    def __init__(self, sock: socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._stream = _LimitedStream(sock, self.fp.detach())
        self.fp = self._buffer = _Buffer(self._stream)

    @property
    def has_more(self) -> bool:
        """Whether more was received than the response. Known after its end."""
        return self._buffer.has_more

    def begin(self) -> None:
        super().begin()
        # http.client takes the end of the stream for the end of the headers, and other interim responses than
        # 100 Continue for responses.
        if self._stream.has_ended or self.status < 200:
            raise HTTPException("an incomplete head")


class _Buffer(io.BufferedReader):
    """A buffer that records at its end whether it is empty."""

    has_more = False

    def close(self) -> None:
        if not self.closed:
            self.has_more = self.tell() < self.raw.tell()
        super().close()


class _LimitedStream(io.RawIOBase):
    """The received bytes of one response."""

    def __init__(self, connected: socket, stream: io.RawIOBase) -> None:
        self._socket = connected
        self._stream = stream
        self._ends_at = time.monotonic() + (connected.gettimeout() or 0)
        self._received = 0
        self.has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._socket.settimeout(_remaining_s(self._ends_at))
        length = self._stream.readinto(buffer) or 0
        self._received += length
        self.has_ended = length == 0
        if self._received > MAX_RESPONSE:
            raise AwsError("response_too_large")
        return length

    def tell(self) -> int:
        return self._received

    def close(self) -> None:
        self._stream.close()
        super().close()
