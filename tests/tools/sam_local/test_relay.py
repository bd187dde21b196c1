"""Connections in a Docker network reach servers of this computer. Without Docker: both sides run here."""

import os
import socket
import socketserver
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip_tools.sam_local.relay import CHUNK, Relay, connect_here

PORT = 80


class Echo(socketserver.BaseRequestHandler):
    """Returns what it gets, after the end of it."""

    request: socket.socket

    def handle(self):
        parts = []
        while data := self.request.recv(CHUNK):
            parts.append(data)
        self.request.sendall(b"".join(parts))


class Network:
    """A network with a relay. `client` is a socket of a container that is connected to the host."""

    def __init__(self, connect):
        (from_container, container_sink), (from_host, host_sink) = file_pipe(), file_pipe()
        self._sources, self._sinks = (from_container, from_host), (container_sink, host_sink)
        self._container = Relay(from_host, container_sink)
        self._host = Relay(from_container, host_sink, connect)
        self.threads = [threading.Thread(target=each.run) for each in (self._container, self._host)]
        for thread in self.threads:
            thread.start()
        self._numbers = count(1)

    def client(self):
        client, accepted = socket.socketpair()
        self._container.add(next(self._numbers), PORT, accepted)
        return client

    def end(self):
        for file in self._sinks:
            file.close()
        for thread in self.threads:
            thread.join()
        for source in self._sources:
            source.close()


def file_pipe():
    reader, writer = os.pipe()
    return os.fdopen(reader, "rb"), os.fdopen(writer, "wb")


@pytest.fixture(scope="module")
def network():
    with serving(Echo) as port:
        network = Network(lambda _: connect_here(port))
        yield network
        network.end()


@contextmanager
def serving(handler):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def echoed(network, data):
    with network.client() as client:
        sender = threading.Thread(target=send, args=[client, data])
        sender.start()
        received = b"".join(iter(lambda: client.recv(CHUNK), b""))
        sender.join()
    return received


def send(client, data):
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)


@given(st.binary(min_size=1, max_size=2_000))
def test_a_connection_carries_the_same_bytes_in_both_directions(network, data):
    assert echoed(network, data) == data


def test_many_connections_at_once_do_not_mix(network):
    contents = [bytes([number]) * (3 * CHUNK + number) for number in range(20)]
    with ThreadPoolExecutor(len(contents)) as pool:
        assert list(pool.map(lambda data: echoed(network, data), contents)) == contents


def test_a_connection_ends_if_the_server_has_stopped():
    def refuse(port: int) -> socket.socket:
        raise ConnectionRefusedError

    network = Network(refuse)
    with network.client() as client:
        client.sendall(b"hello")
        assert client.recv(1) == b""
    network.end()
