"""`subscriptions/listen` is acknowledged without subscriptions and completed at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_SERVER_INFO,
    SUBSCRIPTIONS_LISTEN,
    TASKS_EXTENSION,
)
from mcp_roundtrip.server.discovery import ACKNOWLEDGED, META_SUBSCRIPTION_ID, discovery_methods
from mcp_roundtrip.server.endpoint import Endpoint
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip_testing.ports import make_ports
from support import mcp_schema
from support.messages import META, headers, message

INFO = {"name": "test", "version": "1"}
ENDPOINT = Endpoint(discovery_methods(ServerOptions(INFO), "tools", has_tasks=True))
PORTS = make_ports()
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["file:///config.json"],
}
WITH_TASKS = {"extensions": {TASKS_EXTENSION: {}}}


def send(
    requested: Any, *, capabilities: Mapping[str, Any] | None = None, **changes: Any
) -> tuple[HttpResponse, list[Any]]:
    """Return the response and its messages. `changes` replace the request's id or `accept` header."""
    meta = {**META, META_CLIENT_CAPABILITIES: capabilities or {}}
    body = message(SUBSCRIPTIONS_LISTEN, id=changes.pop("id", 1), meta=meta, notifications=requested)
    request = HttpRequest("POST", headers(body, **changes), json.dumps(body))
    response = ENDPOINT.respond(request, PORTS, Invocation("id", 1e18))
    lines = response.body.split("\n\n") if response.headers["content-type"] != "application/json" else []
    messages = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    messages = messages or [json.loads(response.body)]
    for notification in messages:
        mcp_schema.assert_valid(SUBSCRIPTIONS_LISTEN, notification)
    return response, messages


def error(requested: Any, **more: Any) -> tuple[int, Any]:
    response, [answer] = send(requested, **more)
    return response.status, answer["error"]


@pytest.mark.parametrize("requested", [{}, EVERYTHING, {"toolsListChanged": False}, {"com.example/more": 1}])
def test_a_subscription_is_acknowledged_empty_and_completed(requested: Any) -> None:
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
def test_the_subscription_id_equals_the_request_id_in_value_and_type(id: int | str) -> None:  # noqa: A002 - JSON-RPC's name
    _, [acknowledged, answer] = send({}, id=id)
    tags = [acknowledged["params"]["_meta"], answer["result"]["_meta"], {META_SUBSCRIPTION_ID: answer["id"]}]
    assert [(tag[META_SUBSCRIPTION_ID], type(tag[META_SUBSCRIPTION_ID])) for tag in tags] == [
        (id, type(id))
    ] * 3


def test_a_client_that_accepts_no_event_stream_gets_only_the_final_result() -> None:
    response, [answer] = send(EVERYTHING, accept="application/json")
    assert response.headers["content-type"] == "application/json"
    assert answer["result"]["_meta"][META_SUBSCRIPTION_ID] == 1


@pytest.mark.parametrize("task_ids", [["a-task"], []])
def test_task_ids_from_a_client_without_the_extension_are_refused(task_ids: list[str]) -> None:
    status, failure = error({"taskIds": task_ids}, capabilities={"elicitation": {}})
    assert (status, failure["code"]) == (400, MISSING_REQUIRED_CLIENT_CAPABILITY)
    assert failure["data"] == {"requiredCapabilities": WITH_TASKS}


def test_task_ids_from_a_client_with_the_extension_are_omitted_from_the_acknowledgement() -> None:
    _, [acknowledged, _] = send({**EVERYTHING, "taskIds": ["a-task"]}, capabilities=WITH_TASKS)
    assert acknowledged["params"]["notifications"] == {}


@pytest.mark.parametrize("requested", [None, [], "all", 1, True])
def test_a_filter_that_is_not_an_object_is_refused(requested: Any) -> None:
    status, failure = error(requested)
    assert (status, failure["code"]) == (400, INVALID_PARAMS)
    assert "notifications" in failure["message"]


def test_a_missing_filter_is_refused() -> None:
    body = message(SUBSCRIPTIONS_LISTEN)
    request = HttpRequest("POST", headers(body), json.dumps(body))
    response = ENDPOINT.respond(request, PORTS, Invocation("id", 1e18))
    assert json.loads(response.body)["error"]["code"] == INVALID_PARAMS


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
def test_a_member_of_another_type_is_refused_by_name(member: str, value: Any) -> None:
    status, failure = error({member: value}, capabilities=WITH_TASKS)
    assert (status, failure["code"]) == (400, INVALID_PARAMS)
    assert f"notifications.{member}" in failure["message"]
