"""The address of one owner, `/tools/<owner>`, through the front door."""

import json

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip_tools.events import post
from support import callers
from support.deployment import Deployment
from support.event_sources import HTTP_SOURCES, sent_by, with_context
from support.lambda_context import LambdaContext
from support.messages import call, message

server = Server("greetings")


@server.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


def behind_door(path="/mcp"):
    return Deployment(server, through_door=True, replaced_settings={"audience": f"https://x.test{path}"})


@pytest.fixture
def deployment():
    return behind_door()


def send(deployment, event):
    return deployment.invoke(event, LambdaContext(deployment.clock, 20_000, aws_request_id="quoted"))


CALL = call("greet", {"name": "Ada"})


def with_caller(event):
    """Return an HTTP API event of a caller that an authorizer has identified."""
    return with_context(event, authorizer=callers.authorizer(AuthMode.JWT, "alice"))


@pytest.mark.parametrize("source", HTTP_SOURCES)
@pytest.mark.parametrize("path", ["/tools/owner", "/base/path/tools/owner"])
def test_the_owner_gets_the_event_and_its_response_is_returned_as_it_is(source, path, deployment):
    event = sent_by(source, CALL, path)
    response = send(deployment, event)
    [(_, forwarded, custom, _)] = deployment.forwarded
    assert forwarded == event
    assert response == server.lambda_handler(event, LambdaContext(custom=custom))


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
    deployment = behind_door(audience)
    assert "result" in json.loads(send(deployment, with_caller(post(path, message("tools/list"))))["body"])
    send(deployment, with_caller(post(owned, CALL)))
    assert len(deployment.forwarded) == 1
    assert send(deployment, with_caller(post(unknown, CALL)))["statusCode"] == 404
