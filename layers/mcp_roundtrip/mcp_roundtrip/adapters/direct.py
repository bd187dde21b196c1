"""Direct invocation: the event is a bare JSON-RPC message, and so is the answer.

Such a caller holds `lambda:InvokeFunction`; nobody has said who it acts for, so it is anonymous.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.canonical import compact
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.methods import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_PROTOCOL_VERSION,
    META_PROTOCOL_VERSION,
    NAME_PARAMETER,
)
from mcp_roundtrip.protocol.mirrored_headers import encode_header


def request(event: Mapping[str, Any]) -> HttpRequest:
    """The request an HTTP client would have sent: its headers mirror the body, so they cannot disagree.

    Its body is None for what neither JSON nor a header can carry: NaN, and a lone surrogate in a name.
    """
    try:
        return HttpRequest(method="POST", headers=_mirror(event), body=compact(event), is_direct=True)
    except (ValueError, RecursionError):
        return HttpRequest(method="POST", headers={}, body=None, is_direct=True)


def _mirror(event: Mapping[str, Any]) -> dict[str, str]:
    method = event.get("method")
    params = event.get("params")
    members = params if isinstance(params, Mapping) else {}
    meta = members.get("_meta")
    values = {
        HEADER_METHOD: method,
        HEADER_NAME: members.get(NAME_PARAMETER.get(method, "")) if isinstance(method, str) else None,
        HEADER_PROTOCOL_VERSION: meta.get(META_PROTOCOL_VERSION) if isinstance(meta, Mapping) else None,
    }
    return {name: encode_header(value) for name, value in values.items() if isinstance(value, str)}


def response(answer: HttpResponse) -> Any:
    """The JSON-RPC response; None for a notification."""
    return json.loads(answer.body) if answer.body else None
