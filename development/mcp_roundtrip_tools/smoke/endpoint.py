"""The endpoint that is checked: single requests with their HTTP response, and the official client."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import httpx2

from mcp_roundtrip.protocol.constants import (
    DISCOVER,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
)
from mcp_roundtrip_testing.http_requests import ACCEPT, mirrored_headers
from mcp_roundtrip_tools.client.connection import Connection
from mcp_roundtrip_tools.client.http import request

CLIENT: Final = "mcp-roundtrip-smoke"

Sign = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]
"""Takes the method, URL, headers and body of a request; returns the headers with a signature."""

_SIGNED: Final = ("content-type", "mcp-")
"""The beginnings of the names of headers that a signature covers."""


@dataclass(frozen=True)
class Endpoint:
    """An MCP endpoint. `sign` is for AuthMode iam; `tls` replaces the trusted certificates."""

    url: str
    token: str | None = field(default=None, repr=False)
    sign: Sign | None = None
    tls: ssl.SSLContext | None = None

    def connect(self) -> Connection:
        """Return a connection of the official client."""
        return Connection(self.url, CLIENT, self._authorize, tls=self.tls)

    def discover(self, *, anonymous: bool = False) -> httpx2.Response:
        """Send `server/discover`; `anonymous` leaves out the token and the signature. Raises Unreachable."""
        meta = {
            META_PROTOCOL_VERSION: PROTOCOL_VERSION,
            META_CLIENT_INFO: {"name": CLIENT, "version": "1.0.0"},
            META_CLIENT_CAPABILITIES: {},
        }
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": DISCOVER, "params": {"_meta": meta}}).encode()
        headers = {**ACCEPT, **mirrored_headers(DISCOVER, {}, tools={})}
        if not anonymous:
            headers |= self._credentials("POST", self.url, headers, body)
        return request("POST", self.url, headers, body, tls=self.tls)

    def get(self, url: str) -> httpx2.Response:
        """Fetch a document without authorization. Raises Unreachable."""
        return request("GET", url, {"accept": "application/json"}, tls=self.tls)

    def _authorize(
        self, request: httpx2.Request, refusal: httpx2.Response | None
    ) -> Mapping[str, str] | None:
        if refusal is not None:
            return None
        return self._credentials(request.method, str(request.url), request.headers, request.content)

    def _credentials(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> Mapping[str, str]:
        if self.token is not None:
            return {"authorization": f"Bearer {self.token}"}
        signed = {name: value for name, value in headers.items() if name.lower().startswith(_SIGNED)}
        return {} if self.sign is None else self.sign(method, url, signed, body)
