"""HTTP/1.1 on 127.0.0.1 before a function from request to reply: all sockets of `local`."""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from mcp_roundtrip.local.model import Reply, Request

_DISCARDED = 64 * 1024 * 1024
"""How much of an oversized body is read: a client that is cut off while it sends does not see its answer."""


class HttpServer:
    """Listens from now on, answers with `respond` from `start` until `close`; a thread for each connection.

    `port` 0 picks a free one; a body over `max_body` bytes is withheld and flagged. Raises OSError if the
    port is taken.
    """

    def __init__(self, respond: Callable[[Request], Reply], *, port: int = 0, max_body: int) -> None:
        self._server = _Server(respond, port, max_body)
        self._closing = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening and hang up, at once: a connection wakes the accepting thread, nothing polls."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            if self._thread.is_alive():
                with socket.create_connection(("127.0.0.1", self.port)):
                    self._thread.join()
            self._server.server_close()
            self._server.hang_up()

    def _run(self) -> None:
        while not self._closing:
            self._server.handle_request()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, respond: Callable[[Request], Reply], port: int, max_body: int) -> None:
        self.respond = respond
        self.max_body = max_body
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own looks the address up in the DNS, which can take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for connection in tuple(self._connections):
            with suppress(OSError):  # it has just ended by itself
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that went away, or a runtime that was killed while it waited, is no news.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024  # head and body leave in one segment

    def _handle(self) -> None:
        try:
            body, too_large = self._read_body()
        except ValueError as error:
            self.close_connection = True
            self._send(Reply(400, body=str(error).encode()))
            return
        request = Request(
            self.command,
            self.path,
            tuple(self.headers.items()),
            body,
            too_large,
            self.request_version,
            str(self.client_address[0]),
        )
        self._send(self.server.respond(request))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _handle

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        if reply.status >= 200 and reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(reply.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD" and reply.status not in (204, 304):
            self.wfile.write(reply.body)

    def _read_body(self) -> tuple[bytes, bool]:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunked()
        length = _size(self.headers.get("Content-Length", "0"), 10)
        if length <= self.server.max_body:
            return self.rfile.read(length), False
        self._discard(length)
        return b"", True

    def _read_chunked(self) -> tuple[bytes, bool]:
        body = bytearray()
        while size := _size(self.rfile.readline(1024).partition(b";")[0].decode("latin-1").strip(), 16):
            if len(body) + size > self.server.max_body:
                self._discard(size)
                return b"", True
            body += self.rfile.read(size)
            self.rfile.readline(3)
        while self.rfile.readline(65_537).strip():  # trailer fields
            pass
        return bytes(body), False

    def _discard(self, length: int) -> None:
        self.close_connection = True
        left = min(length, _DISCARDED)
        while left and (part := self.rfile.read(min(left, 65_536))):
            left -= len(part)

    def version_string(self) -> str:
        return "mcp-roundtrip-local"

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the base class's name
        """Silent: whoever serves requests writes its own log."""


def _size(digits: str, base: int) -> int:
    if not digits.isascii() or not digits.isalnum():
        raise ValueError("the length of the body is not a number")
    return int(digits, base)
