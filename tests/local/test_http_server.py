from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from mcp_roundtrip.local.http_server import HttpServer
from mcp_roundtrip.local.model import Reply, Request


def answer(request: Request) -> Reply:
    return Reply(200, (("x-method", request.method),), b"too large" if request.too_large else request.body)


@pytest.fixture
def server() -> Iterator[HttpServer]:
    server = HttpServer(answer, max_body=10).start()
    yield server
    server.close()


def exchange(server: HttpServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall(request)
        received = b""
        while part := connection.recv(65_536):
            received += part
    return received


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (b"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (
            b"POST / HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2;x=1\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n",
            b"abc",
        ),
        (b"POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\nabcdefghijk", b"too large"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nabcdefghijk\r\n0\r\n\r\n", b"too large"),
    ],
)
def test_a_body_is_read_in_either_form_up_to_the_limit(
    server: HttpServer, request_: bytes, body: bytes
) -> None:
    head, _, received = exchange(server, request_).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert received == body


@pytest.mark.parametrize(
    "header", [b"Content-Length: -1", b"Content-Length: x", b"Transfer-Encoding: chunked"]
)
def test_a_length_that_is_no_number_is_a_bad_request(server: HttpServer, header: bytes) -> None:
    assert exchange(server, b"POST / HTTP/1.1\r\n" + header + b"\r\n\r\nzz\r\n").startswith(b"HTTP/1.1 400 ")


def test_the_answer_to_head_has_no_body(server: HttpServer) -> None:
    received = exchange(server, b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert b"x-method: HEAD" in received
    assert received.endswith(b"\r\n\r\n")


def test_closing_hangs_up_and_frees_the_port() -> None:
    server = HttpServer(answer, max_body=10).start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.recv(10) == b"HTTP/1.1 2"
        server.close()
        server.close()
        while connection.recv(65_536):
            pass
    HttpServer(answer, port=server.port, max_body=10).close()


def test_only_this_computer_can_connect(server: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        assert connection.getpeername()[0] == "127.0.0.1"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=1)
