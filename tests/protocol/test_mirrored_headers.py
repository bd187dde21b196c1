"""Mirrored headers: encoding, and agreement with the body."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from mcp.shared.inbound import mcp_param_headers

from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol.jsonrpc import HEADER_MISMATCH, JsonRpcRequest
from mcp_roundtrip.protocol.mirrored_headers import (
    MAX_INTEGER,
    check_headers,
    check_parameter_headers,
    decode_header,
    encode_header,
)
from mcp_roundtrip.protocol.strict_json import compact_json, parse_json
from mcp_roundtrip_testing.http_requests import build_parameter_headers

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
        ("wetter_münchen", encode_header("wetter_münchen")),
    ],
)
def test_agreeing_headers_are_accepted(name: str, header: str) -> None:
    request = JsonRpcRequest(1, "tools/call", {"name": name, "_meta": META})
    check_headers(request, {**AGREEING, "mcp-name": header, "mcp-method": " tools/call "})


@pytest.mark.parametrize(
    ("method", "params"),
    [("tools/list", {"_meta": META}), ("server/discover", {})],
)
def test_a_request_without_a_name_or_a_version_needs_no_header_for_it(method: str, params: Any) -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    check_headers(JsonRpcRequest(1, method, params), headers)


@pytest.mark.parametrize(
    ("method", "member"),
    [
        *(("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")),
        *((f"tasks/{each}", "taskId") for each in ("get", "update", "cancel")),
    ],
)
def test_what_a_request_names_is_mirrored_and_the_header_may_be_missing_for_tasks_only(
    method: str, member: str
) -> None:
    request = JsonRpcRequest(1, method, {member: "x", "_meta": META})
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    check_headers(request, {**headers, "mcp-name": "x"})
    with pytest.raises(ProtocolError):
        check_headers(request, {**headers, "mcp-name": "other"})
    if member == "taskId":
        check_headers(request, headers)
        return
    with pytest.raises(ProtocolError):
        check_headers(request, headers)


@pytest.mark.parametrize(
    "changes",
    [
        {"mcp-protocol-version": None},
        {"mcp-name": None},
        {"mcp-protocol-version": "2025-11-25"},
        {"mcp-method": "TOOLS/CALL"},
        {"mcp-name": "get_tides"},
        {"mcp-method": "=?base64?dG9vbHMvY2FsbA==?="},  # only names and arguments may be encoded
        {"mcp-name": "=?base64?!!!?="},
    ],
)
def test_a_missing_or_different_header_is_a_mismatch(changes: dict[str, str | None]) -> None:
    headers = {name: value for name, value in {**AGREEING, **changes}.items() if value is not None}
    with pytest.raises(ProtocolError) as refused:
        check_headers(CALL, headers)
    assert refused.value.code == HEADER_MISMATCH
    assert "more than once" not in refused.value.message


@pytest.mark.parametrize("separator", [",", ", ", " ,\t"])
@pytest.mark.parametrize("name", sorted(AGREEING))
def test_a_header_that_is_sent_twice_with_one_value_is_named(name: str, separator: str) -> None:
    for value in (AGREEING[name], "=?base64?Z2V0X3dlYXRoZXI=?="):
        if value == AGREEING[name] or name == "mcp-name":
            with pytest.raises(ProtocolError, match="more than once") as caught:
                check_headers(CALL, {**AGREEING, name: f"{value}{separator}{value}"})
            assert caught.value.code == HEADER_MISMATCH


MIRRORED: dict[tuple[str, ...], str] = {("a",): "Value"}
HEADER = "mcp-param-value"

text = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
integers = st.integers(-MAX_INTEGER, MAX_INTEGER)
values = text | integers | st.booleans()


def accepts(value: Any, header: str | None) -> bool:
    headers = {} if header is None else {HEADER: header}
    try:
        check_parameter_headers(MIRRORED, {"a": value}, headers)
    except ProtocolError as refused:
        if refused.code != HEADER_MISMATCH:
            raise
        return False
    return True


@given(values, values)
@example("1", 1)
@example("true", True)
@example(True, 1)
@example(MAX_INTEGER, MAX_INTEGER - 1)
@example("Value", "value")
@example(" a", "a")
def test_the_header_of_a_client_for_another_value_is_refused(value: Any, other: Any) -> None:
    sent = build_parameter_headers(MIRRORED, {"a": other})
    same_text = (value if isinstance(value, str) else compact_json(value)) == (
        other if isinstance(other, str) else compact_json(other)
    )
    assume(not same_text)  # a header has no types: 1 and "1" look the same
    assert not accepts(value, sent[HEADER])


@given(values)
def test_headers_of_our_clients_and_of_the_official_one_are_accepted(value: Any) -> None:
    headers = build_parameter_headers(MIRRORED, {"a": value})
    assert headers.keys() == {HEADER}
    assert headers[HEADER].isascii()
    assert headers[HEADER].isprintable()
    official = mcp_param_headers(MIRRORED, {"a": value})
    for sent in (headers, {name.lower(): header for name, header in official.items()}):
        check_parameter_headers(MIRRORED, {"a": value}, sent)


@given(text)
def test_a_value_may_always_be_base64_encoded(value: str) -> None:
    assert accepts(value, encode_header("\n" + value)) == (value == "\n" + value)
    assert accepts("\n" + value, encode_header("\n" + value))


@given(st.recursive(values | st.none() | st.floats(), lambda inner: st.lists(inner)), st.text() | st.none())
def test_any_header_is_accepted_or_refused_as_mismatch(value: Any, header: str | None) -> None:
    accepts(value, header)


ACCEPTED_AND_REFUSED: Sequence[tuple[str, Sequence[str], Sequence[str | None]]] = [
    ('"us"', ["us", "  us\t"], ["US", "us,us", "eu", "u\x00s"]),
    ('"Größe"', [], ["Größe"]),
    ('" us"', [], [" us"]),
    ('""', ["", "=?base64??="], [None]),
    ('"1"', [], ["1.0"]),
    ('"true"', [], ["True"]),
    ("true", [], ["True", "1", None]),
    ("false", [], [""]),
    ("42", ["42", "42.0", "4.2e1", "=?base64?NDI=?="], ["42.5", "43", "-42", "042", "+42", "0x2a", "4_2"]),
    ("42", [], ["٤٢", "42 43", "", None]),
    ("42.0", ["42"], []),
    ("1000", ["1e3"], []),
    ("1e3", ["1000"], []),
    ("0", ["-0"], []),
    ("1", [], ["true", "1e99999999999999999999", "NaN"]),
    ("9007199254740991", ["9007199254740991", "9007199254740991.0"], []),
    ("9007199254740991", [], ["9007199254740990.9", "9007199254740991.1"]),
    ("9007199254740990", [], ["9007199254740991"]),
    ("-9007199254740991", ["-9007199254740991"], []),
]
"""A value in the body, and headers for it."""


@pytest.mark.parametrize(("body", "accepted", "refused"), ACCEPTED_AND_REFUSED)
def test_strings_and_booleans_are_compared_exactly_and_integers_as_numbers(
    body: str, accepted: Sequence[str], refused: Sequence[str | None]
) -> None:
    value = parse_json(body)
    assert [header for header in accepted if not accepts(value, header)] == []
    assert [header for header in refused if accepts(value, header)] == []


@pytest.mark.parametrize("value", [2**53, -(2**53), 2**53 + 1, 10**4000, 1e16])
def test_integers_outside_the_safe_range_are_refused(value: float) -> None:
    assert not accepts(value, "9007199254740992")
    assert not accepts(value, str(int(value)))
    assert not accepts(value, None)


def test_a_header_is_neither_needed_nor_allowed_where_there_is_no_value() -> None:
    for arguments in ({}, {"a": None}):
        check_parameter_headers(MIRRORED, arguments, {})
        assert build_parameter_headers(MIRRORED, arguments) == {}
        for header in ("us", "null", ""):
            with pytest.raises(ProtocolError):
                check_parameter_headers(MIRRORED, arguments, {HEADER: header})


@pytest.mark.parametrize("value", [[], ["us"], {}, {"us": 1}])
def test_an_argument_that_a_header_cannot_express_is_left_to_argument_validation(value: Any) -> None:
    check_parameter_headers(MIRRORED, {"a": value}, {})
    assert build_parameter_headers(MIRRORED, {"a": value}) == {}
    assert not accepts(value, "us")
    assert not accepts(value, compact_json(value))


def test_a_nested_value_is_found_by_its_path_and_absent_in_a_non_object() -> None:
    mirrored = {("limits", "rows"): "Rows", ("a.b",): "Dotted"}
    arguments: dict[str, Any] = {"limits": {"rows": 5}, "a.b": "x", "rows": 6, "a": {"b": "y"}}
    headers = {"mcp-param-rows": "5", "mcp-param-dotted": "x"}
    assert build_parameter_headers(mirrored, arguments) == headers
    check_parameter_headers(mirrored, arguments, headers)
    with pytest.raises(ProtocolError):
        check_parameter_headers(mirrored, arguments, {**headers, "mcp-param-rows": "6"})
    for limits in (None, "rows", 5, [5], [["rows", 5]]):
        check_parameter_headers(mirrored, {**arguments, "limits": limits}, {"mcp-param-dotted": "x"})
        with pytest.raises(ProtocolError):
            check_parameter_headers(mirrored, {**arguments, "limits": limits}, headers)


@pytest.mark.parametrize("header", [None, "other-secret", "=?base64?!?="])
def test_a_refusal_names_the_declared_header_without_values(header: str | None) -> None:
    headers = {} if header is None else {HEADER: header}
    with pytest.raises(ProtocolError) as refused:
        check_parameter_headers(MIRRORED, {"a": "secret"}, headers)
    assert "Mcp-Param-Value" in refused.value.message
    assert ("Clients list" in refused.value.message) is (header is None)
    assert "secret" not in refused.value.message
