"""Direct invocation: the event is a JSON-RPC message, and the result is the response message.

The caller needs `lambda:InvokeFunction`. It is anonymous, because no authorizer says whom it acts for.
"""

from __future__ import annotations

import json
from typing import Any, Final

from mcp_roundtrip.adapters.event import Adapter, Event, members
from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.protocol.constants import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_PROTOCOL_VERSION,
    META_PROTOCOL_VERSION,
    NAME_PARAMETER,
)
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.mirrored_headers import encode_header


def _parse_request(event: Event) -> HttpRequest:
    """Return the request that an HTTP client would send; its mirrored headers are derived from the body.

    The body is None for an event with NaN or with a lone surrogate, which JSON or a header cannot contain.
    """
    try:
        return HttpRequest("POST", _mirrored_headers(event), compact_json(event), is_direct=True)
    except (ValueError, RecursionError):
        return HttpRequest("POST", {}, None, is_direct=True)


def _mirrored_headers(event: Event) -> dict[str, str]:
    method = event.get("method")
    params = members(event, "params")
    values = {
        HEADER_METHOD: method,
        HEADER_NAME: params.get(NAME_PARAMETER.get(method, "")) if isinstance(method, str) else None,
        HEADER_PROTOCOL_VERSION: members(params, "_meta").get(META_PROTOCOL_VERSION),
    }
    return {name: encode_header(value) for name, value in values.items() if isinstance(value, str)}


def _format_response(response: HttpResponse) -> Any:
    return json.loads(response.body) if response.body else None  # a notification has no response


ADAPTERS: Final = {"jsonrpc_event": Adapter(_parse_request, _format_response)}
