"""The address of one owner, `/tools/<owner>`, through the front door."""

import json

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip_tools.events.of_application import post
from support import callers
from support.deployment import Deployment
from support.event_sources import HTTP_SOURCES, sent_by, with_context, with_method
from support.lambda_context import LambdaContext
from support.messages import call, message

BASE = "https://x.test"

server = Server("greetings")


@server.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


def behind_door(audience=BASE + "/mcp", **facets):
    return Deployment(server, through_door=True, replaced_settings={"audience": audience}, **facets)


@pytest.fixture
def deployment():
    return behind_door()


def send(deployment, event):
    return deployment.invoke(event, LambdaContext(deployment.clock, 20_000, aws_request_id="quoted"))


CALL = call("greet", {"name": "Ada"})


def with_caller(event):
    """Return an HTTP API event of a caller that an authorizer has identified."""
    return with_context(event, authorizer=callers.authorizer(AuthMode.JWT, "alice"))


def body(response):
    return json.loads(response["body"])


@pytest.mark.parametrize("source", HTTP_SOURCES)
@pytest.mark.parametrize("path", ["/tools/owner", "/base/path/tools/owner"])
def test_the_owner_gets_the_event_and_its_response_is_returned_as_it_is(source, path, deployment):
    event = sent_by(source, CALL, path)
    response = send(deployment, event)
    [(_, forwarded, custom, _)] = deployment.forwarded
    assert forwarded == event
    assert response == server.lambda_handler(event, LambdaContext(custom=custom))


def test_the_owner_gets_the_time_that_is_left_and_the_correlation_id(deployment):
    send(deployment, with_caller(post("/tools/owner", CALL)))
    [(_, _, custom, timeout_s)] = deployment.forwarded
    assert timeout_s == 18
    assert custom["mcpDeadlineMs"] == int((deployment.clock() + 18) * 1000)
    assert custom["mcpCorrelationId"] == "quoted"
    assert ("request_forwarded", {"owner": "owner"}) in deployment.observer.events


NO_ID = {name: value for name, value in CALL.items() if name != "id"}


@pytest.mark.parametrize(
    ("sent", "request_id"), [(CALL, 1), ({**CALL, "id": "a"}, "a"), (NO_ID, None), ([], None)]
)
def test_a_lost_owner_is_an_internal_error_with_the_id_of_the_request(sent, request_id):
    attempts = []

    def forward(owner, *rest):
        attempts.append(owner)
        raise ForwardingFailed("TooManyRequestsException")

    deployment = behind_door(replaced_ports={"forward": forward})
    event = {**post("/tools/owner", CALL), "body": json.dumps(sent)}
    response = send(deployment, event)
    assert (response["statusCode"], body(response)["error"]["code"]) == (200, -32603)
    assert body(response).get("id") == request_id
    assert "quoted" in body(response)["error"]["message"]
    [(event_name, error)] = deployment.observer.failures
    assert (event_name, error.reason) == ("forwarding_failed", "TooManyRequestsException")
    assert attempts == ["owner"]
    got = send(deployment, with_method(event, "GET"))
    assert got["statusCode"] == 500, "for a client that evaluates the status"


def test_a_call_whose_owner_crashed_is_logged_with_its_tool():
    def forward(*_):
        raise ForwardingFailed("Runtime.ExitError")

    deployment = behind_door(replaced_ports={"forward": forward})
    send(deployment, with_caller(post("/mcp", CALL)))
    fields = {"owner": "owner", "method": "tools/call", "feature": "greet"}
    assert ("forwarding_failed", fields) in deployment.observer.events


NO_OWNERS = [
    *("/tools/", "/tools/other", "/tools/door", "/tools/Owner", "/tools/owner/", "/tools/owner/mcp"),
    *("/tools/owner/questions", "/tools/owner_worker", "/tools/../owner", "/tools/other/tools/owner"),
    *("/tools/owner/tools/owner", "/tools/*"),
]


@pytest.mark.parametrize("path", NO_OWNERS)
def test_a_path_that_no_owner_has_does_not_exist(path, deployment):
    response = send(deployment, with_caller(post(path, CALL)))
    assert response["statusCode"] == 404
    assert deployment.forwarded == []


@pytest.mark.parametrize(
    ("audience", "path", "owned", "unknown"),
    [
        ("/tools/mcp", "/tools/mcp", "/tools/owner", "/tools/mcp2"),
        ("/tools/mcp", "/tools/mcp/", "/tools/owner", "/tools/mcp2"),
        ("/tools/team/mcp", "/tools/team/mcp", "/tools/team/tools/owner", "/tools/other/tools/owner"),
    ],
)
def test_a_front_door_below_tools_is_found_by_its_audience(audience, path, owned, unknown):
    deployment = behind_door(BASE + audience)
    assert "result" in body(send(deployment, with_caller(post(path, message("tools/list")))))
    send(deployment, with_caller(post(owned, CALL)))
    assert len(deployment.forwarded) == 1
    assert send(deployment, with_caller(post(unknown, CALL)))["statusCode"] == 404
