"""API Gateway REST API."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_roundtrip.adapters.event_formats import ADAPTERS
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from support.event_sources import any_call, sent_by, with_context

parse_request = ADAPTERS["rest_api"].parse_request

EVENT = sent_by("rest_api", any_call())
CLAIMS = {"sub": "alice", "iss": "https://idp.test/"}
IDENTITY = {
    "accountId": "123456789012",
    "accessKey": "AKIAEXAMPLE",
    "caller": "AROAEXAMPLE:session",
    "user": "AROAEXAMPLE:session",
    "userArn": "arn:aws:sts::123456789012:assumed-role/role/session",
    "sourceIp": "203.0.113.7",
}


def authorizer(**context: Any) -> Any:
    return parse_request(with_context(EVENT, **context)).authorizer


def test_the_request_is_read_from_the_event() -> None:
    request = parse_request(EVENT)
    assert (request.method, request.path, request.source_limit_ms) == ("POST", "/mcp", 29_000)
    assert request.headers["mcp-name"] == "whoami"


def test_single_value_headers_are_read_without_multi_value_headers() -> None:
    request = parse_request({**EVENT, "multiValueHeaders": None})
    assert request.headers == parse_request(EVENT).headers


def test_a_path_that_starts_with_the_name_of_the_stage_is_not_changed() -> None:
    stage = EVENT["requestContext"]["stage"]
    assert parse_request({**EVENT, "path": f"/{stage}/mcp"}).path == f"/{stage}/mcp"


def test_claims_of_a_cognito_or_jwt_authorizer_are_mapped_as_in_payload_2_0() -> None:
    assert authorizer(authorizer={"claims": CLAIMS}) == {"jwt": {"claims": CLAIMS}}
    scopes = ["a", "b"]
    assert authorizer(authorizer={"claims": CLAIMS, "scopes": scopes})["jwt"]["scopes"] == scopes


def test_the_context_of_a_lambda_authorizer_is_mapped_as_in_payload_2_0() -> None:
    context = {"principalId": "alice", "tenant": "blue", "integrationLatency": 7}
    assert authorizer(authorizer=context) == {"lambda": context}


def test_claims_in_the_context_of_a_lambda_authorizer_are_not_claims_of_a_jwt() -> None:
    context = {"principalId": "alice", "claims": CLAIMS}
    assert authorizer(authorizer=context) == {"lambda": context}
    assert authorizer(authorizer={"claims": "text"}) == {"lambda": {"claims": "text"}}


def test_an_iam_identity_is_mapped_as_in_payload_2_0() -> None:
    assert authorizer(identity=IDENTITY) == {
        "iam": {
            "accountId": "123456789012",
            "accessKey": "AKIAEXAMPLE",
            "callerId": "AROAEXAMPLE:session",
            "userId": "AROAEXAMPLE:session",
            "userArn": "arn:aws:sts::123456789012:assumed-role/role/session",
        }
    }


def test_users_of_a_cognito_identity_pool_have_different_identities() -> None:
    given = authorizer(identity={**IDENTITY, "cognitoIdentityId": "eu-west-1:1f0c"})
    assert given["iam"]["cognitoIdentity"] == {"identityId": "eu-west-1:1f0c"}
    assert (
        EventAuthenticator(AuthMode.IAM).authenticate({}, given).principal
        != EventAuthenticator(AuthMode.IAM).authenticate({}, authorizer(identity=IDENTITY)).principal
    )


@pytest.mark.parametrize("given", [None, {}, "x", [], {"claims": None, "scopes": None}])
def test_without_an_authorizer_there_is_no_context(given: Any) -> None:
    assert authorizer(authorizer=given) == {}


# -- HTTP APIs with payload format 1.0 --------------------------------------------------------------------

PAYLOAD_1_0 = sent_by("http_api_1_0", any_call())


def test_an_http_api_request_with_payload_1_0_has_the_limit_of_an_http_api() -> None:
    request = ADAPTERS["http_api_1_0"].parse_request(PAYLOAD_1_0)
    assert (request.method, request.source_limit_ms, request.authorizer) == ("POST", 30_000, {})
    assert request.headers["mcp-name"] == "whoami"


def test_the_path_of_payload_1_0_has_no_stage() -> None:
    assert PAYLOAD_1_0["path"] == "/prod/mcp"
    assert ADAPTERS["http_api_1_0"].parse_request(PAYLOAD_1_0).path == "/mcp"


def test_claims_of_payload_1_0_are_mapped_as_in_payload_2_0() -> None:
    claims = {"sub": "alice", "iss": "https://idp.test/"}
    event = with_context(PAYLOAD_1_0, authorizer={"claims": claims, "scopes": None})
    assert ADAPTERS["http_api_1_0"].parse_request(event).authorizer == {"jwt": {"claims": claims}}
