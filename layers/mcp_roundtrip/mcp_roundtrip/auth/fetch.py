"""Fetch a small document from an issuer over HTTPS, within limits of time and size."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from mcp_roundtrip.auth.callers import IssuerUnavailable
from mcp_roundtrip.auth.issuer_keys import is_loopback

MAX_DOCUMENT: Final = 65_536
"""Limit in bytes. The largest key sets of public issuers have about 10,000."""


def fetch(url: str, timeout_s: float) -> bytes:
    """Return the body of a 200 response to a GET. Redirects are not followed.

    Raises IssuerUnavailable for any other response, for none within `timeout_s`, and for a larger document.
    """
    try:
        connection = _connection(url, timeout_s)
    except (ValueError, HTTPException):
        raise IssuerUnavailable("issuer_url") from None
    outcome: list[bytes | IssuerUnavailable] = []
    # In a thread that can be abandoned: a socket timeout limits each read, and nothing limits the DNS lookup.
    thread = threading.Thread(target=lambda: outcome.append(_get(connection, url)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not outcome:
        with suppress(OSError, AttributeError):  # there may be no socket yet, or it is closed
            connection.sock.shutdown(socket.SHUT_RDWR)
        raise IssuerUnavailable("issuer_timeout")
    if isinstance(outcome[0], IssuerUnavailable):
        raise outcome[0]
    return outcome[0]


def _connection(url: str, timeout_s: float) -> HTTPConnection:
    """Create a connection to the host of a URL. Raises ValueError, or HTTPException for an invalid host."""
    parts = urlsplit(url)
    if parts.hostname is None or parts.username is not None:
        raise ValueError("the URL has no host or has userinfo")
    if parts.scheme == "https":
        return HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s)
    if is_loopback(url):
        return HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
    raise ValueError("neither HTTPS nor loopback")


def _get(connection: HTTPConnection, url: str) -> bytes | IssuerUnavailable:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("GET", target, headers={"accept": "application/json", "connection": "close"})
        response = connection.getresponse()
        if response.status != 200:
            return IssuerUnavailable(f"issuer_status_{response.status}", is_answer=response.status < 500)
        document = response.read(MAX_DOCUMENT + 1)
    except (OSError, HTTPException, ValueError) as error:
        return IssuerUnavailable(f"issuer_{type(error).__name__}")
    finally:
        connection.close()
    return document if len(document) <= MAX_DOCUMENT else IssuerUnavailable("issuer_document_too_large")
