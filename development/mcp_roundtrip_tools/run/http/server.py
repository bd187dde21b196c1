"""An HTTP/1.1 server on 127.0.0.1 that calls a function for each request, in a thread for each connection."""

from __future__ import annotations

import errno
import http.client
import re
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self

from mcp_roundtrip_tools.run.http.browser_protection import LOCAL_NAMES, refuse_other_users, refuse_wrong_host
from mcp_roundtrip_tools.run.http.messages import Request, Response, error_response

MAX_BODY = 64 * 1024 * 1024
"""The largest request body in bytes, unless a server has a limit of its own."""

# Lambda's runtime client sends an exception's text in a header of up to 1 MiB, besides in the body.
http.client._MAXLINE = 1024 * 1024 + 256  # type: ignore[attr-defined]  # its servers read headers with it

_READ = 256 * 1024
_LAST_PORT = 65_535

_ONCE: Final = ("host", "content-length", "transfer-encoding")
"""Headers that a proxy may read differently if they occur twice (RFC 9112 §3.2, §6.3)."""

_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_MAX_TRAILERS: Final = 100

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[^\0\r\n\u0100-\U0010ffff]*")


class HttpServer(socketserver.ThreadingTCPServer):
    """Listen at once; answer requests with `respond` from `start` until `close`.

    A request whose Host is none of `names` gets 421 (see `browser_protection`), and one of another user of
    this computer 403. `port` 0 selects a free port. A request with a body over `max_body`
    bytes reaches `respond` without it, marked `too_large`. Raises OSError if the port is in use.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        respond: Callable[[Request], Response],
        *,
        port: int = 0,
        max_body: int = MAX_BODY,
        names: Collection[str] = LOCAL_NAMES,
    ) -> None:
        self.respond = respond
        self.max_body = max_body
        self.names = names
        self._connections: set[socket.socket] = set()
        self._closing = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening and close every connection."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            if self._thread.is_alive():
                # A connection wakes the accepting thread, so it does not need to poll.
                with socket.create_connection(("127.0.0.1", self.port)):
                    self._thread.join()
            self.server_close()
            for connection in tuple(self._connections):
                with suppress(OSError):  # the client has closed it already
                    connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._closing:
            self.handle_request()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that disconnects, or a runtime that is killed while it waits, is expected.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def listen_near(respond: Callable[[Request], Response], port: int, max_body: int) -> HttpServer:
    """Return a server at this port, or at a free one if the port is in use, 0 or above the last one."""
    try:
        return HttpServer(respond, port=port if port <= _LAST_PORT else 0, max_body=max_body)
    except OSError as error:
        if error.errno != errno.EADDRINUSE or port == 0:
            raise
        return HttpServer(respond, port=0, max_body=max_body)


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one segment carries headers and body

    def handle(self) -> None:
        self._refusal = refuse_other_users(self.client_address, self.connection.getsockname())
        super().handle()

    def handle_expect_100(self) -> bool:
        """Ask for the body at once: responses are buffered."""
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def _exchange(self) -> None:
        """Answer one request."""
        try:
            request = self._read()
        except ValueError as error:
            self.close_connection = True
            self._send(error_response(400, str(error)))
            return
        wrong_host = refuse_wrong_host(request, self.server.port, self.server.names)
        self._send(self._refusal or wrong_host or self.server.respond(request))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _exchange

    def _read(self) -> Request:
        """Return the request. Raises ValueError for one that HTTP/1.1 does not allow."""
        target = self.requestline.split()[1]  # `path` has one slash for several at its beginning
        if not target.isascii() or not target.startswith(("/", "*")):
            # A whole URL's authority would replace the Host header.
            raise ValueError("the target must be a path in ASCII: this server is no proxy")
        headers = self._read_headers()
        length = self.headers.get("content-length", "0").strip(" \t")
        if "transfer-encoding" in self.headers:
            if "content-length" in self.headers or self.request_version != "HTTP/1.1":
                # Request smuggling: a proxy may use the length (RFC 9112 §6.3).
                raise ValueError("Transfer-Encoding needs HTTP/1.1 and excludes Content-Length")
            body = self._read_chunks()
        elif length.isascii() and length.isdecimal():
            body = self._read_bytes(int(length))
        else:
            raise ValueError("Content-Length must be a number")
        too_large = len(body) > self.server.max_body
        return Request(
            self.command,
            target,
            headers,
            b"" if too_large else body,
            too_large,
            self.request_version,
            str(self.client_address[0]),
        )

    def _read_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers with names in lower case. Raises ValueError for lines that are no headers."""
        headers = tuple((name.lower(), value.strip(" \t")) for name, value in self.headers.items())
        # The standard library's parser stops at such a line, and keeps the line ends of a folded value.
        if self.headers.defects or not all(_HEADER_VALUE.fullmatch(value) for _, value in headers):
            raise ValueError("a header line is invalid")
        for name in _ONCE:
            if sum(1 for each, _ in headers if each == name) > 1:
                raise ValueError(f"more than one {name} header")
        options = (self.headers.get("connection") or "").lower().replace(" ", "").split(",")
        if "close" in options or self.request_version != "HTTP/1.1":
            self.close_connection = True
        return headers

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := self._read_chunk_size():
            body += self._read_bytes(size)
            del body[self.server.max_body + 1 :]
            if self._read_line():
                raise ValueError("a chunk is longer than its size")
        for _ in range(_MAX_TRAILERS):
            if not self._read_line():
                return bytes(body)
        raise ValueError("too many trailers")

    def _read_chunk_size(self) -> int:
        size = self._read_line().partition(b";")[0].strip(b" \t")
        if not _CHUNK_SIZE.fullmatch(size):
            raise ValueError("the size of a chunk must be a hexadecimal number")
        return int(size, 16)

    def _read_line(self) -> bytes:
        line = self.rfile.readline(_READ)
        if not line.endswith(b"\n"):
            raise ValueError("the body ended early")
        return line.rstrip(b"\r\n")

    def _read_bytes(self, length: int) -> bytes:
        """Read this many bytes; return at most one more than the limit. Raises ValueError at an early end."""
        body = bytearray()
        while length > 0:
            part = self.rfile.read(min(length, _READ))
            if not part:
                raise ValueError("the body ended early")
            length -= len(part)
            if len(body) <= self.server.max_body:
                body += part
        return bytes(body)

    def _send(self, response: Response) -> None:
        if not _is_valid(response):
            response = Response(500)
        has_body = response.status not in (204, 304)
        # The response to HEAD may state the length that the response to GET would have.
        is_head = self.command == "HEAD"
        has_length = is_head and any(name == "content-length" for name, _ in response.headers)
        self.send_response_only(response.status)
        for name, value in (*response.headers, ("date", self.date_time_string())):
            self.send_header(name, value)
        if has_body and not has_length:
            self.send_header("content-length", str(len(response.body)))
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if has_body and not is_head:
            self.wfile.write(response.body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the standard library's name
        """Write nothing: the recorder has the requests."""


def _is_valid(response: Response) -> bool:
    """Return whether HTTP allows the status and the headers: a line end in one would add headers."""
    return 200 <= response.status <= 999 and all(
        _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value) for name, value in response.headers
    )
