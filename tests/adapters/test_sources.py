"""All event sources with a Server's Lambda handler."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Context, Server
from mcp_roundtrip.adapters.detect import UnknownEventSource
from mcp_roundtrip.auth.callers import AuthMode, EventAuthenticator
from mcp_roundtrip.engine.deadline import RESPONSE_MARGIN_MS
from mcp_roundtrip_tools.events import Event
from support.deployment import Deployment
from support.event_sources import GATEWAYS, HTTP_SOURCES, sent_by, with_context, with_header, with_method
from support.json_values import any_json
from support.messages import call, message

CLAIMS = {"sub": "alice", "iss": "https://idp.test/", "client_id": "app"}
ROLE = {"accountId": "123456789012", "userArn": "arn:aws:sts::123456789012:assumed-role/role/one"}


server = Server("sources")


@server.tool
def whoami(ctx: Context) -> str:
    return str(ctx.principal and ctx.principal.canonical())


@server.tool
def remaining(ctx: Context) -> int:
    return int(ctx.remaining_ms)


def invoke(event: Event, mode: AuthMode = AuthMode.NONE, **facets: Any) -> Any:
    """Return what Lambda returns, which has 15 minutes, where callers are identified in this way."""
    ports = {"authenticator": EventAuthenticator(mode, "tenant")}
    client = Deployment(server, replaced_ports=ports, round_ms=900_000, **facets)
    return client.invoke(event)


def answer(event: Event, mode: AuthMode = AuthMode.NONE) -> tuple[int, Any]:
    response = invoke(event, mode)
    return response["statusCode"], json.loads(response["body"]) if response["body"] else None


@pytest.mark.parametrize(
    ("source", "limit_ms", "headers"),
    [
        ("http_api", 30_000, "headers"),
        ("http_api_1_0", 30_000, "headers"),
        ("rest_api", 29_000, "headers"),
        ("function_url", 900_000, "headers"),
        ("alb", 60_000, "headers"),
        ("alb_multi_value", 60_000, "multiValueHeaders"),
    ],
)
def test_a_call_has_the_time_limit_and_the_response_format_of_its_source(
    source: str, limit_ms: int, headers: str
) -> None:
    response = invoke(sent_by(source, call("remaining")))
    result = json.loads(response["body"])["result"]
    assert (response["statusCode"], result["structuredContent"]) == (200, limit_ms - RESPONSE_MARGIN_MS)
    assert response[headers]["content-type"] in ("application/json", ["application/json"])
    assert {"headers", "multiValueHeaders"} & response.keys() == {headers}
    assert ("statusDescription" in response) == source.startswith("alb")
    assert response["isBase64Encoded"] is False


@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_each_source_reads_a_request_and_formats_each_response(source: str) -> None:
    event = sent_by(source, call("whoami"))
    encoded = b64encode(event["body"].encode()).decode()
    assert answer({**event, "body": encoded, "isBase64Encoded": True})[0] == 200
    assert answer({**event, "body": encoded + "=", "isBase64Encoded": True})[1]["error"]["code"] == -32700
    assert answer(with_method(event, "GET"))[0] == 405
    status, mismatch = answer(with_header(event, "MCP-NAME", "other"))  # a mirrored header in two spellings
    assert (status, mismatch["error"]["code"]) == (400, -32020)
    notification = sent_by(source, message("notifications/cancelled", requestId=1))
    body = json.loads(notification["body"])
    del body["id"]
    assert answer({**notification, "body": json.dumps(body)}) == (202, None)


def contexts(source: str, kind: str) -> dict[str, Any]:
    """Return the request context of a caller that an authorizer of this kind has identified."""
    of_gateway: dict[str, dict[str, Any]] = {
        "jwt": {"authorizer": {"claims": CLAIMS}},
        "lambda": {"authorizer": {"principalId": "alice", "tenant": "blue"}},
        "iam": {"identity": {**ROLE, "user": "AROAEXAMPLE:one"}},
    }
    nested: dict[str, Any] = {
        "jwt": {"claims": CLAIMS},
        "lambda": {"tenant": "blue"},
        "iam": {**ROLE, "userId": "AROAEXAMPLE:one"},
    }
    return of_gateway[kind] if source in GATEWAYS else {"authorizer": {kind: nested[kind]}}


MODES = {"jwt": AuthMode.JWT, "lambda": AuthMode.LAMBDA, "iam": AuthMode.IAM}


@pytest.mark.parametrize("source", GATEWAYS)
@pytest.mark.parametrize("kind", MODES)
def test_a_caller_is_the_same_principal_through_every_api(source: str, kind: str) -> None:
    callers = set()
    for each in ("http_api", source):
        event = with_context(sent_by(each, call("whoami")), **contexts(each, kind))
        status, body = answer(event, MODES[kind])
        assert status == 200, body
        callers.add(body["result"]["content"][0]["text"])
    assert len(callers) == 1
    assert callers != {"None"}


INCOMPLETE: list[dict[str, Any]] = [
    {"authorizer": None},
    {"authorizer": {}, "identity": {}},
    {"authorizer": {"claims": None, "scopes": None}},
    {"authorizer": {"claims": {}}},
    {"authorizer": {"claims": {"sub": "alice"}}},
    {"authorizer": {"claims": {"sub": ["alice"], "iss": "https://idp.test/"}}},
    {"authorizer": {"claims": "alice"}},
    {"authorizer": {"principalId": "alice"}},
    {"authorizer": {"principalId": "alice", "claims": CLAIMS}},
    {"authorizer": {"tenant": None, "principalId": "alice"}},
    {"authorizer": "alice"},
    {"identity": {"userArn": ROLE["userArn"]}},
    {"identity": {**ROLE, "user": None}},
    {"identity": {**ROLE, "user": ""}},
    {"identity": {"user": "AROAEXAMPLE:one", "accountId": "123456789012"}},
    {"authorizer": {"jwt": {"claims": CLAIMS}}},
    {"authorizer": {"iam": {**ROLE, "userId": "AROAEXAMPLE:one"}}},
    {"authorizer": {"lambda": {"tenant": "blue"}}},
]


@pytest.mark.parametrize("source", GATEWAYS)
@pytest.mark.parametrize("kind", MODES)
def test_a_missing_or_incomplete_context_does_not_identify_a_caller(source: str, kind: str) -> None:
    event = sent_by(source, call("whoami"))
    statuses = [(answer(with_context(event, **context), MODES[kind])[0], context) for context in INCOMPLETE]
    assert [context for status, context in statuses if status != 401] == []


@pytest.mark.parametrize("source", ["alb", "alb_multi_value"])
@pytest.mark.parametrize("kind", MODES)
def test_a_load_balancer_does_not_identify_a_caller(source: str, kind: str) -> None:
    event = with_header(sent_by(source, call("whoami")), "x-amzn-oidc-identity", "alice")
    for claimed in contexts("http_api", kind), contexts("rest_api", kind):
        assert answer(with_context(event, **claimed), MODES[kind])[0] == 401


ODD_VALUES = any_json(max_leaves=4)


def with_odd_member(event: Any, data: st.DataObject) -> Any:
    """Replace any member at any depth by any value."""
    name = data.draw(st.sampled_from(list(event)))
    descends = isinstance(event[name], dict) and event[name] and data.draw(st.booleans())
    return {**event, name: with_odd_member(event[name], data) if descends else data.draw(ODD_VALUES)}


@given(st.data(), st.sampled_from(HTTP_SOURCES), st.sampled_from([AuthMode.NONE, *MODES.values()]))
def test_any_value_of_any_member_gets_a_response(data: st.DataObject, source: str, mode: AuthMode) -> None:
    try:
        response = invoke(with_odd_member(sent_by(source, call("whoami")), data), mode)
    except UnknownEventSource:  # no longer an event of a request
        return
    assert response["statusCode"] in (200, 400, 401, 403, 404, 405)
    json.dumps(response)
