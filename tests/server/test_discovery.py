"""`subscriptions/listen` is acknowledged without subscriptions and completed at once."""

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


def send(requested, *, capabilities=None, **changes):
    """Return the response and its messages. `changes` replace the request's id or `accept` header."""
    client = Deployment(SERVER, user=None, capabilities=capabilities or {})
    body = client.body(SUBSCRIPTIONS_LISTEN, id=changes.pop("id", 1), notifications=requested)
    response = client.send(body, **changes)
    return response, read_messages(response)


def error(requested, **more):
    response, [answer] = send(requested, **more)
    return response.status, answer["error"]


@pytest.mark.parametrize("requested", [{}, EVERYTHING, {"toolsListChanged": False}, {"com.example/more": 1}])
def test_a_subscription_is_acknowledged_empty_and_completed(requested):
    response, messages = send(requested)
    assert (response.status, response.headers["content-type"]) == (200, "text/event-stream")
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


def test_task_ids_from_a_client_with_the_extension_are_omitted_from_the_acknowledgement():
    _, [acknowledged, _] = send({**EVERYTHING, "taskIds": ["a-task"]}, capabilities=WITH_TASKS)
    assert acknowledged["params"]["notifications"] == {}


@pytest.mark.parametrize("requested", [None, [], "all", 1, True])
def test_a_filter_that_is_not_an_object_is_refused(requested):
    status, failure = error(requested)
    assert (status, failure["code"]) == (400, INVALID_PARAMS)
    assert "notifications" in failure["message"]
    assert Deployment(SERVER).error(SUBSCRIPTIONS_LISTEN)["code"] == INVALID_PARAMS


@pytest.mark.parametrize(
    ("member", "value"),
    [
        *(
            (member, value)
            for member in ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
            for value in (1, "true", [])
        ),
        *(
            (member, value)
            for member in ("resourceSubscriptions", "taskIds")
            for value in (True, "file:///a", {}, [1], ["a", None])
        ),
    ],
)
def test_a_member_of_another_type_is_refused_by_name(member, value):
    status, failure = error({member: value}, capabilities=WITH_TASKS)
    assert (status, failure["code"]) == (400, INVALID_PARAMS)
    assert f"notifications.{member}" in failure["message"]
