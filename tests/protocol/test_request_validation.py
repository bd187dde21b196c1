"""Request validation: which check fails first, and with which error."""

import json
from typing import Any

import pytest

from mcp_roundtrip.protocol.jsonrpc import Notification
from mcp_roundtrip.protocol.request_validation import (
    InvalidRequest,
    RequestMeta,
    ValidRequest,
    validate_request,
)
from support.messages import META, call, headers, message

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


Outcome = ValidRequest | Notification | InvalidRequest


def run(body: dict[str, Any], **changes: str | None) -> Outcome:
    return validate_request(headers(body, **changes), json.dumps(body))


def invalid(outcome: Outcome, code: int) -> InvalidRequest:
    """Return a request that was refused with this code."""
    assert isinstance(outcome, InvalidRequest), outcome
    assert outcome.failure.code == code
    return outcome


def valid(outcome: Outcome) -> ValidRequest:
    assert isinstance(outcome, ValidRequest), outcome
    return outcome


def test_a_valid_request_has_all_declared_members_and_a_notification_needs_none() -> None:
    route = valid(run(message("tools/list", id="x", meta={**META, "progressToken": 3, LOG_LEVEL: "info"})))
    assert (route.id, route.method) == ("x", "tools/list")
    assert route.meta == RequestMeta("2026-07-28", META[CAPABILITIES], META[CLIENT], 3, "info")
    notification = validate_request({}, '{"jsonrpc":"2.0","method":"notifications/cancelled"}')
    assert notification == Notification("notifications/cancelled")


@pytest.mark.parametrize("version", ["1900-01-01", "2025-11-25", "2027-01-01", ""])
def test_a_version_that_is_not_served_is_refused_with_those_that_are(version: str) -> None:
    body = message("tools/list", meta={**META, VERSION: version})
    refused = invalid(run(body, mcp_protocol_version=version), -32022)
    notified = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    also_refused = invalid(validate_request({"mcp-protocol-version": version}, notified), -32022)
    for each in (refused, also_refused):
        assert each.failure.data == {"supported": ["2026-07-28"], "requested": version}


@pytest.mark.parametrize(
    "change",
    [
        {VERSION: 7},
        {CAPABILITIES: []},
        {CLIENT: "me"},
        {"progressToken": True},
        {"progressToken": "x" * 1_025},
        {"progressToken": 10**1_024},
        {"progressToken": "\ud800"},
        {LOG_LEVEL: "loud"},
    ],
)
def test_a_field_of_the_wrong_type_is_invalid_params(change: dict[str, Any]) -> None:
    invalid(run(message("tools/list", meta={**META, **change})), -32602)


@pytest.mark.parametrize("name", [CLIENT, LOG_LEVEL, "progressToken", "traceparent", "baggage"])
def test_an_optional_field_that_is_null_counts_as_absent(name: str) -> None:
    without = {member: value for member, value in META.items() if member != name}
    absent, null = (run(message("tools/list", meta=meta)) for meta in (without, {**META, name: None}))
    assert valid(null).meta == valid(absent).meta


@pytest.mark.parametrize("token", ["x" * 1_024, 10**1_024 - 1, 1 - 10**1_023, "", 0])
def test_a_progress_token_may_be_as_long_as_an_id(token: str | int) -> None:
    route = valid(run(message("tools/list", id=token, meta={**META, "progressToken": token})))
    assert (route.id, route.meta.progress_token) == (token, token)


@pytest.mark.parametrize("name", [7, None, ["x"], {}])
def test_a_name_of_the_wrong_type_is_not_a_header_mismatch(name: Any) -> None:
    valid(run(call("x") | {"params": {"name": name, "_meta": META}}, mcp_name="x"))


def legacy(body: dict[str, Any], headers: dict[str, str] | None = None) -> Outcome:
    return validate_request(headers or {}, json.dumps(body), serves_legacy=True)


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ({}, "2025-11-25"),
        ({"mcp-protocol-version": "2025-11-25"}, "2025-11-25"),
        ({"mcp-protocol-version": " 2025-06-18 "}, "2025-06-18"),
        ({"mcp-method": "tools/list", "mcp-name": "x"}, "2025-11-25"),
    ],
    ids=str,
)
@pytest.mark.parametrize("meta", [None, {}, {"progressToken": 3}, {CAPABILITIES: {"roots": {}}}], ids=str)
def test_a_legacy_request_is_valid_if_legacy_clients_are_served(
    headers: dict[str, str], version: str, meta: Any
) -> None:
    route = valid(legacy(message("tools/list", meta=meta), headers))
    assert route.is_legacy
    declared = (meta or {}).get(CAPABILITIES)
    assert route.meta == RequestMeta(
        version,
        declared or {},
        progress_token=(meta or {}).get("progressToken"),
        knows_capabilities=declared is not None,
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-method": " tools/call"},
        {"mcp-name": "=?base64?eA==?="},
        {"mcp-method": "tools/call", "mcp-name": "x"},
    ],
    ids=str,
)
def test_headers_of_a_legacy_request_are_optional_but_must_agree(headers: dict[str, str]) -> None:
    body = message("tools/call", meta=None)
    body["params"]["name"] = "x"
    valid(legacy(body, headers))
    for name, other in (
        ("mcp-method", "tools/list"),
        *(("mcp-name", each) for each in ("y", "", "=?base64?e?=")),
    ):
        invalid(legacy(body, {**headers, name: other}), -32020)


@pytest.mark.parametrize(
    "meta", ["x", [], 7, {CAPABILITIES: []}, {"progressToken": True}, {"progressToken": "x" * 1_025}]
)
def test_malformed_metadata_of_a_legacy_request_is_invalid_params(meta: Any) -> None:
    assert invalid(legacy(message("tools/list", meta=meta)), -32602).is_legacy


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", ""])
def test_an_unknown_legacy_version_is_refused_also_with_a_notification(version: str) -> None:
    opened = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for body in (message("tools/list", meta=None), opened):
        assert not invalid(legacy(body, {"mcp-protocol-version": version}), -32022).is_legacy
    assert legacy(opened, {"mcp-protocol-version": "2025-06-18"}) == Notification(opened["method"])


@pytest.mark.parametrize("version", ["2026-07-28", "2025-03-26", "x"])
def test_initialize_negotiates_the_version_in_its_body_whatever_its_header_says(version: str) -> None:
    body = message("initialize", meta=None, protocolVersion=version)
    assert valid(legacy(body, {"mcp-protocol-version": version})).is_legacy


def test_modern_requests_are_checked_equally_if_legacy_clients_are_served() -> None:
    body = message("server/discover")
    assert not valid(legacy(body, headers(body))).is_legacy
    invalid(legacy(body), -32020)
    bare = message("server/discover", meta=None)
    invalid(legacy(bare, headers(bare)), -32602)
