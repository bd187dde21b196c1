"""The address of one owner, `/tools/<owner>`, through the front door."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import META_SERVER_INFO
from mcp_roundtrip_local.catalog import catalog_lists
from mcp_roundtrip_local.sample_events.messages import Event, post
from mcp_roundtrip_testing import FakeClock, make_ports
from mcp_roundtrip_testing.observers import RecordingObserver
from support.event_sources import HTTP_SOURCES, sent_by
from support.messages import call, message

BASE = "https://x.test"
OWN = "/mcp"


class Context:
    """A Lambda context with 20 s left. `custom` is what a front door sent."""

    aws_request_id = "quoted"

    def __init__(self, custom: Mapping[str, Any] | None = None) -> None:
        self.client_context = SimpleNamespace(custom=custom)

    def get_remaining_time_in_millis(self) -> int:
        return 20_000


class Deployment:
    """A front door and one owner, `greetings`, in this process. `forwarded` has what the owner was sent."""

    def __init__(self, folder: Path, failure: str | None = None, audience: str = BASE + OWN) -> None:
        self.clock, self.observer = FakeClock(), RecordingObserver()
        self.failure = failure
        self.forwarded: list[tuple[Any, Mapping[str, Any], int]] = []
        auth = EventAuthenticator(AuthMode.JWT)
        ports = make_ports(clock=self.clock, observer=self.observer, auth=auth, forward=self._forward)
        self.ports: Ports = replace(ports, config=replace(ports.config, audience=lambda: audience))
        self.owner = Server("greetings", ports=lambda: self.ports)
        self.owner.tool(greet)
        catalog = folder / "catalog.json"
        catalog.write_text(json.dumps(catalog_lists({"greetings": self.owner})))
        self.door = FrontDoor("door", catalog, ports=lambda: self.ports)

    def send(self, event: Event) -> Any:
        return self.door.lambda_handler(event, Context())

    def _forward(
        self, owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
    ) -> Any:
        assert owner == "greetings"
        self.forwarded.append((event, custom, timeout_s))
        if self.failure is not None:
            raise ForwardingFailed(self.failure)
        return self.owner.lambda_handler(event, Context(custom))


def greet(name: str) -> str:
    return f"Hello, {name}!"


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


CLAIMS = {"claims": {"sub": "alice", "iss": "https://idp.test/"}}
CALL = call("greet", {"name": "Ada"})


def with_caller(event: Event, claims: Mapping[str, Any] = CLAIMS) -> Event:
    """Return an HTTP API event of a caller that an authorizer has identified."""
    return {**event, "requestContext": {**event["requestContext"], "authorizer": {"jwt": claims}}}


def body(response: Any) -> Any:
    return json.loads(response["body"])


@pytest.mark.parametrize("source", HTTP_SOURCES)
@pytest.mark.parametrize("path", ["/tools/greetings", "/base/path/tools/greetings"])
def test_the_owner_gets_the_event_and_its_response_is_returned_as_it_is(
    source: str, path: str, deployment: Deployment
) -> None:
    event = sent_by(source, CALL, path)
    response = deployment.send(event)
    [(forwarded, custom, _)] = deployment.forwarded
    assert forwarded == event
    assert response == deployment.owner.lambda_handler(event, Context(custom))


def test_the_owner_answers_with_its_own_name_and_its_own_checks(deployment: Deployment) -> None:
    event = with_caller(post("/tools/greetings", message("tools/list")))
    result = body(deployment.send(event))["result"]
    assert result["_meta"][META_SERVER_INFO]["name"] == "greetings"
    assert deployment.send(post("/tools/greetings", CALL))["statusCode"] == 401
    assert deployment.send({**event, "body": "{"})["statusCode"] == 400
    assert "catalog_drift" not in dict(deployment.observer.events)


def test_a_request_of_any_method_is_passed_on(deployment: Deployment) -> None:
    event = post("/tools/greetings", CALL)
    for method in ("GET", "DELETE", "OPTIONS"):
        http = {**event["requestContext"]["http"], "method": method}
        changed = {**event, "requestContext": {**event["requestContext"], "http": http}}
        assert deployment.send(changed)["statusCode"] == 405
    assert len(deployment.forwarded) == 3


def test_the_owner_gets_the_time_that_is_left_and_the_correlation_id(deployment: Deployment) -> None:
    deployment.send(with_caller(post("/tools/greetings", CALL)))
    [(_, custom, timeout_s)] = deployment.forwarded
    assert timeout_s == 18
    assert custom["mcpDeadlineMs"] == int((deployment.clock() + 18) * 1000)
    assert custom["mcpCorrelationId"] == "quoted"
    assert ("request_forwarded", {"owner": "greetings"}) in deployment.observer.events


@pytest.mark.parametrize(
    ("sent", "request_id"),
    [
        (CALL, 1),
        ({**CALL, "id": "a"}, "a"),
        ({name: value for name, value in CALL.items() if name != "id"}, None),
        ([], None),
    ],
)
def test_a_lost_owner_is_an_internal_error_with_the_id_of_the_request(
    sent: Any, request_id: Any, tmp_path: Path
) -> None:
    deployment = Deployment(tmp_path, failure="TooManyRequestsException")
    response = deployment.send({**post("/tools/greetings", CALL), "body": json.dumps(sent)})
    assert (response["statusCode"], body(response)["error"]["code"]) == (200, -32603)
    assert body(response).get("id") == request_id
    assert "quoted" in body(response)["error"]["message"]
    [(event, error)] = deployment.observer.failures
    assert (event, getattr(error, "reason", None)) == ("forwarding_failed", "TooManyRequestsException")
    assert len(deployment.forwarded) == 1


def test_a_lost_owner_is_an_error_for_a_client_that_evaluates_the_status(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, failure="timeout")
    event = post("/tools/greetings", CALL)
    http = {**event["requestContext"]["http"], "method": "GET"}
    got = {**event, "body": None, "requestContext": {**event["requestContext"], "http": http}}
    assert deployment.send(got)["statusCode"] == 500


NO_OWNERS = [
    "/tools/",
    "/tools/other",
    "/tools/door",
    "/tools/Greetings",
    "/tools/greetings/",
    "/tools/greetings/mcp",
    "/tools/greetings/questions",
    "/tools/greetings_worker",
    "/tools/../greetings",
    "/tools/other/tools/greetings",
    "/tools/greetings/tools/greetings",
    "/tools/*",
]


@pytest.mark.parametrize("path", NO_OWNERS)
def test_a_path_that_no_owner_has_does_not_exist(path: str, deployment: Deployment) -> None:
    response = deployment.send(with_caller(post(path, CALL)))
    assert response["statusCode"] == 404
    assert deployment.forwarded == []


@pytest.mark.parametrize("path", ["/mcp", "/tools", "/mcptools/greetings", "/greetings", ""])
def test_other_paths_are_the_front_doors_own(path: str, deployment: Deployment) -> None:
    result = body(deployment.send(with_caller(post(path, message("tools/list")))))["result"]
    assert result["_meta"][META_SERVER_INFO]["name"] == "door"


@pytest.mark.parametrize("path", ["/tools/mcp", "/tools/mcp/"])
def test_a_front_door_below_tools_is_found_by_its_audience(path: str, tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, audience=BASE + "/tools/mcp")
    assert "result" in body(deployment.send(with_caller(post(path, message("tools/list")))))
    deployment.send(with_caller(post("/tools/greetings", CALL)))
    assert len(deployment.forwarded) == 1
    assert deployment.send(with_caller(post("/tools/mcp2", CALL)))["statusCode"] == 404


def test_a_base_path_below_tools_is_found_by_the_audience(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, audience=BASE + "/tools/team/mcp")
    deployment.send(with_caller(post("/tools/team/tools/greetings", CALL)))
    assert len(deployment.forwarded) == 1
    assert deployment.send(with_caller(post("/tools/other/tools/greetings", CALL)))["statusCode"] == 404


def test_metadata_are_not_passed_on(deployment: Deployment) -> None:
    response = deployment.send(post("/.well-known/oauth-protected-resource/tools/greetings", CALL))
    assert response["statusCode"] == 401
    assert deployment.forwarded == []


def test_headers_and_direct_events_name_no_owner(deployment: Deployment) -> None:
    event = with_caller(post("/mcp", message("tools/list")))
    headers = {
        **event["headers"],
        **dict.fromkeys(("x-original-url", "x-forwarded-path", "x-rewrite-url"), "/tools/greetings"),
    }
    assert "result" in body(deployment.send({**event, "headers": headers}))
    deployment.send({**message("tools/list"), "path": "/tools/greetings", "rawPath": "/tools/greetings"})
    assert deployment.forwarded == []
