"""JSON-RPC bodies and HTTP headers of a conforming client, and ways to change them."""

import json
from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    NAME_PARAMETER,
    PROTOCOL_VERSION,
)
from mcp_roundtrip.protocol.mirrored_headers import encode_header
from mcp_roundtrip_tools.events import event

META: Mapping[str, Any] = {
    META_PROTOCOL_VERSION: PROTOCOL_VERSION,
    META_CLIENT_INFO: {"name": "test-client", "version": "1"},
    META_CLIENT_CAPABILITIES: {"elicitation": {}, "sampling": {}, "roots": {}},
}


def message(method: str, *, id: Any = 1, meta: Any = META, **params: Any) -> dict[str, Any]:  # noqa: A002
    """Return a request. `meta=None` omits `_meta`."""
    members = params if meta is None else {**params, "_meta": meta}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": members}


def call(name: str, arguments: Mapping[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    return message("tools/call", name=name, arguments=arguments or {}, **params)


def headers(body: Mapping[str, Any], **changes: str | None) -> dict[str, str]:
    """Return the headers that mirror a body. `changes` (underscores for hyphens) replace; None removes."""
    method = body["method"]
    values: dict[str, str | None] = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": PROTOCOL_VERSION,
        "mcp-method": method,
    }
    name = body.get("params", {}).get(NAME_PARAMETER.get(method, ""))
    if isinstance(name, str):
        values["mcp-name"] = encode_header(name)
    values |= {header.replace("_", "-"): value for header, value in changes.items()}
    return {header: value for header, value in values.items() if value is not None}


def http_event(
    body: Any,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    authorizer: Mapping[str, Any] | None = None,
    base64: bool = False,
) -> dict[str, Any]:
    """Return an API Gateway HTTP API event, payload 2.0. A `body` other than text becomes JSON."""
    found = event(method, "/mcp", {})
    if authorizer is not None:
        found["requestContext"]["authorizer"] = authorizer
    return {
        **found,
        "headers": dict(_headers(body) if headers is None else headers),
        "body": body if isinstance(body, str) else json.dumps(body),
        "isBase64Encoded": base64,
    }


def _headers(body: Any) -> dict[str, str]:
    return headers(body) if isinstance(body, dict) and "method" in body else {}
