"""What is particular to one event source. `test_sources` has what all have in common."""

from typing import Any

import pytest

from mcp_roundtrip.adapters.detect import SOURCES
from mcp_roundtrip.adapters.event_formats import headers, multi_value_headers, without_stage
from mcp_roundtrip.auth.callers import AuthMode, EventAuthenticator
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip_tools.events import Event
from support.event_sources import GATEWAYS, HTTP_SOURCES, response_of, sent_by, with_context, with_header
from support.messages import call

REST = sent_by("rest_api", call("whoami"))
CLAIMS = {"sub": "alice", "iss": "https://idp.test/"}
IDENTITY = {
    "accountId": "123456789012",
    "accessKey": "AKIAEXAMPLE",
    "caller": "AROAEXAMPLE:session",
    "user": "AROAEXAMPLE:session",
    "userArn": "arn:aws:sts::123456789012:assumed-role/role/session",
    "sourceIp": "203.0.113.7",
}


def parse(source: str, event: Event) -> HttpRequest:
    return SOURCES[source].parse_request(event)


def authorizer(**context: Any) -> Any:
    return parse("rest_api", with_context(REST, **context)).authorizer


@pytest.mark.parametrize("source", ["http_api_1_0", "rest_api", "alb_multi_value"])
@pytest.mark.parametrize("name", ["Mcp-Name", "Mcp-Method", "Mcp-Protocol-Version", "Authorization"])
def test_every_value_of_a_repeated_header_counts(source: str, name: str) -> None:
    event = sent_by(source, call("whoami"))
    before = parse(source, event).headers.get(name.lower())
    spelled = name if source == "rest_api" else name.lower()
    twice = parse(source, with_header(event, spelled, "one", "two")).headers[name.lower()]
    assert twice == ("one, two" if before is None else f"{before}, one, two")


@pytest.mark.parametrize("source", ["http_api_1_0", "rest_api", "alb_multi_value"])
def test_a_parameter_of_the_query_counts_if_it_occurs_once(source: str) -> None:
    lists = {"token": ["a", "b"], "x": ["&token=1"], "none": []}
    event = {**sent_by(source, call("whoami")), "queryStringParameters": {"token": "b", "x": "&token=1"}}
    assert parse(source, {**event, "multiValueQueryStringParameters": lists}).query == {"x": "&token=1"}


@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_an_api_gets_a_challenge_under_a_second_name(source: str) -> None:
    """API Gateway renames the first one."""
    refused = HttpResponse(401, "{}", {"www-authenticate": "Bearer"})
    second = {"x-mcp-challenge": "Bearer"} if source in ("http_api", *GATEWAYS) else {}
    assert response_of(SOURCES[source].format_response(refused)).headers == {**refused.headers, **second}


def test_the_caller_of_a_direct_event_cannot_write_an_authorizer_context() -> None:
    event = {**call("whoami"), "requestContext": {"authorizer": {"jwt": {"claims": CLAIMS}}}}
    assert parse("jsonrpc_event", event).authorizer == {}


def test_only_the_path_of_an_http_api_has_a_stage() -> None:
    stage = REST["requestContext"]["stage"]
    assert parse("rest_api", {**REST, "path": f"/{stage}/mcp"}).path == f"/{stage}/mcp"
    event = sent_by("http_api_1_0", call("whoami"))
    assert (event["path"], parse("http_api_1_0", event).path) == ("/prod/mcp", "/mcp")
    assert parse("rest_api", {**REST, "multiValueHeaders": None}).headers == parse("rest_api", REST).headers


def test_an_authorizer_context_is_mapped_as_in_payload_2_0() -> None:
    claims = {"claims": CLAIMS, "scopes": ["a", "b"]}
    of_lambda = {"principalId": "alice", "tenant": "blue", "claims": CLAIMS}
    assert authorizer(authorizer=claims) == {"jwt": claims}
    assert authorizer(authorizer=of_lambda) == {"lambda": of_lambda}
    assert authorizer(authorizer={"claims": "text"}) == {"lambda": {"claims": "text"}}
    iam = {
        "accountId": "123456789012",
        "accessKey": "AKIAEXAMPLE",
        "callerId": "AROAEXAMPLE:session",
        "userId": "AROAEXAMPLE:session",
        "userArn": "arn:aws:sts::123456789012:assumed-role/role/session",
    }
    assert authorizer(identity=IDENTITY) == {"iam": iam}


def test_users_of_a_cognito_identity_pool_have_different_identities() -> None:
    given = authorizer(identity={**IDENTITY, "cognitoIdentityId": "eu-west-1:1f0c"})
    assert given["iam"]["cognitoIdentity"] == {"identityId": "eu-west-1:1f0c"}
    one, other = (
        EventAuthenticator(AuthMode.IAM).authenticate({}, each).principal
        for each in (given, authorizer(identity=IDENTITY))
    )
    assert one != other


def test_header_names_are_lower_case_and_no_value_of_a_repeated_header_is_dropped() -> None:
    assert headers({"headers": {"Mcp-Method": "x"}}) == {"mcp-method": "x"}
    assert headers({"headers": {"Mcp-Name": "a", "mcp-name": "b"}}) == {"mcp-name": "a, b"}
    lists = {"Authorization": ["Bearer a", "Bearer b"], "authorization": ["Bearer a"]}
    assert multi_value_headers({"multiValueHeaders": lists}) == {
        "authorization": "Bearer a, Bearer b, Bearer a"
    }


@pytest.mark.parametrize(
    ("path", "stage", "without"),
    [
        ("/mcp", "$default", "/mcp"),
        ("/mcp", "", "/mcp"),
        ("/dev/mcp", "dev", "/mcp"),
        ("/dev/dev/mcp", "dev", "/dev/mcp"),
        ("/dev/", "dev", "/"),
        ("/dev", "dev", "/"),
        ("/device", "dev", "/device"),
        ("/mcp/dev/x", "dev", "/mcp/dev/x"),
        ("", "dev", ""),
    ],
)
def test_the_stage_is_removed_from_the_path(path: str, stage: str, without: str) -> None:
    assert without_stage(path, stage) == without
