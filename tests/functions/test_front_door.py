import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.server.invocation import Forwarded, definition_digest
from mcp_roundtrip_testing import FakeClock, load_module, make_ports
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from mcp_roundtrip_tools.events.messages import call, message, post, prompt, read
from mcp_roundtrip_tools.events.stable import (
    DUPLICATE,
    HYDERABAD,
    PLACE,
    PRICES,
    RESOLVE,
    TOKYO_FORECAST,
    TRIAGE,
    WORK_ITEM,
)
from support.lambda_context import LambdaContext
from support.project import FUNCTIONS

Forward = Callable[[str, Mapping[str, Any], Mapping[str, Any], int], Any]
pytest_plugins = ["support.example_services"]

pytestmark = pytest.mark.usefixtures("example_services")

OWNERS = load_function_servers(FUNCTIONS)


class Deployment:
    """The front door and its owners in this process. `forwarded` has the forwarded events."""

    def __init__(self, forward: Forward | None = None) -> None:
        self.clock = FakeClock()
        self.observer = RecordingObserver()
        self.forwarded: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
        self.ports: Ports = make_ports(
            clock=self.clock, observer=self.observer, forward=forward or self._forward
        )
        self.front_door = load_module(FUNCTIONS / "front_door/app.py").front_door

    def send(self, event: Mapping[str, Any]) -> Any:
        context = LambdaContext(self.clock, 20_000, aws_request_id="quoted")
        return handle(self.front_door.endpoint, event, context, lambda: self.ports)

    def result(self, event: Mapping[str, Any]) -> Any:
        return self.send(event)["result"]

    def _forward(
        self, owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
    ) -> Any:
        assert custom["mcpDeadlineMs"] == int((self.clock() + timeout_s) * 1000)
        self.forwarded.append((owner, event, custom))
        context = LambdaContext(self.clock, 25_000, custom)
        return handle(OWNERS[owner].endpoint, event, context, lambda: self.ports)


@pytest.mark.parametrize(
    ("method", "member", "key"),
    [
        ("tools/list", "tools", "name"),
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ],
)
def test_a_list_equals_the_lists_of_the_owners(method: str, member: str, key: str) -> None:
    deployment = Deployment()
    listed = {each[key]: each for each in deployment.result(message(method))[member]}
    answers = [
        handle(server.endpoint, message(method), None, lambda: deployment.ports) for server in OWNERS.values()
    ]
    own = [each for answer in answers if "result" in answer for each in answer["result"][member]]
    assert listed == {each[key]: each for each in own}
    assert own


def test_every_owner_is_behind_the_front_door() -> None:
    assert {*OWNERS, "front_door"} == {path.parent.name for path in FUNCTIONS.glob("*/app.py")}


def test_discovery_presents_one_server() -> None:
    deployment = Deployment()
    result = deployment.result(message("server/discover"))
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mcp-roundtrip-examples"
    assert result["instructions"]
    assert {"tools", "prompts", "resources", "completions"} <= result["capabilities"].keys()
    assert deployment.forwarded == []


def test_a_call_is_forwarded_to_its_owner_unchanged() -> None:
    deployment = Deployment()
    event = post("/mcp", call("get_weather", {"location": "Tokyo"}))
    response = deployment.send(event)
    assert response["statusCode"] == 200
    assert json.loads(response["body"])["result"]["structuredContent"]["place"] == "Tokyo, Japan"
    [(owner, forwarded, custom)] = deployment.forwarded
    assert (owner, forwarded) == ("weather", event)
    definition = OWNERS["weather"].tools["get_weather"].definition()
    deadline_ms = int((deployment.clock() + 18) * 1000)
    sent = Forwarded(
        deadline_ms,
        definition_digest(definition),
        "quoted",
        deployment.front_door.info,
        signature_digest=deployment.front_door.catalog.tools["get_weather"].signature_digest,
    )
    assert custom == sent.custom()


def test_only_an_owner_that_differs_from_the_catalog_reports_drift() -> None:
    deployment = Deployment()
    tokyo = call("get_weather", {"location": "Tokyo"})
    deployment.send(tokyo)
    assert "catalog_drift" not in dict(deployment.observer.events)
    [(owner, event, custom)] = deployment.forwarded
    deployment._forward(owner, event, Forwarded(custom["mcpDeadlineMs"], "another").custom(), 18)
    drift = dict(deployment.observer.events)["catalog_drift"]
    assert drift["tool"] == "get_weather"
    assert "make catalog" in drift["remedy"]


