"""Metadata documents of clients, from servers that do what they should not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import pytest

from mcp_roundtrip_tools.run.issuer.clients import OAuthError, fetch_document

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"


@contextmanager
def server(parts: Iterable[bytes], pause_s: float = 0.0) -> Iterator[str]:
    """Answer one connection with these parts and a pause after each."""

    def answer() -> None:
        with suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                for part in parts:
                    connection.sendall(part)
                    time.sleep(pause_s)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/client.json"
    thread.join(10)


def test_a_document_is_read():
    with server([HEAD + b'{"client_id": "x"}']) as url:
        assert fetch_document(url) == {"client_id": "x"}


@pytest.mark.parametrize(
    "response",
    [
        HEAD + b"[]",
        HEAD + b"[" * 5_000,
        HEAD + b"{" + b" " * 6_000 + b"}",
        b"HTTP/1.1 302 Found\r\nlocation: /other\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n\r\n{}",
        b"nothing like HTTP",
        b"",
    ],
)
def test_a_response_that_is_no_small_json_object_is_refused(response):
    with server([response]) as url, pytest.raises(OAuthError):
        fetch_document(url)


@pytest.mark.parametrize("head", [HEAD, b"HTTP/1.1 200 OK\r\n"])
def test_a_server_that_sends_slowly_is_hung_up_on(head):
    parts = iter([head, *[b"x"] * 200])
    with server(parts, pause_s=0.05) as url, pytest.raises(OAuthError):
        fetch_document(url, timeout_s=0.3)
    assert next(parts) == b"x"
