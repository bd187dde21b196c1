"""Fetch the metadata document of a client from its URL."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing, suppress
from threading import Timer
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from mcp_roundtrip.protocol.canonical import parse_json
from mcp_roundtrip_tools.run.issuer.errors import OAuthError

MAX_DOCUMENT: Final = 5_120
"""Bytes of a client's metadata document (draft-ietf-oauth-client-id-metadata-document, 6.6)."""

FETCH_TIMEOUT_S: Final = 5.0
"""Seconds for the connection, and then for the whole response: a server can send one byte at a time."""


def fetch_document(url: str, timeout_s: float = FETCH_TIMEOUT_S) -> dict[str, Any]:
    """Return the JSON object at an http or https URL. Raises OAuthError.

    No redirect is followed, because the document is at its URL. No proxy is used, which would resolve the
    names of this computer elsewhere.
    """
    try:
        document = parse_json(_get(urlsplit(url), timeout_s))
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise OAuthError("invalid_client", f"{url} is no metadata document: {type(error).__name__}") from None
    if not isinstance(document, dict):
        raise OAuthError("invalid_client", f"{url} is no JSON object")
    return document


def _get(url: SplitResult, timeout_s: float) -> bytes:
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    target = f"{url.path}?{url.query}" if url.query else url.path
    with closing(kind(url.hostname or "", url.port, timeout=timeout_s)) as connection:
        connection.connect()
        timer = Timer(timeout_s, _hang_up, (connection.sock,))
        timer.daemon = True
        timer.start()
        try:
            connection.request("GET", target, headers={"accept": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise http.client.HTTPException(f"HTTP {response.status}")
            return response.read(MAX_DOCUMENT + 1)
        finally:
            timer.cancel()


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        # Not SSLSocket.shutdown, which changes the object that another thread reads from.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
