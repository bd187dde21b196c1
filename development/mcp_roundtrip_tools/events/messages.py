"""Builds MCP messages, and the events in which they arrive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mcp_roundtrip.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    NAME_PARAMETER,
    PROMPTS_GET,
    PROTOCOL_VERSION,
    RESOURCES_READ,
    TOOLS_CALL,
)
from mcp_roundtrip.protocol.mirrored_headers import encode_header
from mcp_roundtrip_tools.run.api_gateway.payload import to_event
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.template.model import Route

Event = dict[str, Any]

RECEIVED_AT = 1_785_196_800.0
"""The time of all events in epoch seconds: the date of the protocol revision."""

ASKABLE: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""Capabilities of a client that supports every kind of question."""


def message(
    method: str, *, number: int = 1, capabilities: Mapping[str, Any] = ASKABLE, **params: Any
) -> Event:
    """Return a JSON-RPC request with the id `number`. It is also the event of a direct invocation."""
    meta = {
        META_PROTOCOL_VERSION: PROTOCOL_VERSION,
        META_CLIENT_INFO: {"name": "sample-events", "version": "1.0.0"},
        META_CLIENT_CAPABILITIES: capabilities,
    }
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}


def call(name: str, arguments: Mapping[str, Any], **more: Any) -> Event:
    """Return a `tools/call` request; `more` are options of `message` and additional params."""
    return message(TOOLS_CALL, name=name, arguments=arguments, **more)


def prompt(name: str, arguments: Mapping[str, str], **more: Any) -> Event:
    """Return a `prompts/get` request; `more` are options of `message` and additional params."""
    return message(PROMPTS_GET, name=name, arguments=arguments, **more)


def read(uri: str) -> Event:
    """Return a `resources/read` request."""
    return message(RESOURCES_READ, uri=uri)


def notification(method: str, **params: Any) -> Event:
    """Return a JSON-RPC notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def post(path: str, body: Mapping[str, Any], *, mcp_name: str | None = None) -> Event:
    """Return the event of a POST. The headers match the body, except for `mcp_name`."""
    method = body["method"]
    headers = {
        "content-type": "application/json",
        "mcp-protocol-version": PROTOCOL_VERSION,
        "mcp-method": method,
    }
    name = mcp_name or body["params"].get(NAME_PARAMETER.get(method, ""))
    if name is not None:
        headers["mcp-name"] = encode_header(name)
    return event("POST", path, headers, body)


def event(
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: Any = None,
    *,
    route: str | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Event:
    """Return the event of a request in payload format 2.0; `variables` are those of the route's path."""
    common = {
        "host": "abcdefghij.execute-api.eu-west-1.amazonaws.com",
        "accept": "application/json, text/event-stream",
        "user-agent": "sample-events/1.0.0",
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    }
    content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
    request = Request(method, path, tuple({**common, **headers}.items()), content, source_ip="203.0.113.7")
    matched = Route("ANY", route or path, "")
    return to_event(request, matched, variables, request_id="sample-event", now=RECEIVED_AT)
