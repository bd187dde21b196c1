"""MCP requests of 2026-07-28 in plain HTTP, so that a failure has a status and headers to explain."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip.protocol.constants import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_PROTOCOL_VERSION,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    NAME_PARAMETER,
    PROTOCOL_VERSION,
)
from mcp_roundtrip.protocol.mirrored_headers import encode_header
from mcp_roundtrip_tools.client.exchange import Response, Sign, request

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110 §5.6.2."""

CORRELATION_HEADERS: Final = ("apigw-requestid", "x-amzn-requestid", "x-amz-apigw-id")


@dataclass(frozen=True)
class Endpoint:
    """An MCP endpoint, and the client that it is shown.

    `sign` is for AuthMode iam; `tls` replaces the trusted certificates. `meta` are further members of the
    `_meta` of requests.
    """

    url: str
    client: str
    capabilities: Mapping[str, Any]
    token: str | None = field(default=None, repr=False)
    sign: Sign | None = None
    tls: ssl.SSLContext | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def post(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        anonymous: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request; `anonymous` leaves out the token and the signature. Raises Unreachable."""
        given = {**(params or {}), "_meta": self._meta}
        mirrored = {HEADER_PROTOCOL_VERSION: PROTOCOL_VERSION, HEADER_METHOD: method}
        if (name := given.get(NAME_PARAMETER.get(method, ""))) is not None:
            mirrored[HEADER_NAME] = encode_header(name)
        if self.token is not None and not anonymous:
            mirrored["authorization"] = f"Bearer {self.token}"
        accepted = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given}).encode()
        sign = None if anonymous else self.sign
        return request(
            "POST", self.url, {**accepted, **mirrored, **(headers or {})}, body, tls=self.tls, sign=sign
        )

    @property
    def _meta(self) -> dict[str, Any]:
        return {
            META_PROTOCOL_VERSION: PROTOCOL_VERSION,
            META_CLIENT_INFO: {"name": self.client, "version": "1.0.0"},
            META_CLIENT_CAPABILITIES: self.capabilities,
            **self.meta,
        }

    def get(self, url: str) -> Response:
        """Fetch a document without authorization. Raises Unreachable."""
        return request("GET", url, {"accept": "application/json"}, tls=self.tls)


def parameter_headers(tool: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that repeat arguments of a call (SEP-2243)."""
    return _mirrored(tool.get("inputSchema"), arguments)


def _mirrored(schema: Any, given: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name, member in properties.items() if isinstance(properties, Mapping) else ():
        value = given.get(name)
        if isinstance(value, dict):
            found |= _mirrored(member, value)
        elif (header := _header(member)) and value is not None and not isinstance(value, list):
            text = value if isinstance(value, str) else json.dumps(value)
            found[f"mcp-param-{header.lower()}"] = encode_header(text)
    return found


def _header(member: Any) -> str | None:
    """Return the name of the header for an argument; None if there is none, or if it is no name of one."""
    name = member.get("x-mcp-header") if isinstance(member, Mapping) else None
    return name if isinstance(name, str) and _TOKEN.fullmatch(name) else None


def result_of(response: Response) -> Mapping[str, Any] | None:
    """Return the result of a response, or None."""
    result = response.member("result")
    return result if isinstance(result, dict) else None


def error_of(response: Response) -> tuple[int, str] | None:
    """Return the code and the message of a JSON-RPC error, or None."""
    error = response.member("error")
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        return error["code"], str(error.get("message", ""))
    return None


def correlation_of(response: Response) -> str:
    """Return where to search in the log, as the end of a sentence; empty without an id."""
    ids = [response.headers[name] for name in CORRELATION_HEADERS if name in response.headers]
    return f" Search the log for {ids[0]}." if ids else ""
