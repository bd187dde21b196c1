"""An HTTP/1.1 server on 127.0.0.1: h11 parses and frames, a thread moves the bytes of each connection."""

import errno
import socket
import socketserver
import sys
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from email.utils import formatdate
from http.client import responses
from typing import Any, Self

import h11

from mcp_roundtrip_tools.run.http.browser_protection import LOCAL_NAMES, refuse_other_users, refuse_wrong_host
from mcp_roundtrip_tools.run.http.messages import Request, Respond, Response

MAX_BODY = 64 * 1024 * 1024
"""The largest request body in bytes, unless a server has a limit of its own."""

_MAX_HEAD = 1024 * 1024 + 64 * 1024
"""The largest request line and headers in bytes: a runtime sends an exception in a header of up to 1 MiB."""

_DRAINED = 64 * 1024 * 1024
"""The bytes of a refused body that are read. A client that is cut off while it sends sees no response."""

_DRAIN_PAUSE_S = 2.0
"""The seconds without data after which the connection of a refused body is closed."""

_READ = 256 * 1024
_LAST_PORT = 65_535

_TEXT = (("content-type", "text/plain; charset=utf-8"),)


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
        respond: Respond,
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
        self.port = int(self.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"

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


def listen_near(respond: Respond, port: int, max_body: int) -> HttpServer:
    """Return a server at this port, or at a free one if the port is in use, 0 or above the last one."""
    try:
        return HttpServer(respond, port=port if port <= _LAST_PORT else 0, max_body=max_body)
    except OSError as error:
        if error.errno != errno.EADDRINUSE or port == 0:
            raise
        return HttpServer(respond, port=0, max_body=max_body)


class _Handler(socketserver.BaseRequestHandler):
    server: HttpServer
    request: socket.socket

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)
        self._refusal = refuse_other_users(self.client_address, self.request.getsockname())
        while self._exchange():
            self._http.start_next_cycle()

    def _exchange(self) -> bool:
        """Answer one request; return whether the connection can be reused."""
        try:
            head = self._next()
            if not isinstance(head, h11.Request):
                return False
            request = self._read(head)
        except h11.RemoteProtocolError as error:
            self._refuse(str(error))
            return False
        wrong_host = refuse_wrong_host(request, self.server.port, self.server.names)
        response = self._refusal or wrong_host or self.server.respond(request)
        try:
            self._send(response, request.method, close=request.too_large)
        except (h11.LocalProtocolError, UnicodeEncodeError):  # an invalid header; nothing was sent yet
            self._send(Response(500), request.method, close=request.too_large)
        if request.too_large:
            self._drain()
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def _next(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[], reason="Continue"))
            self._http.receive_data(self.request.recv(_READ))
        return event

    def _read(self, head: h11.Request) -> Request:
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers)
        if head.method == b"CONNECT":  # h11 would switch protocols with the response
            raise h11.RemoteProtocolError("CONNECT is not supported: send the request itself")
        names = [name for name, _ in headers]
        if "transfer-encoding" in names and ("content-length" in names or head.http_version < b"1.1"):
            # Request smuggling: h11 uses the encoding (RFC 9112 §6.3), a proxy may use the length.
            raise h11.RemoteProtocolError("Transfer-Encoding needs HTTP/1.1 and excludes Content-Length")
        target = head.target.decode("latin-1")
        if not target.startswith(("/", "*")):  # a whole URL, whose authority would replace the Host header
            raise h11.RemoteProtocolError("the target must be a path: this server is no proxy")
        body, too_large = self._read_body(dict(headers))
        return Request(
            head.method.decode("latin-1"),
            target,
            headers,
            body,
            too_large,
            f"HTTP/{head.http_version.decode()}",
            str(self.client_address[0]),
        )

    def _read_body(self, headers: Mapping[str, str]) -> tuple[bytes, bool]:
        limit = self.server.max_body
        if int(headers.get("content-length", "0")) > limit:
            return b"", True
        body = bytearray()
        while isinstance(event := self._next(), h11.Data):
            body += event.data
            if len(body) > limit:
                return b"", True
        return bytes(body), False

    def _refuse(self, reason: str) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(Response(400, _TEXT, f"{reason}\n".encode()), "", close=True)
            self._drain()

    def _send(self, response: Response, method: str, *, close: bool) -> None:
        headers: list[tuple[str, str]] = [*response.headers, ("date", formatdate(usegmt=True))]
        # The response to HEAD may state the length that the response to GET would have.
        has_length = method == "HEAD" and any(name == "content-length" for name, _ in response.headers)
        if response.status not in (204, 304) and not has_length:
            headers.append(("content-length", str(len(response.body))))
        if close:
            headers.append(("connection", "close"))
        has_body = response.body and method != "HEAD" and response.status not in (204, 304)
        self._write(
            h11.Response(
                status_code=response.status,
                headers=[(name.encode(), value.strip(" \t").encode("latin-1")) for name, value in headers],
                reason=responses.get(response.status, ""),
            ),
            *([h11.Data(data=response.body)] if has_body else []),
            h11.EndOfMessage(),
        )

    def _write(self, *events: h11.Event) -> None:
        # One segment carries headers and body.
        self.request.sendall(b"".join(self._http.send(event) or b"" for event in events))

    def _drain(self) -> None:
        self.request.settimeout(_DRAIN_PAUSE_S)
        left = _DRAINED
        with suppress(OSError):  # no more data in time, or the client has disconnected
            self.request.shutdown(socket.SHUT_WR)
            while left > 0 and (part := self.request.recv(_READ)):
                left -= len(part)
