"""Application Load Balancer without multi-value headers."""

from __future__ import annotations

import pytest

from mcp_roundtrip.adapters.event_formats import ADAPTERS
from mcp_roundtrip.protocol.http import HttpResponse
from support.event_sources import any_call, sent_by, with_context, with_header

parse_request, format_response = ADAPTERS["alb"]

EVENT = sent_by("alb", any_call())


def test_the_request_is_read_from_the_event() -> None:
    request = parse_request(EVENT)
    assert (request.method, request.path, request.source_limit_ms) == ("POST", "/mcp", 60_000)
    assert request.headers["mcp-name"] == "whoami"
    assert request.max_response_bytes < 1_000_000


def test_headers_of_the_load_balancer_do_not_identify_a_caller() -> None:
    event = with_header(EVENT, "x-amzn-oidc-identity", "alice")
    assert parse_request(event).authorizer == {}
    assert parse_request(with_context(event, authorizer={"jwt": {"claims": {}}})).authorizer == {}


@pytest.mark.parametrize(("status", "described"), [(200, "200 OK"), (405, "405 Method Not Allowed")])
def test_the_response_has_a_status_description(status: int, described: str) -> None:
    assert format_response(HttpResponse(status, "{}", {"allow": "POST"})) == {
        "statusCode": status,
        "statusDescription": described,
        "headers": {"allow": "POST"},
        "body": "{}",
        "isBase64Encoded": False,
    }


def test_multi_value_headers_are_read_and_the_rest_is_as_without_them() -> None:
    request = ADAPTERS["alb_multi_value"].parse_request(sent_by("alb_multi_value", any_call()))
    assert request == parse_request(sent_by("alb", any_call()))


def test_a_multi_value_response_has_only_lists_of_headers() -> None:
    response = ADAPTERS["alb_multi_value"].format_response(HttpResponse(202, "", {"allow": "POST"}))
    assert response["multiValueHeaders"] == {"allow": ["POST"]}
    assert "headers" not in response
