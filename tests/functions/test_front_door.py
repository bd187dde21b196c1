import json
from collections.abc import Mapping
from typing import Any

import pytest

from mcp_roundtrip.server.invocation import Forwarded
from mcp_roundtrip_testing import load_module
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from mcp_roundtrip_tools.events.of_application import call, message, post
from support.deployment import Deployment
from support.examples import HYDERABAD, RESOLVE, TOKYO
from support.lambda_context import LambdaContext
from support.project import FUNCTIONS

pytest_plugins = ["support.example_services"]

pytestmark = pytest.mark.usefixtures("example_services")

NAME = "mcp-roundtrip-examples"
OWNERS = load_function_servers(FUNCTIONS)


@pytest.fixture
def deployment():
    """Return the front door and its owners."""
    door = load_module(FUNCTIONS / "front_door/app.py").front_door
    return Deployment(OWNERS["weather"], owners=OWNERS, user=None, through_door=True, front_door=door)


def send(deployment: Deployment, event: Mapping[str, Any]) -> Any:
    return deployment.invoke(event, LambdaContext(deployment.clock, 20_000, aws_request_id="quoted"))


def result(deployment: Deployment, event: Mapping[str, Any]) -> Any:
    return send(deployment, event)["result"]


def test_every_owner_is_behind_the_front_door():
    assert {*OWNERS, "front_door"} == {path.parent.name for path in FUNCTIONS.glob("*/app.py")}


def test_discovery_presents_one_server(deployment):
    found = result(deployment, message("server/discover"))
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == NAME
    assert found["instructions"]
    assert {"tools", "prompts", "resources", "completions"} <= found["capabilities"].keys()
    assert deployment.forwarded == []


def test_a_call_is_forwarded_to_its_owner_unchanged(deployment):
    event = post("/mcp", call("get_weather", TOKYO))
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


def test_only_an_owner_that_differs_from_the_catalog_reports_drift(deployment):
    tokyo = call("get_weather", TOKYO)
    send(deployment, tokyo)
    assert "catalog_drift" not in dict(deployment.observer.events)
    custom = Forwarded(catalog_digest="another").custom()
    owner = deployment.by(through_door=False, config={"catalog_digest": lambda: "deployed"})
    owner.invoke(tokyo, LambdaContext(custom=custom))
    drift = dict(deployment.observer.events)["catalog_drift"]
    assert drift["tool"] == "get_weather"
    assert "make catalog" in drift["remedy"]


def test_a_state_of_one_tool_is_refused_by_another(deployment):
    asked = result(deployment, call("get_weather", HYDERABAD))
    moved = call("update_work_item", RESOLVE, requestState=asked["requestState"])
    assert send(deployment, moved)["error"]["code"] == -32602
