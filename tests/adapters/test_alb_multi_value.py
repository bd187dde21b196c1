"""Application Load Balancer with multi-value headers."""

from __future__ import annotations

from mcp_roundtrip.adapters import alb, alb_multi_value
from mcp_roundtrip.http import HttpResponse
from support.sources import any_call, sent_by


def test_the_request_is_that_of_a_target_group_without() -> None:
    request = alb_multi_value.request(sent_by("alb_multi_value", any_call()))
    assert request == alb.request(sent_by("alb", any_call()))


def test_the_response_has_lists_of_headers_and_nothing_else() -> None:
    response = alb_multi_value.response(HttpResponse(202, "", {"allow": "POST"}))
    assert response["multiValueHeaders"] == {"allow": ["POST"]}
    assert "headers" not in response
