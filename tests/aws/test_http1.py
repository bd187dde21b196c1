"""HTTP/1.1 messages: what is sent, what is read, and what is refused."""

from itertools import chain, repeat
from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_roundtrip.aws import http1
from mcp_roundtrip.aws.http1 import (
    InvalidHttp,
    ResponseTooLarge,
    ServiceResponse,
    format_request,
    read_response,
)


def read(*parts):
    """Return the response in `parts`, which arrive one after the other, and then the end of the stream."""
    arriving = iter(parts)
    return read_response(lambda: next(arriving, b""))


# requests


def test_a_request_is_valid_http():
    server = h11.Connection(h11.SERVER)
    headers = [("Host", "x.test"), ("X-Amz-Target", "TrentService.Sign")]
    server.receive_data(format_request("POST", "/a?b=c", headers, "Größe".encode()))
    events: list[Any] = [server.next_event() for _ in range(3)]
    request, data, end = events
    assert (request.method, request.target, request.http_version) == (b"POST", b"/a?b=c", b"1.1")
    assert request.headers == [
        (b"host", b"x.test"),
        (b"x-amz-target", b"TrentService.Sign"),
        (b"content-length", b"7"),
    ]
    assert (bytes(data.data), type(end)) == ("Größe".encode(), h11.EndOfMessage)


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0b", "\x7f"])
def test_a_control_character_in_a_header_is_refused(value):
    with pytest.raises(ValueError, match="control character"):
        format_request("POST", "/", [("Host", "x.test"), ("X", value)], b"")
    with pytest.raises(ValueError, match="control character"):
        format_request("POST", f"/{value}", [("Host", "x.test")], b"")


# responses

OK = b"HTTP/1.1 200 OK\r\n"

RESPONSES = {
    "length": (
        OK + b"Content-Length: 2\r\nX-A:  b c \r\n\r\n{}",
        ServiceResponse(200, {"content-length": "2", "x-a": "b c"}, b"{}", True),
    ),
    "chunks": (
        OK + b"Transfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
        ServiceResponse(200, {"transfer-encoding": "Chunked"}, b"abc0123456789", True),
    ),
    "until the end": (b"HTTP/1.1 500 \r\n\r\noops", ServiceResponse(500, {}, b"oops", False)),
    "nothing": (b"HTTP/1.1 204 No Content\r\n\r\n", ServiceResponse(204, {}, b"", True)),
    "no reason": (
        b"HTTP/1.1 400\r\ncontent-length: 0\r\n\r\n",
        ServiceResponse(400, {"content-length": "0"}, b"", True),
    ),
    "close": (
        OK + b"Connection: Close\r\nContent-Length: 0\r\n\r\n",
        ServiceResponse(200, {"connection": "Close", "content-length": "0"}, b"", False),
    ),
    "HTTP/1.0": (
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        ServiceResponse(200, {"content-length": "1"}, b"x", False),
    ),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        + OK
        + b"Content-Length: 1\r\n\r\nx",
        ServiceResponse(200, {"content-length": "1"}, b"x", True),
    ),
    "repeated": (
        OK + b"A: 1\r\na: 2\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
        ServiceResponse(200, {"a": "1, 2", "content-length": "0"}, b"", True),
    ),
}


@pytest.mark.parametrize(("wire", "response"), RESPONSES.values(), ids=RESPONSES)
@settings(max_examples=25)
@given(data=st.data())
def test_a_response_is_read_however_it_is_divided(wire, response, data):
    cuts = sorted(data.draw(st.sets(st.integers(1, len(wire) - 1))))
    assert (
        read(*(wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)))
        == response
    )


def test_bytes_after_a_response_end_the_use_of_the_connection():
    assert read(OK + b"Content-Length: 1\r\n\r\nxHTTP/1.1 200 OK").is_reusable is False


INVALID = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0\r\n\r\n",
    "a wrong version": b"HTTP/2 200 OK\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "a half head": OK + b"Content-",
    "a half body": OK + b"Content-Length: 3\r\n\r\nab",
    "a folded header": OK + b"A: b\r\n c\r\n\r\n",
    "a space in a name": OK + b"Content-Length : 1\r\n\r\nx",
    "no name": OK + b": 1\r\n\r\nx",
    "two lengths": OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "a negative length": OK + b"Content-Length: -1\r\n\r\n",
    "a length with a sign": OK + b"Content-Length: +1\r\n\r\nx",
    "no length": OK + b"Content-Length: x\r\n\r\nx",
    "another coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "no chunk length": OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
    "a half chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
    "a long chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
    "no last chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
}


@pytest.mark.parametrize("wire", INVALID.values(), ids=INVALID)
def test_an_invalid_response_is_refused(wire):
    with pytest.raises(InvalidHttp):
        read(wire)


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

ENDLESS = {
    "headers": (OK, b"A: " + b"x" * 1000 + b"\r\n"),
    "a header": (OK + b"A: ", b"x" * 1000),
    "a status line": (b"HTTP/1.1 200 ", b"x" * 1000),
    "a stated length": (OK + b"Content-Length: 1001\r\n\r\n", b"x"),
    "a stated chunk": (CHUNKED + b"3e9\r\n", b"x"),
    "many chunks": (CHUNKED, b"64\r\n" + b"x" * 100 + b"\r\n"),
    "a body without length": (OK + b"\r\n", b"x" * 100),
    "a chunk's line": (CHUNKED + b"1;", b"x" * 1000),
    "trailers": (CHUNKED + b"0\r\n", b"A: " + b"x" * 1000 + b"\r\n"),
}
"""How a response begins, and what follows without an end."""


@pytest.mark.parametrize(("start", "more"), ENDLESS.values(), ids=ENDLESS)
def test_a_response_that_is_too_large_is_not_read_to_its_end(monkeypatch, start, more):
    monkeypatch.setattr(http1, "MAX_BODY", 1000)
    arriving = chain([start], repeat(more))
    with pytest.raises(ResponseTooLarge):
        read_response(lambda: next(arriving))
