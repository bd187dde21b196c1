"""The limits of responses, and which connections are used again, against a strict server."""

import pytest

from mcp_roundtrip.aws import connections
from mcp_roundtrip.aws.clients import retry_connection
from mcp_roundtrip.aws.services import NoResponse
from support.scripted_server import respond, send
from support.signed_callers import calling, fails_with

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

INCOMPLETE = {
    "a status line": b"HTTP/1.1 200",
    "a head": OK,
    "a header": OK + b"X-A: b\r\nContent-Length: 1",
    "a body": OK + b"Content-Length: 3\r\n\r\n{}",
    "a last body": OK + b"Connection: close\r\nContent-Length: 3\r\n\r\n{}",
    "a chunk": CHUNKED + b"5\r\n{}",
    "no last chunk": CHUNKED + b"2\r\n{}\r\n",
    "an interim response": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
    "an end of an interim response": b"HTTP/1.1 100 Continue\r\n\r\n",
}


@pytest.mark.parametrize("wire", INCOMPLETE.values(), ids=INCOMPLETE)
def test_an_incomplete_response_is_no_response(wire):
    reply = send(wire, close=True)
    with calling(reply, retries=retry_connection) as call, fails_with("ConnectionClosedError", NoResponse):
        call()
    assert len(call.server.requests) == 1


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        CHUNKED + b"x\r\n",
        CHUNKED + b"-5\r\n",
        CHUNKED + b"2\r\n{}}}\r\n0\r\n\r\n",
        OK + b"A: b\r\n" * 101 + b"\r\n",
        OK + b"A: " + b"x" * 65_536 + b"\r\n\r\n",
    ],
)
def test_an_invalid_response_is_no_response(wire):
    with calling(send(wire), retries=retry_connection) as call:
        with fails_with("ConnectionClosedError", NoResponse):
            call()
        assert call() == {}
    assert call.connections_used == [1, 2]


ENDLESS = {
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a header": (OK + b"A: ", b"x" * 100),
    "a stated length": (OK + b"Content-Length: 1000000000000000\r\n\r\n", b"x" * 100),
    "a stated chunk": (CHUNKED + b"ffffffffffffffff\r\n", b"x" * 100),
    "a chunk with a negative length": (CHUNKED + b"-1\r\n", b"x" * 100),
    "many chunks": (CHUNKED, b"64\r\n" + b"x" * 100 + b"\r\n"),
    "a body without length": (OK + b"\r\n", b"x" * 100),
    "trailers": (CHUNKED + b"0\r\n", b"A: b\r\n"),
}
"""How a response begins, and what follows without an end."""


@pytest.mark.parametrize(("start", "more"), ENDLESS.values(), ids=ENDLESS)
def test_a_response_that_is_too_large_is_not_read_to_its_end(monkeypatch, start, more):
    monkeypatch.setattr(connections, "MAX_RESPONSE", 10_000)

    def stream(connected):
        connected.socket.sendall(start)
        while True:  # until the client closes the connection
            connected.socket.sendall(more)

    with calling(stream) as call, fails_with("response_too_large"):
        call()
    assert len(call.server.requests) == 1


REUSABLE = {
    "a length": OK + b"Content-Length: 2\r\n\r\n{}",
    "chunks": CHUNKED + b"1;x=y\r\n{\r\n01\r\n}\r\n0\r\nX: y\r\n\r\n",
    "an interim response": b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\n{}",
    "no body": b"HTTP/1.1 204 No Content\r\n\r\n",
}


HTTP_1_0 = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("wire", [*REUSABLE.values(), HTTP_1_0])
def test_the_connection_of_a_complete_response_without_more_bytes_is_used_again(wire):
    for sent, second in ((wire, 1 + (wire is HTTP_1_0)), (wire + OK, 2)):
        with calling(send(sent), retries=retry_connection) as call:
            assert call() == call() == {}
        assert call.connections_used == [1, second]


def test_names_of_headers_may_have_any_case():
    refusal = respond(400, {}, **{"X-AMZN-QUERY-ERROR": "Former;Sender"})
    with calling(refusal) as call, fails_with("Former"):
        call()
