"""HTTP requests whose failures are sentences."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from mcp_roundtrip.protocol.canonical import parse_json
from mcp_roundtrip_tools.client.local_issuer import LOOPBACK

TIMEOUT_S: Final = 35.0
"""API Gateway answers within 30 seconds."""


def is_trustworthy(url: str) -> bool:
    """Return whether no other computer can read or change a request: https, or a server on this computer."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_local = host in LOOPBACK or host.endswith(".localhost")  # RFC 6761, 6.3
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_local))


class Unreachable(Exception):
    """No HTTP response arrived. The message is one sentence."""


def request(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    timeout_s: float = TIMEOUT_S,
) -> httpx2.Response:
    """Send a request, follow no redirect, and return the response of any status. Raises Unreachable."""
    # A server names further URLs in its metadata; requests to them carry the secret of a client.
    if not is_trustworthy(url):
        raise Unreachable(f"No request is sent to {url}, which does not begin with https://.")
    try:
        with httpx2.Client(verify=tls or True, timeout=timeout_s) as client:
            return client.request(method, url, headers=headers, content=body)
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        raise unreachable(url, error) from error


def unreachable(url: str, error: BaseException) -> Unreachable:
    """Return a sentence on a request that got no response."""
    host = urlsplit(url).netloc
    if isinstance(error, httpx2.TimeoutException):
        return Unreachable(f"{host} did not answer: a firewall drops the packets, or the host is down.")
    cause: BaseException = error
    while inner := (cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause.__cause__):
        cause = inner
    return Unreachable(f"{host} is unreachable: {str(cause).rstrip('.') or type(cause).__name__}.")


def member(response: httpx2.Response, name: str) -> Any:
    """Return a member of the JSON object in a body, of the last message if it is a stream; or None."""
    text = response.text
    if "text/event-stream" in response.headers.get("content-type", ""):
        text = next((line[5:] for line in reversed(text.splitlines()) if line.startswith("data:")), "")
    document = parse_object(text)
    return document.get(name)


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object of a text; an empty one if it has none."""
    try:
        found = parse_json(text, max_depth=_MAX_DEPTH)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


_MAX_DEPTH: Final = 256
"""A result may have more levels than a request of MCP."""
