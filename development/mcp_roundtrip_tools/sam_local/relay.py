"""Lead connections from a Docker network to servers on 127.0.0.1 of this computer.

On Linux, a container cannot reach a server that listens on 127.0.0.1 of the host. So this module runs on
both sides: as a program in a container, which listens in the network, and in the process that started the
container. Connections are multiplexed over standard input and output of that program.

A frame has a header (connection, port, length) and data. A frame without data ends one direction of a
connection. The first frame says that the program listens.

The program is passed to ``python3 -c`` as text, so this module imports nothing of the package.
"""

import itertools
import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

HEADER = struct.Struct("!IHI")
CHUNK = 64 * 1024
LISTENING = HEADER.pack(0, 0, 0)


class Connection:
    """A socket whose two directions end independently."""

    def __init__(self, number: int, port: int, peer: socket.socket) -> None:
        self.number = number
        self.port = port
        self.peer = peer
        self._open_directions = 2
        self._lock = threading.Lock()

    def end_direction(self) -> bool:
        """End one direction; return whether both have ended, and the socket is closed."""
        with self._lock:
            self._open_directions -= 1
            if self._open_directions > 0:
                return False
        self.peer.close()
        return True


class Relay:
    """Moves data between frames and sockets. `connect` opens a connection that a frame begins."""

    def __init__(
        self, source: BinaryIO, sink: BinaryIO, connect: Callable[[int], socket.socket] | None = None
    ) -> None:
        self._source = source
        self._sink = sink
        self._connect = connect
        self._connections: dict[int, Connection] = {}
        self._writing = threading.Lock()

    def run(self) -> None:
        """Copy frames to sockets until the other side ends."""
        while len(header := self._source.read(HEADER.size)) == HEADER.size:
            number, port, length = HEADER.unpack(header)
            data = self._source.read(length)
            connection = self._connections.get(number) or self._begin(number, port, data)
            if connection is not None:
                self._receive(connection, data)

    def add(self, number: int, port: int, peer: socket.socket) -> Connection:
        """Copy a socket to frames from now on."""
        connection = self._connections[number] = Connection(number, port, peer)
        threading.Thread(target=self._copy, args=[connection], daemon=True).start()
        return connection

    def write(self, frame: bytes) -> None:
        """Write one frame. Does nothing if the other side has ended."""
        with self._writing, suppress(OSError, ValueError):
            self._sink.write(frame)
            self._sink.flush()

    def _begin(self, number: int, port: int, data: bytes) -> Connection | None:
        if self._connect is None or not data:
            return None
        try:
            return self.add(number, port, self._connect(port))
        except OSError:  # the server has stopped
            self.write(HEADER.pack(number, port, 0))
            return None

    def _receive(self, connection: Connection, data: bytes) -> None:
        if data:
            with suppress(OSError):  # the peer has hung up: its direction ends in _copy
                connection.peer.sendall(data)
            return
        with suppress(OSError):
            connection.peer.shutdown(socket.SHUT_WR)
        self._end(connection)

    def _copy(self, connection: Connection) -> None:
        with suppress(OSError):
            while data := connection.peer.recv(CHUNK):
                self.write(HEADER.pack(connection.number, connection.port, len(data)) + data)
        self.write(HEADER.pack(connection.number, connection.port, 0))
        self._end(connection)

    def _end(self, connection: Connection) -> None:
        if connection.end_direction():
            self._connections.pop(connection.number, None)


def connect_here(port: int) -> socket.socket:
    """Connect to a server of this computer."""
    return socket.create_connection(("127.0.0.1", port))


def listen_in_container(ports: list[int]) -> None:
    """Run in the container: accept connections for these ports until standard input ends."""
    relay, numbers = Relay(sys.stdin.buffer, sys.stdout.buffer), itertools.count(1)

    def accept(port: int, server: socket.socket) -> None:
        while True:
            relay.add(next(numbers), port, server.accept()[0])

    for port in ports:
        server = socket.create_server(("", port))
        threading.Thread(target=accept, args=[port, server], daemon=True).start()
    relay.write(LISTENING)
    relay.run()
    os._exit(0)  # the threads wait for connections


if __name__ == "__main__":
    listen_in_container([int(port) for port in sys.argv[1:]])
