"""Direct invocation with a bare JSON-RPC message."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.adapters.event_formats import ADAPTERS
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.request_validation import InvalidRequest, ValidRequest, validate_request
from support.messages import call, message

parse_request, format_response = ADAPTERS["jsonrpc_event"]


@pytest.mark.parametrize("body", [message("tools/list"), call("wetter_münchen"), call(" padded "), call("")])
def test_the_mirrored_headers_are_derived_from_the_message(body: dict[str, Any]) -> None:
    request = parse_request(body)
    assert request.method == "POST"
    assert request.body is not None
    assert isinstance(validate_request(request.headers, request.body), ValidRequest)


@pytest.mark.parametrize(
    "event",
    [
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": 1, "method": []},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": {}, "_meta": []}},
    ],
)
def test_a_malformed_message_is_refused_by_validation(event: dict[str, Any]) -> None:
    request = parse_request(event)
    assert request.body is not None
    assert isinstance(validate_request(request.headers, request.body), InvalidRequest)


def test_the_authorizer_context_is_empty() -> None:
    assert (
        parse_request({**message("tools/list"), "requestContext": {"authorizer": {"jwt": {}}}}).authorizer
        == {}
    )


def test_the_response_is_the_bare_message() -> None:
    assert format_response(HttpResponse(200, '{"jsonrpc":"2.0","id":1,"result":{}}')) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {},
    }
    assert format_response(HttpResponse(202)) is None
