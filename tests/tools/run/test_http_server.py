import socket

import pytest

from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.sam_applications import wait_until


def answer(request):
    body = b"too large" if request.too_large else request.body
    return Response(200, (("x-method", request.method),), body)


@pytest.fixture
def server():
    server = HttpServer(answer, max_body=10).start()
    yield server
    server.close()


def exchange(server, request, body=b"", *, host=None):
    """Return the reply to a request. `@` is replaced by the server's authority, and a Host field is added."""
    line, _, headers = request.replace("@", f"127.0.0.1:{server.port}").partition("\n")
    fields = [line, *headers.split("\n"), f"Host: {host or f'127.0.0.1:{server.port}'}"]
    return raw(server, "\r\n".join([*filter(None, fields), "", ""]).encode() + body)


def raw(server, request):
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while part := connection.recv(65_536):
            received += part
    return received.decode("latin-1")


CHUNKED = "POST / HTTP/1.1\nTransfer-Encoding: chunked"


@pytest.mark.parametrize(
    ("request_", "sent", "body"),
    [
        ("POST / HTTP/1.0\nContent-Length: 3", b"abc", "abc"),
        (CHUNKED, b"2;x=1\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n", "abc"),
        ("POST / HTTP/1.1\nContent-Length: 11", b"abcdefghijk", "too large"),
        (CHUNKED, b"b\r\nabcdefghijk\r\n0\r\n\r\n", "too large"),
        ("POST / HTTP/1.1\nContent-Length: 1000000000000", b"abc", "too large"),
    ],
)
def test_a_body_with_length_or_in_chunks_is_read_up_to_the_limit(server, request_, sent, body):
    head, _, received = exchange(server, request_, sent).partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 ")
    assert received == body


BAD = {
    "a length and chunks": (f"{CHUNKED}\nContent-Length: 3", b"3\r\nabc\r\n0\r\n\r\n"),
    "chunks before HTTP/1.1": (CHUNKED.replace("1.1", "1.0"), b"3\r\nabc\r\n0\r\n\r\n"),
    "what h11 refuses in a body": (CHUNKED, b"zz\r\n"),
    "what h11 refuses in a head": ("GET / HTTP/1.1\nHost: @", b""),
    "a body that ends early": ("POST / HTTP/1.1\nContent-Length: 9", b"abc"),
    "a tunnel through a proxy": ("CONNECT @ HTTP/1.1", b""),
    "a URL for a proxy": ("GET http://@/ HTTP/1.1", b""),
    "an authority": ("GET evil.example:80 HTTP/1.1", b""),
}


@pytest.mark.parametrize(("request_", "sent"), BAD.values(), ids=BAD)
def test_an_ambiguous_message_and_one_for_a_proxy_are_bad_requests(server, request_, sent):
    received = exchange(server, request_, sent)
    assert received.startswith("HTTP/1.1 400 ")
    assert "connection: close" in received.lower()


def test_a_request_without_a_host_is_a_bad_request(server):
    assert raw(server, b"GET / HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 400 ")
    assert raw(server, b"GET / HTTP/1.0\r\n\r\n").startswith("HTTP/1.1 200 ")


def test_a_host_that_has_no_name_of_this_computer_is_misdirected(server):
    for host in ("127.0.0.1:{}", "localhost:{}", "LocalHost:{}", "[::1]:{}"):
        received = exchange(server, "GET / HTTP/1.1", host=host.format(server.port))
        assert received.startswith("HTTP/1.1 200 "), host
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "[::2]:{}"):
        received = exchange(server, "GET / HTTP/1.1", host=host.format(server.port))
        assert received.startswith("HTTP/1.1 421 "), host
        assert f"localhost:{server.port}" in received, host


def test_a_target_and_a_header_reach_the_function_as_they_were_sent():
    requests = []
    server = HttpServer(lambda request: requests.append(request) or Response(200), max_body=10).start()
    exchange(server, "GET //x//y HTTP/1.1\nX-A: 1 \nx-a: 2")
    server.close()
    assert requests[0].target == "//x//y"
    assert requests[0].headers[:2] == (("x-a", "1"), ("x-a", "2"))


@pytest.mark.parametrize(
    ("status", "header"),
    [
        (200, ("bad name", "x")),
        (200, ("x", "a\r\nset-cookie: b")),
        (200, ("x", "\N{EURO SIGN}")),
        (99, ("x", "a")),
    ],
)
def test_an_invalid_response_is_a_server_error(status, header):
    server = HttpServer(lambda request: Response(status, (header,), b"x"), max_body=10).start()
    received = exchange(server, "GET / HTTP/1.1")
    assert received.startswith("HTTP/1.1 500 ")
    assert "set-cookie" not in received
    server.close()


def test_a_client_that_disconnects_while_it_sends_is_no_error(capsys):
    server = HttpServer(answer, max_body=10).start()
    head = f"POST / HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Length: 9\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall(head.encode())
    exchange(server, "GET / HTTP/1.1")
    wait_until(lambda: not server._connections)
    server.close()
    assert capsys.readouterr().err == ""


def test_closing_ends_connections_and_frees_the_port():
    server = HttpServer(answer, max_body=10).start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: localhost:{server.port}\r\n\r\n".encode())
        assert connection.recv(10) == b"HTTP/1.1 2"
        server.close()
        server.close()
        while connection.recv(65_536):
            pass
    HttpServer(answer, port=server.port, max_body=10).close()


def test_only_this_computer_can_connect(server):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        assert connection.getpeername()[0] == "127.0.0.1"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=1)
