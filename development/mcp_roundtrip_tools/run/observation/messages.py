"""The JSON-RPC messages in an HTTP request and its response."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_roundtrip_tools.run.observation.records import Headers, HttpExchange


def request_message(exchange: HttpExchange) -> dict[str, Any]:
    """Return the JSON-RPC message of a request; an empty object if there is none."""
    return json_object(exchange.request_body)


def response_message(exchange: HttpExchange) -> dict[str, Any]:
    """Return the JSON-RPC response; an empty object if there is none.

    In an event stream, notifications precede it.
    """
    if not header(exchange.response_headers, "content-type").startswith("text/event-stream"):
        return json_object(exchange.response_body)
    found: dict[str, Any] = {}
    for line in exchange.response_body.splitlines():
        if line.startswith(b"data:"):
            message = json_object(line.removeprefix(b"data:"))
            found = message if message.keys() & {"result", "error"} else found
    return found


def header(headers: Headers, name: str) -> str:
    """Return the first value of a header in lower case; an empty text if it is absent."""
    return next((value for key, value in headers if key.lower() == name), "")


def is_challenge(exchange: HttpExchange) -> bool:
    """Return whether a response asks for a token, which the request did not have (RFC 6750 §3)."""
    return exchange.status == 401 and not header(exchange.request_headers, "authorization")


def member(document: Any, *path: str) -> Any:
    """Return a nested member of a JSON object, or None."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; an empty one if there is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
