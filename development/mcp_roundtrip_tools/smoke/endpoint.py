"""The endpoint that is checked: single requests with their HTTP response, and the official client."""

from __future__ import annotations

import json
import ssl
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
from mcp_roundtrip_tools.client.http import BearerToken, request

CLIENT: Final = "mcp-roundtrip-smoke"


@dataclass(frozen=True)
class Endpoint:
    """An MCP endpoint. `signature` is for AuthMode iam; `tls` replaces the trusted certificates."""

    url: str
    token: str | None = field(default=None, repr=False)
    signature: httpx2.Auth | None = None
    tls: ssl.SSLContext | None = None

    @property
    def auth(self) -> httpx2.Auth | None:
        """The token or the signature of requests."""
        return self.signature if self.token is None else BearerToken(self.token)

    def connect(self) -> Connection:
        """Return a connection of the official client."""
        return Connection(self.url, CLIENT, self.auth, tls=self.tls)

    def discover(self, *, anonymous: bool = False) -> httpx2.Response:
        """Send `server/discover`; `anonymous` leaves out the token and the signature. Raises Unreachable."""
        meta = {
            META_PROTOCOL_VERSION: PROTOCOL_VERSION,
            META_CLIENT_INFO: {"name": CLIENT, "version": "1.0.0"},
            META_CLIENT_CAPABILITIES: {},
        }
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": DISCOVER, "params": {"_meta": meta}}).encode()
        headers = {**ACCEPT, **mirrored_headers(DISCOVER, {}, tools={})}
        auth = None if anonymous else self.auth
        return request("POST", self.url, headers, body, tls=self.tls, auth=auth)

    def get(self, url: str) -> httpx2.Response:
        """Fetch a document without authorization. Raises Unreachable."""
        return request("GET", url, {"accept": "application/json"}, tls=self.tls)
