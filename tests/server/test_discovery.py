"""What a client reads of a server, and `subscriptions/listen`, which is acknowledged and completed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Server
from mcp_roundtrip.errors import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_roundtrip.protocol.constants import META_SERVER_INFO, SUBSCRIPTIONS_LISTEN, TASKS_EXTENSION
from mcp_roundtrip.server.discovery import ACKNOWLEDGED, META_SUBSCRIPTION_ID
from mcp_roundtrip_testing.http_requests import read_messages
from support.deployment import Deployment

SERVER = Server("test", version="1")
SERVER.tool(name="lasting", task="optional")(lambda: "done")
INFO = {"name": "test", "version": "1"}
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["file:///config.json"],
}
WITH_TASKS = {"extensions": {TASKS_EXTENSION: {}}}


def test_a_server_declares_what_it_has():
    full = Server("full")
    full.prompt("ask")(lambda: "Ask.")
    full.resource("docs://all", name="all")(lambda: "all")
    always = {"tools": {}, "logging": {}}
    for server, more in (
        (SERVER, {"extensions": {TASKS_EXTENSION: {}}}),
        (full, {"prompts": {}, "resources": {}, "completions": {}}),
    ):
        found = Deployment(server, user=None).result("server/discover")
        assert found["capabilities"] == always | more
        assert found["supportedVersions"] == ["2026-07-28"]


def send(requested, *, capabilities=None, **changes):
    """Return the response and its messages. `changes` replace the request's id or `accept` header."""
    client = Deployment(SERVER, user=None, capabilities=capabilities or {})
    body = client.body(SUBSCRIPTIONS_LISTEN, id=changes.pop("id", 1), notifications=requested)
    response = client.send(body, **changes)
    return response, read_messages(response)


def error(requested, **more):
    response, [answer] = send(requested, **more)
    return response.status, answer["error"]


@pytest.mark.parametrize(
    "requested",
    [{}, EVERYTHING, {"toolsListChanged": False}, {"com.example/more": 1}, {"taskIds": ["a-task"]}],
)
def test_a_subscription_is_acknowledged_empty_and_completed(requested):
    response, messages = send(requested, capabilities=WITH_TASKS)
    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"
    acknowledged, answer = messages
    assert acknowledged == {
        "jsonrpc": "2.0",
        "method": ACKNOWLEDGED,
        "params": {"_meta": {META_SUBSCRIPTION_ID: 1}, "notifications": {}},
    }
    assert answer == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"resultType": "complete", "_meta": {META_SUBSCRIPTION_ID: 1, META_SERVER_INFO: INFO}},
    }


@given(st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_the_subscription_id_equals_the_request_id_in_value_and_type(id):  # noqa: A002 - JSON-RPC's name
    _, [acknowledged, answer] = send({}, id=id)
    tags = [acknowledged["params"]["_meta"], answer["result"]["_meta"], {META_SUBSCRIPTION_ID: answer["id"]}]
    assert [(tag[META_SUBSCRIPTION_ID], type(tag[META_SUBSCRIPTION_ID])) for tag in tags] == [
        (id, type(id))
    ] * 3


def test_a_client_that_accepts_no_event_stream_gets_only_the_final_result():
    response, [answer] = send(EVERYTHING, accept="application/json")
    assert response.headers["content-type"] == "application/json"
    assert answer["result"]["_meta"][META_SUBSCRIPTION_ID] == 1


@pytest.mark.parametrize("task_ids", [["a-task"], []])
def test_task_ids_from_a_client_without_the_extension_are_refused(task_ids):
    status, failure = error({"taskIds": task_ids}, capabilities={"elicitation": {}})
    assert (status, failure["code"]) == (400, MISSING_REQUIRED_CLIENT_CAPABILITY)
    assert failure["data"] == {"requiredCapabilities": WITH_TASKS}


OF_LISTS = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
OF_ITEMS = ("resourceSubscriptions", "taskIds")


@pytest.mark.parametrize(
    ("requested", "named"),
    [
        *((requested, "notifications") for requested in (None, [], "all", 1, True)),
        *(({member: value}, f"notifications.{member}") for member in OF_LISTS for value in (1, "true", [])),
        *(
            ({member: value}, f"notifications.{member}")
            for member in OF_ITEMS
            for value in (True, "file:///a", {}, [1], ["a", None])
        ),
    ],
)
def test_a_filter_or_a_member_of_another_type_is_refused_by_name(requested, named):
    status, failure = error(requested, capabilities=WITH_TASKS)
    assert (status, failure["code"]) == (400, INVALID_PARAMS)
    assert named in failure["message"]
