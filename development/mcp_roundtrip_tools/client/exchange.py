"""HTTP requests whose failures are sentences."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip.protocol.canonical import parse_json

TIMEOUT_S: Final = 35
"""API Gateway answers within 30 seconds."""

MAX_BODY: Final = 7_000_000
"""A response of Lambda has at most 6 MB."""

MAX_DEPTH: Final = 256
"""The levels of arrays and objects in a response. A result may have more of them than a request of MCP."""

Sign = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]
"""Takes the method, URL, headers and body of a request; returns the headers with a signature."""


LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def is_trustworthy(url: str) -> bool:
    """Return whether no other computer can read or change a request: https, or a server on this computer."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_local = host in LOOPBACK or host.endswith(".localhost")  # RFC 6761, 6.3
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_local))


class Unreachable(Exception):
    """No HTTP response arrived. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the JSON value of the body, of the last message if it is a stream; None if it has none."""
        found = self.messages()
        return found[-1] if found else None

    def messages(self) -> list[Any]:
        """Return the JSON values of the body: one, or those of a stream in their order."""
        text = self.body.decode(errors="replace")
        is_stream = "text/event-stream" in self.headers.get("content-type", "")
        lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
        try:
            return [
                parse_json(document, max_depth=MAX_DEPTH) for document in (lines if is_stream else [text])
            ]
        except ValueError:
            return []

    def member(self, name: str) -> Any:
        """Return a member of the JSON object in the body, or None."""
        value = self.json()
        return value.get(name) if isinstance(value, dict) else None


class _EveryStatus(urllib.request.HTTPErrorProcessor):
    def http_response(self, request: Any, response: Any) -> Any:
        """Return the response itself, also a redirect or an error."""
        return response

    https_response = http_response


def request(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    sign: Sign | None = None,
    timeout_s: float = TIMEOUT_S,
    max_body: int = MAX_BODY,
) -> Response:
    """Send a request, follow no redirect, and return the response of any status. Raises Unreachable.

    Of the body, `max_body` bytes are read.
    """
    # A server names further URLs in its metadata; requests to them carry the secret of a client.
    if not is_trustworthy(url):
        raise Unreachable(f"No request is sent to {url}, which does not begin with https://.")
    given = dict(headers or {})
    if sign is not None:
        given = dict(sign(method, url, given, body or b""))
    prepared = urllib.request.Request(url, body, given, method=method)  # noqa: S310 - https
    opener = urllib.request.build_opener(
        _EveryStatus, urllib.request.HTTPSHandler(context=tls or ssl.create_default_context())
    )
    try:
        with opener.open(prepared, timeout=timeout_s) as response:
            return _read(response, max_body)
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise Unreachable(_sentence(reason, url, timeout_s)) from error


def _read(response: Any, max_body: int) -> Response:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(response.status, headers, response.read(max_body))


def _sentence(reason: object, url: str, timeout_s: float) -> str:
    host = urlsplit(url).netloc
    match reason:
        case socket.gaierror():
            return (
                f"{host} has no address: the name is misspelled, its DNS record does not exist yet, or this "
                f"computer has no DNS ({reason.strerror})."
            )
        case ssl.SSLCertVerificationError():
            return f"The certificate of {host} is refused: {reason.verify_message}."
        case ssl.SSLError():
            return f"{host} does not speak TLS on this port ({reason.reason or reason})."
        case TimeoutError():
            return (
                f"{host} did not answer within {timeout_s:g} s: a firewall drops the packets, or the host is "
                "down."
            )
        case ConnectionRefusedError():
            return f"{host} refuses connections: nothing listens on this port."
        case ConnectionResetError() | http.client.RemoteDisconnected():
            return f"{host} closed the connection without a response."
        case http.client.InvalidURL():
            return f"{url} is not a URL: {reason}."
        case http.client.HTTPException():
            return f"{host} answers with something that is not HTTP ({type(reason).__name__})."
    return f"{host} is unreachable: {reason}."
