import json
from collections.abc import Mapping
from typing import Any

import pytest

from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip.server.invocation import Forwarded
from mcp_roundtrip_testing import load_module
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from mcp_roundtrip_tools.events.of_application import call, message, post, prompt, read
from support.deployment import Deployment
from support.examples import (
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

pytest_plugins = ["support.example_services"]

pytestmark = pytest.mark.usefixtures("example_services")

OWNERS = load_function_servers(FUNCTIONS)


@pytest.fixture
def deployment() -> Deployment:
    """Return the front door and its owners."""
    door = load_module(FUNCTIONS / "front_door/app.py").front_door
    return Deployment(OWNERS["weather"], owners=OWNERS, user=None, through_door=True, front_door=door)


def send(deployment: Deployment, event: Mapping[str, Any]) -> Any:
    return deployment.invoke(event, LambdaContext(deployment.clock, 20_000, aws_request_id="quoted"))


def result(deployment: Deployment, event: Mapping[str, Any]) -> Any:
    return send(deployment, event)["result"]


def owners_of(deployment: Deployment) -> list[str]:
    """Return the owners that the front door invoked."""
    return [owner for owner, *_ in deployment.forwarded]


@pytest.mark.parametrize(
    ("method", "member", "key"),
    [
        ("tools/list", "tools", "name"),
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ],
)
def test_a_list_equals_the_lists_of_the_owners(
    deployment: Deployment, method: str, member: str, key: str
) -> None:
    listed = {each[key]: each for each in result(deployment, message(method))[member]}
    answers = [Deployment(server, user=None).invoke(message(method)) for server in OWNERS.values()]
    own = [each for answer in answers if "result" in answer for each in answer["result"][member]]
    assert listed == {each[key]: each for each in own}
    assert own


def test_every_owner_is_behind_the_front_door() -> None:
    assert {*OWNERS, "front_door"} == {path.parent.name for path in FUNCTIONS.glob("*/app.py")}


def test_discovery_presents_one_server(deployment: Deployment) -> None:
    found = result(deployment, message("server/discover"))
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mcp-roundtrip-examples"
    assert found["instructions"]
    assert {"tools", "prompts", "resources", "completions"} <= found["capabilities"].keys()
    assert deployment.forwarded == []


def test_a_call_is_forwarded_to_its_owner_unchanged(deployment: Deployment) -> None:
    event = post("/mcp", call("get_weather", {"location": "Tokyo"}))
    response = send(deployment, event)
    assert response["statusCode"] == 200
    assert json.loads(response["body"])["result"]["structuredContent"]["place"] == "Tokyo, Japan"
    [(owner, forwarded, custom, _)] = deployment.forwarded
    assert (owner, forwarded) == ("weather", event)
    door = deployment.front_door
    assert door is not None
    deadline_ms = int((deployment.clock() + 18) * 1000)
    sent = Forwarded(
        deadline_ms,
        "quoted",
        door.info,
        catalog_digest=(FUNCTIONS / "weather/catalog.digest").read_text().strip(),
    )
    assert custom == sent.custom()


def test_only_an_owner_that_differs_from_the_catalog_reports_drift(deployment: Deployment) -> None:
    tokyo = call("get_weather", {"location": "Tokyo"})
    send(deployment, tokyo)
    assert "catalog_drift" not in dict(deployment.observer.events)
    custom = Forwarded(catalog_digest="another").custom()
    owner = deployment.by(through_door=False, config={"catalog_digest": lambda: "deployed"})
    owner.invoke(tokyo, LambdaContext(custom=custom))
    drift = dict(deployment.observer.events)["catalog_drift"]
    assert drift["tool"] == "get_weather"
    assert "make catalog" in drift["remedy"]


def test_a_call_with_questions_is_forwarded_round_by_round(deployment: Deployment) -> None:
    first = result(deployment, call("update_work_item", RESOLVE))
    second = result(
        deployment,
        call("update_work_item", RESOLVE, inputResponses=DUPLICATE, requestState=first["requestState"]),
    )
    original = {"duplicate_of": {"action": "accept", "content": {"duplicateOfId": 4301}}}
    third = result(
        deployment,
        call("update_work_item", RESOLVE, inputResponses=original, requestState=second["requestState"]),
    )
    assert not third["isError"]
    assert owners_of(deployment) == ["work_items"] * 3


def test_the_status_of_an_owners_refusal_is_unchanged(deployment: Deployment) -> None:
    refusing = deployment.by(has_table=False)  # there is no page to ask on
    response = send(refusing, post("/mcp", call("update_work_item", RESOLVE, capabilities={})))
    assert response["statusCode"] == 400
    assert json.loads(response["body"])["error"]["code"] == -32021


def test_a_state_of_one_tool_is_refused_by_another(deployment: Deployment) -> None:
    asked = result(deployment, call("get_weather", HYDERABAD))
    moved = call("update_work_item", RESOLVE, requestState=asked["requestState"])
    assert send(deployment, moved)["error"]["code"] == -32602


def test_an_unknown_tool_is_refused_and_not_forwarded(deployment: Deployment) -> None:
    assert send(deployment, call("no_such_tool", {}))["error"]["code"] == -32602
    assert deployment.forwarded == []


def test_a_failing_owner_is_an_internal_error_with_the_reason_only_in_the_log(deployment: Deployment) -> None:
    def fails(*forwarded: Any) -> Any:
        raise ForwardingFailed("FunctionError Unhandled")

    deployment = deployment.by(replaced_ports={"forward": fails})
    response = send(deployment, post("/mcp", call("get_weather", HYDERABAD)))
    error = json.loads(response["body"])["error"]
    assert (response["statusCode"], error["code"]) == (200, -32603)
    assert "quoted" in error["message"]
    assert "FunctionError" not in response["body"]
    [(event, failure)] = deployment.observer.failures
    assert event == "forwarding_failed"
    assert isinstance(failure, ForwardingFailed)


@pytest.mark.parametrize("method", ["resources/subscribe", "tasks/result"])
def test_unknown_methods_are_not_found(deployment: Deployment, method: str) -> None:
    params: dict[str, Any] = {"taskId": "none"} if method == "tasks/result" else {"uri": PRICES}
    assert send(deployment, message(method, **params))["error"]["code"] == -32601


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
    deployment: Deployment, event: Mapping[str, Any], owner: str
) -> None:
    found = result(deployment, event)
    assert found["resultType"] == "complete"
    assert owners_of(deployment) == [owner]
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
def test_an_unknown_feature_is_refused_and_not_forwarded(
    deployment: Deployment, event: Mapping[str, Any], data: Any
) -> None:
    error = send(deployment, event)["error"]
    assert (error["code"], error.get("data")) == (-32602, data)
    assert deployment.forwarded == []


def test_a_prompt_with_questions_is_forwarded_round_by_round(deployment: Deployment) -> None:
    asked = result(deployment, prompt(TRIAGE, {}))
    [picked, *_] = asked["inputRequests"]["work_item"]["params"]["requestedSchema"]["properties"]["value"][
        "enum"
    ]
    answers = {"work_item": {"action": "accept", "content": {"value": picked}}}
    retried = prompt(TRIAGE, {}, inputResponses=answers, requestState=asked["requestState"])
    assert picked in result(deployment, retried)["messages"][0]["content"]["text"]
    assert owners_of(deployment) == ["work_items"] * 2


@pytest.mark.parametrize(
    "event",
    [
        call("get_weather", {"location": "Tokyo"}),
        read(TOKYO_FORECAST),
        prompt(TRIAGE, {"workItemId": "4522"}),
    ],
    ids=lambda event: event["method"],
)
def test_forwarded_responses_have_the_name_of_the_front_door(
    deployment: Deployment, event: Mapping[str, Any]
) -> None:
    found = result(deployment, event)
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mcp-roundtrip-examples"
