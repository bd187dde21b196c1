"""A server on raw sockets that checks requests strictly, and answers each as a script says.

Real HTTP servers cannot break off a response, leave it half finished, or answer with what is no HTTP.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext, SSLError
from typing import Any

import h11

Reply = Callable[["Connected"], bool]
"""Answers a request. Returns whether the connection stays open."""


@dataclass(frozen=True)
class ReceivedRequest:
    """A request. `connection` numbers the connections, beginning with 1."""

    connection: int
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


@dataclass
class Connected:
    socket: socket.socket
    server: ScriptedServer


def send(data: bytes, *, close: bool = False) -> Reply:
    """Send these bytes, and close the connection if `close`."""

    def reply(connected: Connected) -> bool:
        connected.socket.sendall(data)
        return not close

    return reply


def reset(connected: Connected) -> bool:
    """Send an RST, as a host does that was restarted."""
    linger = struct.pack("ii", 1, 0)
    connected.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    return False


def hang(data: bytes = b"") -> Reply:
    """Send these bytes, and nothing more until the server is closed."""

    def reply(connected: Connected) -> bool:
        connected.socket.sendall(data)
        connected.server.over.wait()
        return False

    return reply


def respond(status: int, body: bytes | dict[str, Any], **headers: str) -> Reply:
    """Send a response. Underscores in the names of headers are hyphens."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n{given}\r\n"
    return send(head.encode() + content)


def message(number: int, **members: Any) -> Reply:
    """Send the JSON-RPC message to the request of this number."""
    return respond(200, {"jsonrpc": "2.0", "id": number, **members}, Content_Type="application/json")


def respond_and_close(closed: threading.Event) -> Reply:
    """Send an empty object, and close the connection although the response does not say so."""

    def reply(connected: Connected) -> bool:
        respond(200, {})(connected)
        connected.socket.shutdown(socket.SHUT_RDWR)
        closed.set()
        return False

    return reply


@dataclass
class ScriptedServer:
    """Answers one request with each element of `script`; without any left, with an empty JSON object.

    A request that is not valid HTTP/1.1 is in `invalid`.
    """

    script: list[Reply] = field(default_factory=list)
    tls: SSLContext | None = None
    requests: list[ReceivedRequest] = field(default_factory=list)
    invalid: list[Exception] = field(default_factory=list)
    connections: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.serve(socket.create_server(("127.0.0.1", 0)))
        scheme = "http" if self.tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._listening.getsockname()[1]}"

    @property
    def connections_used(self) -> list[int]:
        """The connection of each request, from 1."""
        return [request.connection for request in self.requests]

    def serve(self, listening: socket.socket) -> None:
        """Accept the connections of a socket."""
        self._listening = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def close(self) -> None:
        self.over.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept()
        self._listening.close()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = listening.accept()
                self.connections += 1
                arguments = (accepted, self.connections)
                threading.Thread(target=self._serve, args=arguments, daemon=True).start()

    def _serve(self, accepted: socket.socket, number: int) -> None:
        with suppress(OSError, SSLError), accepted:
            if self.tls is not None:
                accepted = self.tls.wrap_socket(accepted, server_side=True)
            http = h11.Connection(h11.SERVER)
            with accepted:
                while self._exchange(accepted, http, number):
                    http = h11.Connection(h11.SERVER)

    def _exchange(self, accepted: socket.socket, http: h11.Connection, number: int) -> bool:
        body, head = b"", None
        while not isinstance(event := self._next_event(accepted, http), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.Request):
                head = event
            else:
                return False
        assert head is not None
        headers = tuple((name.decode(), value.decode("latin-1")) for name, value in head.headers)
        self.requests.append(
            ReceivedRequest(number, head.method.decode(), head.target.decode(), headers, body)
        )
        reply = self.script.pop(0) if self.script else respond(200, {})
        return reply(Connected(accepted, self))

    def _next_event(self, accepted: socket.socket, http: h11.Connection) -> Any:
        try:
            while (event := http.next_event()) is h11.NEED_DATA:
                http.receive_data(accepted.recv(65_536))
        except h11.RemoteProtocolError as error:
            self.invalid.append(error)
            return None
        return event


@contextmanager
def scripted(*script: Reply, tls: SSLContext | None = None) -> Iterator[ScriptedServer]:
    """Run a server until the block ends. Raises AssertionError if a request was not valid."""
    server = ScriptedServer(list(script), tls)
    try:
        yield server
    finally:
        server.close()
    assert server.invalid == []
