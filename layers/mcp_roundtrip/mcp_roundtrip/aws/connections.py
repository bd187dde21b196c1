"""Kept connections to one endpoint, with limits of time and size for each response."""

from __future__ import annotations

import io
import os
import re
import ssl
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, InvalidURL
from pathlib import Path
from select import POLLIN, poll
from socket import socket
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit
from weakref import finalize

from mcp_roundtrip.aws.client_interface import AwsError, NoResponse, NotSent, ServiceResponse

CONNECT_TIMEOUT_S: Final = 1.0

MAX_KEPT: Final = 10
"""Idle connections. More are open only while more threads wait for responses."""

MAX_RESPONSE: Final = 32 * 1024 * 1024
"""The limit in bytes of a response. The largest are pages of Query: 1 MB before JSON and Base64."""

AMAZON_HOSTS: Final = (".amazonaws.com", ".api.aws")
"""The ends of host names with certificates by Amazon."""

AMAZON_AUTHORITIES: Final = frozenset(
    {
        "8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e",  # Amazon Root CA 1
        "1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4",  # Amazon Root CA 2
        "18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4",  # Amazon Root CA 3
        "e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092",  # Amazon Root CA 4
        "568d6905a2c88708a4b3025190edcfedb1974a606a13c6e5290fcb2ae63edab5",  # Starfield Services Root G2
    }
)
"""The SHA-256 digests of the certificates of Amazon Trust Services (https://www.amazontrust.com/repository/)."""

_URL: Final = r"(?i)https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?(/[^?#\s]*)?"

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


def parse_endpoint(url: str) -> SplitResult | None:
    """Return the parts of a URL; None if it has userinfo, a query, a fragment or an invalid port."""
    if not re.fullmatch(_URL, url, re.ASCII):
        return None
    try:
        endpoint = urlsplit(url)
        return None if endpoint.port == 0 else endpoint
    except ValueError:  # an invalid IPv6 address, or a port over 65,535
        return None


class Connections:
    """Sends requests to an endpoint, over a kept connection if there is one. Thread-safe.

    A connection that was idle for over `max_idle_s`, that the endpoint closed, or that another process
    opened (before a fork) is replaced. `clock` returns epoch seconds: monotonic time may stop while the
    environment is frozen. `ca_bundle` is a file with the trusted authorities, if not the system's.
    """

    def __init__(
        self,
        endpoint: SplitResult,
        max_idle_s: float,
        clock: Callable[[], float] = time.time,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        ca_bundle: str | None = None,
    ) -> None:
        self._kept: list[tuple[float, HTTPConnection]] = []
        finalize(self, _close, self._kept)  # before the garbage collector finds open sockets
        self._endpoint = endpoint
        self._max_idle_s = max_idle_s
        self._ca_bundle = ca_bundle
        self._is_amazon = str(endpoint.hostname).endswith(AMAZON_HOSTS) and not ca_bundle
        self._clock = clock
        self._connect_timeout_s = connect_timeout_s
        self._process = os.getpid()

    def request(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        timeout_s: float,
    ) -> ServiceResponse:
        """Send a request once, and return its response. Redirects are not followed.

        Raises ValueError for an invalid header or target, NotSent, NoResponse without a response within
        `timeout_s`, and AwsError if it is too large.
        """
        connection = self._take() or self._open()
        is_kept = False
        try:
            response = _exchange(connection, method, target, dict(headers), body, timeout_s)
            if connection.sock is not None and len(self._kept) < MAX_KEPT:
                self._kept.append((self._clock(), connection))
                is_kept = True
            return response
        except TimeoutError as error:
            raise NoResponse("timeout") from error
        except (OSError, HTTPException) as error:
            raise NoResponse("ConnectionClosedError") from error
        finally:
            if not is_kept:
                connection.close()

    def close(self) -> None:
        _close(self._kept)

    def _take(self) -> HTTPConnection | None:
        if self._process != os.getpid():  # the parent process uses the same sockets
            self._process = os.getpid()
            self.close()
        while kept := _pop(self._kept):
            used_at, connection = kept
            if 0 <= self._clock() - used_at <= self._max_idle_s and not _is_readable(connection):
                return connection
            connection.close()
        return None

    def _open(self) -> HTTPConnection:
        """Open a connection. Raises NotSent, and NoResponse if TLS fails.

        Loading all 140 authorities of an operating system would take most of the time of a first call. Of
        these, Amazon's are tried first.
        """
        if self._endpoint.scheme == "http":
            return self._connect(None)
        if self._is_amazon and (context := amazon_tls_context()):
            with suppress(NoResponse):
                return self._connect(context)
            self._is_amazon = False
        return self._connect(tls_context(self._ca_bundle))

    def _connect(self, context: ssl.SSLContext | None) -> HTTPConnection:
        host, timeout_s = self._endpoint.netloc, self._connect_timeout_s
        if context is None:
            connection = HTTPConnection(host, timeout=timeout_s)
        else:
            connection = HTTPSConnection(host, timeout=timeout_s, context=context)
        connection.auto_open = 0  # a connection that was closed must not be replaced unnoticed
        connection.response_class = _LimitedResponse
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:  # UnicodeError: a label of over 63 characters
            if isinstance(error, ssl.SSLError):
                raise NoResponse("SSLError") from error
            code = "timeout" if isinstance(error, TimeoutError) else "EndpointConnectionError"
            raise NotSent(code) from error
        return connection


def _pop(kept: list[tuple[float, HTTPConnection]]) -> tuple[float, HTTPConnection] | None:
    try:
        return kept.pop()
    except IndexError:  # perhaps another thread has just taken the last one
        return None


def _close(kept: list[tuple[float, HTTPConnection]]) -> None:
    while last := _pop(kept):
        last[1].close()


@cache
def tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    """Trust the authorities in a file, or the operating system's. Raises AwsError for an unreadable file."""
    try:
        context = ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:  # also ssl.SSLError
        raise AwsError("invalid_ca_bundle") from error
    # Python 3.13 began to refuse authorities that other clients accept, such as those of some proxies.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


@cache
def amazon_tls_context() -> ssl.SSLContext | None:
    """Trust only Amazon's authorities. None if the operating system's file has none of them."""
    bundle = ssl.get_default_verify_paths().cafile
    if bundle is None:
        return None
    trusted = b""
    for text in Path(bundle).read_text("ascii", "replace").split(_END):
        try:
            certificate = b64decode(text.partition(_BEGIN)[2])
        except ValueError:
            continue
        if sha256(certificate).hexdigest() in AMAZON_AUTHORITIES:
            trusted += certificate
    return ssl.create_default_context(cadata=trusted) if trusted else None


def _is_readable(connection: HTTPConnection) -> bool:
    """Return whether an idle connection has its end, or bytes of no request, to read."""
    waiting = poll()  # select() takes no descriptor over 1,023
    waiting.register(connection.sock, POLLIN)
    return bool(waiting.poll(0))


def _exchange(
    connection: HTTPConnection,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes | None,
    timeout_s: float,
) -> ServiceResponse:
    """Send a request and read the response. Close a connection that cannot be used again."""
    ends_at = time.monotonic() + timeout_s
    connection.sock.settimeout(timeout_s)
    try:
        connection.request(method, target, body, headers)
    except (ValueError, InvalidURL):  # their messages quote credentials
        raise ValueError("a header or the target is not valid") from None
    connection.sock.settimeout(_remaining_s(ends_at))
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
        # http.client takes the end of the stream for the end of the headers, and takes interim responses
        # other than 100 Continue for final ones.
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
