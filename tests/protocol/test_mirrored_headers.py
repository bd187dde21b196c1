"""Mirrored headers: encoding, and agreement with the body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol.jsonrpc import HEADER_MISMATCH, JsonRpcRequest
from mcp_roundtrip.protocol.mirrored_headers import check_headers, decode_header, encode_header

VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: "2026-07-28"}
CALL = JsonRpcRequest(1, "tools/call", {"name": "get_weather", "_meta": META})
AGREEING = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "get_weather"}


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_an_encoded_value_round_trips_and_is_a_valid_header(value: str) -> None:
    header = encode_header(value)
    assert decode_header(header) == value
    assert header.isascii()
    assert "\r" not in header
    assert "\n" not in header


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ],
)
def test_the_encoding_examples_of_the_specification_are_decoded(value: str, header: str) -> None:
    assert encode_header(value) == header
    assert decode_header(header) == value


@pytest.mark.parametrize("header", ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?SGVsbG9=?=",
                                    "=?base64?/w==?=", "caf\xe9", "a\x00b", "a\x7fb", "世界"])  # fmt: skip
def test_an_invalid_encoding_is_decoded_to_none(header: str) -> None:
    assert decode_header(header) is None


@pytest.mark.parametrize("header", ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?=", "a\tb"])
def test_a_value_without_the_sentinel_is_literal_without_white_space_around_it(header: str) -> None:
    assert decode_header(f"  {header}\t") == header


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("get_weather", "get_weather"),
        ("get_weather", "  get_weather  "),
        ("a, a", "a, a"),
        ("wetter_münchen", encode_header("wetter_münchen")),
    ],
)
def test_agreeing_headers_are_accepted(name: str, header: str) -> None:
    request = JsonRpcRequest(1, "tools/call", {"name": name, "_meta": META})
    check_headers(request, {**AGREEING, "mcp-name": header, "mcp-method": " tools/call "})


@pytest.mark.parametrize(
    ("method", "params"),
    [("tools/list", {"_meta": META}), ("server/discover", {}), ("tasks/get", {"taskId": "t", "_meta": META})],
)
def test_a_request_without_a_name_or_a_version_needs_no_header_for_it(method: str, params: Any) -> None:
    request = JsonRpcRequest(1, method, params)
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    check_headers(request, headers)
    if method == "tasks/get":
        with pytest.raises(ProtocolError):
            check_headers(request, {**headers, "mcp-name": "other"})


@pytest.mark.parametrize(
    "changes",
    [
        {"mcp-protocol-version": None},
        {"mcp-method": None},
        {"mcp-name": None},
        {"mcp-protocol-version": "2025-11-25"},
        {"mcp-method": "tools/list"},
        {"mcp-method": "TOOLS/CALL"},
        {"mcp-name": "get_tides"},
        {"mcp-name": "get_weather,get_weather"},
        {"mcp-name": "=?base64?!!!?="},
        {"mcp-name": "get_weather\x00"},
    ],
)
def test_a_missing_or_different_header_is_a_mismatch(changes: dict[str, str | None]) -> None:
    headers = {name: value for name, value in {**AGREEING, **changes}.items() if value is not None}
    with pytest.raises(ProtocolError) as refused:
        check_headers(CALL, headers)
    assert refused.value.code == HEADER_MISMATCH


@pytest.mark.parametrize("separator", [",", ", ", " ,\t"])
@pytest.mark.parametrize("name", sorted(AGREEING))
def test_a_header_that_is_sent_twice_with_one_value_is_named(name: str, separator: str) -> None:
    for value in (AGREEING[name], "=?base64?Z2V0X3dlYXRoZXI=?="):
        if value == AGREEING[name] or name == "mcp-name":
            with pytest.raises(ProtocolError, match="occurs more than once") as caught:
                check_headers(CALL, {**AGREEING, name: f"{value}{separator}{value}"})
            assert caught.value.code == HEADER_MISMATCH


@pytest.mark.parametrize("name", sorted(AGREEING))
def test_a_header_that_is_sent_twice_with_different_values_does_not_match(name: str) -> None:
    with pytest.raises(ProtocolError, match="does not match") as caught:
        check_headers(CALL, {**AGREEING, name: f"{AGREEING[name]}, other"})
    assert caught.value.code == HEADER_MISMATCH
