"""Lambda function URLs."""

from __future__ import annotations

from mcp_roundtrip.adapters import function_url, http_api
from support.sources import any_call, sent_by, with_context

EVENT = sent_by("function_url", any_call())


def test_a_function_url_has_no_limit_of_its_own() -> None:
    assert function_url.request(EVENT).source_limit_ms is None


def test_everything_else_is_as_in_payload_2_0() -> None:
    event = with_context(EVENT, authorizer={"iam": {"userId": "AROAEXAMPLE:session"}})
    request, as_http_api = function_url.request(event), http_api.request(event)
    assert (request.method, request.path, request.headers) == ("POST", "/mcp", as_http_api.headers)
    assert (request.body, request.authorizer) == (as_http_api.body, as_http_api.authorizer)
