"""Kept connections to one endpoint, over TCP or TLS."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from select import POLLIN, poll
from typing import TYPE_CHECKING, Final

from mcp_roundtrip.aws.client import AwsError, NoResponse, NotSent
from mcp_roundtrip.aws.endpoints import ServiceEndpoint
from mcp_roundtrip.aws.http1 import InvalidHttp, ResponseTooLarge, ServiceResponse, read_response

if TYPE_CHECKING:
    from ssl import SSLContext

CONNECT_TIMEOUT_S: Final = 1.0

MAX_KEPT: Final = 10
"""Idle connections. More are open only while more threads wait for responses."""

_READ: Final = 256 * 1024


class Connections:
    """Sends requests to an endpoint, over a kept connection if there is one. Thread-safe.

    A connection that was idle for over `max_idle_s`, that the endpoint closed, or that another process
    opened (before a fork) is replaced. `clock` returns epoch seconds: monotonic time may stop while Lambda
    has frozen the environment, and a restored snapshot finds its connections idle for long.
    """

    def __init__(
        self,
        endpoint: ServiceEndpoint,
        max_idle_s: float,
        ca_bundle: str | None = None,
        clock: Callable[[], float] = time.time,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        self._kept: list[tuple[float, socket.socket]] = []
        self._endpoint = endpoint
        self._max_idle_s = max_idle_s
        self._ca_bundle = ca_bundle
        self._is_amazon = ca_bundle is None
        self._clock = clock
        self._connect_timeout_s = connect_timeout_s
        self._process = os.getpid()

    def __del__(self) -> None:
        self.close()

    def request(self, request: bytes, timeout_s: float) -> ServiceResponse:
        """Send a request once, and return its response.

        Raises NotSent, NoResponse if it does not arrive within `timeout_s`, and AwsError if it is too large.
        """
        connection = self._take() or self._open()
        is_kept = False
        try:
            response = _exchange(connection, request, timeout_s)
            if response.is_reusable and len(self._kept) < MAX_KEPT:
                self._kept.append((self._clock(), connection))
                is_kept = True
            return response
        finally:
            if not is_kept:
                connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        while kept := self._pop():
            kept[1].close()

    def _take(self) -> socket.socket | None:
        if self._process != os.getpid():  # the parent process uses the same sockets
            self._process = os.getpid()
            self.close()
        while kept := self._pop():
            used_at, connection = kept
            if 0 <= self._clock() - used_at <= self._max_idle_s and not _is_readable(connection):
                return connection
            connection.close()
        return None

    def _pop(self) -> tuple[float, socket.socket] | None:
        try:
            return self._kept.pop()
        except IndexError:  # perhaps another thread has just taken the last one
            return None

    def _open(self) -> socket.socket:
        if self._endpoint.scheme == "http":
            return self._connect(None)
        from mcp_roundtrip.aws import trust  # imports ssl, which local endpoints do not need

        if self._is_amazon and self._endpoint.host.endswith(trust.AMAZON_HOSTS):
            if context := trust.trust_amazon():
                with suppress(NoResponse):
                    return self._connect(context)
            self._is_amazon = False
        return self._connect(trust.trust_all(self._ca_bundle))

    def _connect(self, context: SSLContext | None) -> socket.socket:
        host = self._endpoint.host
        connection = None
        try:
            connection = socket.create_connection((host, self._endpoint.port), self._connect_timeout_s)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection if context is None else context.wrap_socket(connection, server_hostname=host)
        except OSError as error:
            if connection is not None:
                connection.close()
            raise _open_error(error) from error
        except UnicodeError as error:  # a label of over 63 characters
            raise NotSent("EndpointConnectionError") from error


def _open_error(error: OSError) -> AwsError:
    if isinstance(error, TimeoutError):
        return NotSent("timeout")
    # An SSLError needs no import of ssl to be recognized.
    is_tls = any(each.__name__ == "SSLError" for each in type(error).__mro__)
    return NoResponse("SSLError") if is_tls else NotSent("EndpointConnectionError")


def _exchange(connection: socket.socket, request: bytes, timeout_s: float) -> ServiceResponse:
    ends_at = time.monotonic() + timeout_s

    def receive() -> bytes:
        # A timeout of 0 would make the socket non-blocking.
        connection.settimeout(max(ends_at - time.monotonic(), 0.001))
        return connection.recv(_READ)

    try:
        connection.settimeout(timeout_s)
        connection.sendall(request)
        return read_response(receive)
    except TimeoutError as error:
        raise NoResponse("timeout") from error
    except (OSError, InvalidHttp) as error:
        raise NoResponse("ConnectionClosedError") from error
    except ResponseTooLarge as error:
        raise AwsError("response_too_large") from error


def _is_readable(connection: socket.socket) -> bool:
    """Return whether an idle connection has something to read: its end, or what belongs to no request."""
    waiting = poll()  # select() takes no descriptor over 1,023
    waiting.register(connection, POLLIN)
    return bool(waiting.poll(0))
