"""JSON-RPC envelopes: valid messages, and the error for every other body."""

import json
from typing import Any

import pytest

from mcp_roundtrip.protocol.jsonrpc import (
    INVALID_REQUEST,
    InvalidEnvelope,
    JsonRpcRequest,
    Notification,
    parse_message,
)


def test_a_request_and_a_notification_are_read() -> None:
    body = '{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"x":1}}'
    assert parse_message(body) == JsonRpcRequest("a", "tools/list", {"x": 1})
    assert parse_message(b'{"jsonrpc":"2.0","id":0,"method":"m"}') == JsonRpcRequest(0, "m", {})
    assert parse_message('{"jsonrpc":"2.0","method":"notifications/x"}') == Notification("notifications/x")
    for absent in (None, {}, {"cursor": None}):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": absent})
        assert parse_message(body) == JsonRpcRequest(1, "m", {})


@pytest.mark.parametrize(
    ("message", "id_in_reply"),
    [
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "m"}], None),
        (None, None),
        ({"jsonrpc": "2.0", "method": "tools/call"}, None),
        ({"jsonrpc": "2.0", "id": None, "method": "notifications/x"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "m"}, None),
        ({"jsonrpc": "1.0", "id": 7, "method": "m"}, 7),
        ({"jsonrpc": "2.0", "id": 7}, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": ""}, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": 3}, 7),
        ({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "x"}}, None),
        ({"jsonrpc": "2.0", "id": "x", "method": "m", "params": []}, "x"),
        ({"jsonrpc": "2.0", "method": "notifications/x", "params": []}, None),
    ],
)
def test_other_json_is_an_invalid_request_that_echoes_the_readable_id_of_a_request(
    message: Any, id_in_reply: Any
) -> None:
    with pytest.raises(InvalidEnvelope) as refused:
        parse_message(json.dumps(message))
    assert (refused.value.code, refused.value.id) == (INVALID_REQUEST, id_in_reply)


def test_one_byte_order_mark_is_ignored() -> None:
    text = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for body in (f"\ufeff{text}", text.encode("utf-8-sig")):
        assert parse_message(body) == JsonRpcRequest(1, "ping", {})
    with pytest.raises(InvalidEnvelope):
        parse_message(f"\ufeff\ufeff{text}")
