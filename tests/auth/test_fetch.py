"""Fetching documents from well-behaved and misbehaving servers on this computer."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from mcp_roundtrip.auth.callers import IssuerUnavailable
from mcp_roundtrip.auth.issuer_keys import MAX_DOCUMENT, fetch
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.scripted_server import Connected, scripted, send


@contextmanager
def serving(respond: Callable[[Request], Response]) -> Iterator[str]:
    with closing(HttpServer(respond, max_body=0).start()) as server:
        yield server.url


def failure(url: str, timeout_s: float = 3.0) -> IssuerUnavailable:
    with pytest.raises(IssuerUnavailable) as failed:
        fetch(url, timeout_s)
    return failed.value


def test_a_document_is_fetched_with_its_query():
    seen: list[Request] = []

    def respond(request: Request) -> Response:
        seen.append(request)
        return Response(200, body=b"{}")

    with serving(respond) as url:
        assert fetch(f"{url}/keys?p=policy", 3.0) == b"{}"
        assert fetch(url, 3.0) == b"{}"
    assert [(each.method, each.target) for each in seen] == [("GET", "/keys?p=policy"), ("GET", "/")]


@pytest.mark.parametrize(
    ("status", "is_answer"), [(302, True), (404, True), (403, True), (500, False), (503, False)]
)
def test_a_status_other_than_200_is_an_answer_unless_it_is_a_server_error(status, is_answer):
    with serving(lambda request: Response(status, body=b'{"keys":[]}')) as url:
        refused = failure(url)
    assert (refused.reason, refused.is_answer) == (f"issuer_status_{status}", is_answer)


def test_a_document_up_to_the_size_limit_is_read_and_a_larger_one_is_not():
    bodies = {"/fits": b"x" * MAX_DOCUMENT, "/does-not": b"x" * (MAX_DOCUMENT + 1)}
    with serving(lambda request: Response(200, body=bodies[request.target])) as url:
        assert len(fetch(f"{url}/fits", 3.0)) == MAX_DOCUMENT
        assert failure(f"{url}/does-not").reason == "issuer_document_too_large"


@pytest.mark.parametrize(
    "url",
    [
        "http://id.test/keys",
        "http://127.0.0.1.evil.test/keys",
        "http://localhost.evil.test/keys",
        "http://127.0.0.2/keys",
        "file:///etc/passwd",
        "ftp://id.test/keys",
        "https:///keys",
        "https://user:secret@id.test/keys",
        "https://id.test:port/keys",
        "https://[id.test/keys",
        "https://id test/keys",
        "keys",
    ],
)
def test_other_computers_are_contacted_only_over_https(url):
    refused = failure(url)
    assert (refused.reason, refused.is_answer) == ("issuer_url", False)


def test_a_refused_connection_and_a_server_without_a_certificate_are_reported():
    with serving(lambda request: Response(200, body=b"{}")) as url:
        assert failure(url.replace("http://", "https://")).reason == "issuer_SSLError"
    assert failure(f"{url}/keys").reason == "issuer_ConnectionRefusedError"


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nx-",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n",
    ],
    ids=["status", "headers", "body", "body of a length"],
)
def test_an_endless_response_times_out(first):
    def drip(connected: Connected) -> bool:
        connected.socket.sendall(first)
        while not connected.server.over.wait(0.02):
            connected.socket.sendall(b"a")
        return False

    with scripted(drip) as server:
        assert failure(server.url, 0.3).reason == "issuer_timeout"


def test_a_response_that_is_not_http_is_reported():
    with scripted(send(b"220 smtp.test ready\r\n\r\n", close=True)) as server:
        assert failure(server.url).reason == "issuer_BadStatusLine"