def test_a_call_with_questions_is_forwarded_round_by_round() -> None:
    deployment = Deployment()
    first = deployment.result(call("update_work_item", RESOLVE))
    second = deployment.result(
        call("update_work_item", RESOLVE, inputResponses=DUPLICATE, requestState=first["requestState"])
    )
    original = {"duplicate_of": {"action": "accept", "content": {"duplicateOfId": 4301}}}
    third = deployment.result(
        call("update_work_item", RESOLVE, inputResponses=original, requestState=second["requestState"])
    )
    assert not third["isError"]
    assert [owner for owner, _, _ in deployment.forwarded] == ["work_items"] * 3


def test_the_status_of_an_owners_refusal_is_unchanged() -> None:
    deployment = Deployment()
    response = deployment.send(post("/mcp", call("update_work_item", RESOLVE, capabilities={})))
    assert response["statusCode"] == 400
    assert json.loads(response["body"])["error"]["code"] == -32021


def test_a_state_of_one_tool_is_refused_by_another() -> None:
    deployment = Deployment()
    asked = deployment.result(call("get_weather", HYDERABAD))
    moved = call("update_work_item", RESOLVE, requestState=asked["requestState"])
    assert deployment.send(moved)["error"]["code"] == -32602


def test_an_unknown_tool_is_refused_and_not_forwarded() -> None:
    deployment = Deployment()
    assert deployment.send(call("no_such_tool", {}))["error"]["code"] == -32602
    assert deployment.forwarded == []


def test_a_failing_owner_is_an_internal_error_with_the_reason_only_in_the_log() -> None:
    def fails(owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int) -> Any:
        raise ForwardingFailed("FunctionError Unhandled")

    deployment = Deployment(fails)
    response = deployment.send(post("/mcp", call("get_weather", HYDERABAD)))
    error = json.loads(response["body"])["error"]
    assert (response["statusCode"], error["code"]) == (200, -32603)
    assert "quoted" in error["message"]
    assert "FunctionError" not in response["body"]
    [(event, failure)] = deployment.observer.failures
    assert event == "forwarding_failed"
    assert isinstance(failure, ForwardingFailed)


@pytest.mark.parametrize("method", ["resources/subscribe", "tasks/result"])
def test_unknown_methods_are_not_found(method: str) -> None:
    params: dict[str, Any] = {"taskId": "none"} if method == "tasks/result" else {"uri": PRICES}
    assert Deployment().send(message(method, **params))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("event", "owner"),
    [
        (read(TOKYO_FORECAST), "weather"),
        (read(PRICES), "provision"),
        (prompt(TRIAGE, {"workItemId": "4522"}), "work_items"),
        (message("completion/complete", **PLACE), "weather"),
        (message("completion/complete", **WORK_ITEM), "work_items"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["method"],
)
def test_prompts_reads_and_completions_are_forwarded_to_their_owner(
    event: Mapping[str, Any], owner: str
) -> None:
    deployment = Deployment()
    result = deployment.result(event)
    assert result["resultType"] == "complete"
    assert [forwarded for forwarded, _, _ in deployment.forwarded] == [owner]
    assert "catalog_drift" not in dict(deployment.observer.events)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (read("weather://nowhere"), {"uri": "weather://nowhere"}),
        (read("weather://forecast/Tokyo, Japan"), {"uri": "weather://forecast/Tokyo, Japan"}),
        (read("weather://forecast/a/b"), {"uri": "weather://forecast/a/b"}),
        (prompt("unknown", {}), None),
        (
            message("completion/complete", **{**WORK_ITEM, "ref": {"type": "ref/prompt", "name": "unknown"}}),
            None,
        ),
    ],
    ids=str,
)
def test_an_unknown_feature_is_refused_and_not_forwarded(event: Mapping[str, Any], data: Any) -> None:
    deployment = Deployment()
    error = deployment.send(event)["error"]
    assert (error["code"], error.get("data")) == (-32602, data)
    assert deployment.forwarded == []


def test_a_prompt_with_questions_is_forwarded_round_by_round() -> None:
    deployment = Deployment()
    asked = deployment.result(prompt(TRIAGE, {}))
    [picked, *_] = asked["inputRequests"]["work_item"]["params"]["requestedSchema"]["properties"]["value"][
        "enum"
    ]
    answers = {"work_item": {"action": "accept", "content": {"value": picked}}}
    retried = prompt(TRIAGE, {}, inputResponses=answers, requestState=asked["requestState"])
    assert picked in deployment.result(retried)["messages"][0]["content"]["text"]
    assert [owner for owner, _, _ in deployment.forwarded] == ["work_items"] * 2


@pytest.mark.parametrize(
    "event",
    [
        call("get_weather", {"location": "Tokyo"}),
        read(TOKYO_FORECAST),
        prompt(TRIAGE, {"workItemId": "4522"}),
    ],
    ids=lambda event: event["method"],
)
def test_forwarded_responses_have_the_name_of_the_front_door(event: Mapping[str, Any]) -> None:
    result = Deployment().result(event)
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mcp-roundtrip-examples"
