"""Kept connections to one endpoint, over TCP or TLS."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from select import POLLIN, poll
from typing import TYPE_CHECKING, Final

from mcp_roundtrip.aws.client_interface import NoResponse
from mcp_roundtrip.aws.endpoints import ServiceEndpoint

if TYPE_CHECKING:
    from http.client import HTTPConnection
    from ssl import SSLContext

    from mcp_roundtrip.aws.services import ServiceResponse

CONNECT_TIMEOUT_S: Final = 1.0

MAX_KEPT: Final = 10
"""Idle connections. More are open only while more threads wait for responses."""


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
        self._kept: list[tuple[float, HTTPConnection]] = []
        self._endpoint = endpoint
        self._max_idle_s = max_idle_s
        self._ca_bundle = ca_bundle
        self._is_amazon = ca_bundle is None
        self._clock = clock
        self._connect_timeout_s = connect_timeout_s
        self._process = os.getpid()

    def __del__(self) -> None:
        self.close()

    def request(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        timeout_s: float,
    ) -> ServiceResponse:
        """Send a request once, and return its response. Redirects are not followed.

        Raises ValueError for an invalid header, NotSent, NoResponse if the response does not arrive within
        `timeout_s`, and AwsError if it is too large.
        """
        from mcp_roundtrip.aws.http_connection import exchange  # imports http.client

        connection = self._take() or self._open()
        is_kept = False
        try:
            response = exchange(connection, method, target, headers, body, timeout_s)
            if connection.sock is not None and len(self._kept) < MAX_KEPT:
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

    def _take(self) -> HTTPConnection | None:
        if self._process != os.getpid():  # the parent process uses the same sockets
            self._process = os.getpid()
            self.close()
        while kept := self._pop():
            used_at, connection = kept
            if 0 <= self._clock() - used_at <= self._max_idle_s and not _is_readable(connection):
                return connection
            connection.close()
        return None

    def _pop(self) -> tuple[float, HTTPConnection] | None:
        try:
            return self._kept.pop()
        except IndexError:  # perhaps another thread has just taken the last one
            return None

    def _open(self) -> HTTPConnection:
        if self._endpoint.scheme == "http":
            return self._connect(None)
        from mcp_roundtrip.aws import trust  # imports ssl

        if self._is_amazon and self._endpoint.host.endswith(trust.AMAZON_HOSTS):
            if context := trust.trust_amazon():
                with suppress(NoResponse):
                    return self._connect(context)
            self._is_amazon = False
        return self._connect(trust.trust_all(self._ca_bundle))

    def _connect(self, context: SSLContext | None) -> HTTPConnection:
        from mcp_roundtrip.aws.http_connection import connect  # imports http.client

        return connect(self._endpoint, context, self._connect_timeout_s)


def _is_readable(connection: HTTPConnection) -> bool:
    """Return whether an idle connection has something to read: its end, or what belongs to no request."""
    waiting = poll()  # select() takes no descriptor over 1,023
    waiting.register(connection.sock, POLLIN)
    return bool(waiting.poll(0))
