"""API Gateway HTTP API payload 1.0."""

from __future__ import annotations

from mcp_roundtrip.adapters import http_api_1_0
from support.sources import any_call, sent_by, with_context

EVENT = sent_by("http_api_1_0", any_call())


def test_the_request_is_read_from_the_event() -> None:
    request = http_api_1_0.request(EVENT)
    assert (request.method, request.source_limit_ms, request.authorizer) == ("POST", 30_000, {})
    assert request.headers["mcp-name"] == "whoami"


def test_the_path_has_no_stage() -> None:
    assert EVENT["path"] == "/prod/mcp"
    assert http_api_1_0.request(EVENT).path == "/mcp"


def test_claims_are_where_payload_2_0_has_them() -> None:
    claims = {"sub": "alice", "iss": "https://idp.test/"}
    event = with_context(EVENT, authorizer={"claims": claims, "scopes": None})
    assert http_api_1_0.request(event).authorizer == {"jwt": {"claims": claims}}
