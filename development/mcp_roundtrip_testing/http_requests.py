"""The HTTP requests of clients: of 2026-07-28, and of those that open with `initialize`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.protocol.constants import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_PROTOCOL_VERSION,
    HEADER_SESSION_ID,
    LEGACY_VERSIONS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    NAME_PARAMETER,
    PROTOCOL_VERSION,
    TOOLS_CALL,
)
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.mirrored_headers import ParameterHeaders, argument_at, encode_header
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.server.tools import Tool

ACCEPT: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def client_meta(client: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that clients add to `_meta`."""
    return {
        META_PROTOCOL_VERSION: PROTOCOL_VERSION,
        META_CLIENT_INFO: client,
        META_CLIENT_CAPABILITIES: capabilities,
    }


@dataclass(frozen=True, slots=True)
class Session:
    """What a client repeats in its requests. `id` is None if the server chose none."""

    protocol_version: str
    id: str | None = None

    @property
    def is_legacy(self) -> bool:
        """Whether the client opened with `initialize`."""
        return self.protocol_version in LEGACY_VERSIONS

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request of a client of the earlier versions."""
        chosen = {} if self.id is None else {HEADER_SESSION_ID: self.id}
        return {**ACCEPT, HEADER_PROTOCOL_VERSION: self.protocol_version, **chosen}


def post(body: Mapping[str, Any], headers: Mapping[str, str], authorizer: Mapping[str, Any]) -> HttpRequest:
    """Build a request with a JSON body."""
    return HttpRequest("POST", {**ACCEPT, **headers}, json.dumps(body), authorizer)


def mirrored_headers(method: str, params: Mapping[str, Any], tools: Mapping[str, Tool]) -> dict[str, str]:
    """Return the headers that repeat the body of a request of 2026-07-28 (SEP-2243)."""
    headers = {HEADER_PROTOCOL_VERSION: PROTOCOL_VERSION, HEADER_METHOD: method}
    name = params.get(NAME_PARAMETER.get(method, ""))
    if isinstance(name, str):
        headers[HEADER_NAME] = encode_header(name)
    tool = tools.get(str(name)) if method == TOOLS_CALL else None
    if tool is not None and isinstance(params.get("arguments"), Mapping):
        headers |= build_parameter_headers(tool.parameters.parameter_headers, params["arguments"])
    return headers


def build_parameter_headers(
    parameter_headers: ParameterHeaders, arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the `Mcp-Param-*` headers of a call. Raises ValueError for a string with a lone surrogate."""
    values = {name: argument_at(arguments, path) for path, name in parameter_headers.items()}
    return {
        f"mcp-param-{name}".lower(): encode_header(value if isinstance(value, str) else compact_json(value))
        for name, value in values.items()
        if isinstance(value, (str, int, float))
    }


def read_messages(response: HttpResponse) -> list[Mapping[str, Any]]:
    """Return the JSON-RPC messages of a response; the last one is the response to the request."""
    if response.headers.get("content-type") == "text/event-stream":
        return [json.loads(line[6:]) for line in response.body.splitlines() if line.startswith("data: ")]
    return [json.loads(response.body)]
