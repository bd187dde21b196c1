"""API Gateway HTTP API payload 2.0."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip.adapters.event_formats import ADAPTERS
from mcp_roundtrip.protocol.http import HttpResponse
from support.event_sources import any_call, sent_by, with_context
from support.messages import http_event

parse_request, format_response = ADAPTERS["http_api"]


def test_the_request_is_read_from_the_event() -> None:
    authorizer = {"jwt": {"claims": {"sub": "a"}}}
    request = parse_request(http_event("{}", headers={"Mcp-Method": "x"}, authorizer=authorizer))
    assert (request.method, request.path, request.body) == ("POST", "/mcp", "{}")
    assert request.authorizer == authorizer
    assert request.headers == {"mcp-method": "x"}
    assert request.source_limit_ms == 30_000


def test_a_request_without_body_and_headers_is_read() -> None:
    event = {"version": "2.0", "requestContext": {"http": {"method": "GET"}}}
    request = parse_request(event)
    assert (request.method, request.path, request.body, dict(request.headers)) == ("GET", "", "", {})


def test_the_path_has_no_stage() -> None:
    event = {**with_context(http_event("{}"), stage="dev"), "rawPath": "/dev/mcp"}
    assert parse_request(event).path == "/mcp"


def test_a_base64_body_is_decoded_to_bytes() -> None:
    event = http_event(b64encode("é".encode()).decode(), base64=True)
    assert parse_request(event).body == "é".encode()


@pytest.mark.parametrize("body", ["%%%", "abc", "é", 7])
def test_a_body_that_is_not_base64_is_read_as_none(body: Any) -> None:
    assert parse_request({**http_event("", base64=True), "body": body}).body is None


@pytest.mark.parametrize("authorizer", [None, "x", [], 7])
def test_an_authorizer_context_of_another_type_is_none(authorizer: Any) -> None:
    assert parse_request(with_context(http_event("{}"), authorizer=authorizer)).authorizer == {}


def test_the_response_has_the_members_that_api_gateway_reads() -> None:
    assert format_response(HttpResponse(202, "", {"allow": "POST"})) == {
        "statusCode": 202,
        "headers": {"allow": "POST"},
        "body": "",
        "isBase64Encoded": False,
    }


FUNCTION_URL_EVENT = sent_by("function_url", any_call())


def test_a_function_url_has_no_time_limit() -> None:
    assert ADAPTERS["function_url"].parse_request(FUNCTION_URL_EVENT).source_limit_ms is None


def test_a_function_url_request_equals_an_http_api_request_except_for_the_limit() -> None:
    event = with_context(FUNCTION_URL_EVENT, authorizer={"iam": {"userId": "AROAEXAMPLE:session"}})
    request, expected = (ADAPTERS[name].parse_request(event) for name in ("function_url", "http_api"))
    assert (request.method, request.path) == ("POST", "/mcp")
    assert replace(request, source_limit_ms=30_000, endpoint_uri=None) == expected
