"""Legacy clients of a front door, which serves lists and forwards calls unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip import Context, FrontDoor, Server
from mcp_roundtrip.protocol.request_validation import RequestMeta, ValidRequest
from mcp_roundtrip.protocol.results import PreSerialized
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.model import Reply, RequestContext
from mcp_roundtrip_local.catalog import catalog_lists
from mcp_roundtrip_testing.ports import make_ports
from support.legacy_client import assert_valid, text
from support.messages import http_event

owner = Server("owner", ports=make_ports)


@owner.tool(channels=("model",))
def greet(ctx: Context) -> dict[str, str]:
    return {"greeting": f"Hello, {ctx.elicit('name', 'Who are you?', str)}!"}


@owner.tool
def count(words: str) -> int:
    return len(words.split())


@owner.tool(task="required")
def last(ctx: Context) -> str:
    ctx.run_as_task()
    return "done"


@owner.prompt()
def review(language: str) -> str:
    return f"Review this {language}."


@owner.resource("notes://{id}")
def note(id: str) -> str:  # noqa: A002 - the variable's name
    return id


class Door:
    """A front door with one owner. It records forwarded events."""

    def __init__(self, folder: Path) -> None:
        self.forwarded: list[Mapping[str, Any]] = []
        path = folder / "catalog.json"
        path.write_text(json.dumps(catalog_lists({"owner": owner})))
        self.door = FrontDoor(
            "door", path, ports=lambda: replace(make_ports(), forward=self._forward), instructions="Knock."
        )

    def _forward(self, name: str, event: Mapping[str, Any], *rest: Any) -> Any:
        self.forwarded.append(event)
        return owner.lambda_handler(event, None)

    def ask(self, method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        event = http_event(body, headers={"mcp-protocol-version": "2025-11-25"})
        response = self.door.lambda_handler(event, None)
        assert response["statusCode"] == 200
        read = json.loads(response["body"])
        assert_valid(method, read)
        if self.forwarded:
            assert self.forwarded.pop() == event
        return read

    def result(self, method: str, **params: Any) -> Any:
        return self.ask(method, **params)["result"]


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


def test_the_front_door_negotiates_the_version(door: Door) -> None:
    client = {"name": "x", "version": "1"}
    result = door.result("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    assert result["capabilities"].keys() == {"tools", "prompts", "resources", "completions"}
    assert (result["serverInfo"]["name"], result["instructions"]) == ("door", "Knock.")
    assert door.result("ping") == {}


def test_the_json_of_a_list_is_cached(door: Door) -> None:
    legacy_handlers = door.door.endpoint.legacy_handlers
    assert legacy_handlers is not None
    route = ValidRequest("1", "tools/list", {}, RequestMeta("2025-11-25", {}))
    exchange = RequestContext(route, None, make_ports(), Invocation("id", 1e18))
    first, second = (legacy_handlers()["tools/list"](exchange) for _ in range(2))
    assert isinstance(first, Reply)
    assert isinstance(first.body, PreSerialized)
    assert first is second


def test_lists_equal_those_of_the_owner(door: Door) -> None:
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
        own = json.loads(owner.lambda_handler(http_event(body, headers={}), None)["body"])["result"]
        listed = door.result(method)
        assert {**listed, "_meta": None} == {**own, "_meta": None}
    tools = {tool["name"]: tool for tool in door.result("tools/list")["tools"]}
    assert "input_responses" in tools["greet"]["inputSchema"]["properties"]
    assert "input_responses" not in tools["count"]["inputSchema"]["properties"]


def test_the_catalog_says_which_tools_ask_and_how() -> None:
    rows = catalog_lists({"owner": owner})["tools"]
    assert {row["definition"]["name"]: (row.get("asks"), row.get("channels")) for row in rows} == {
        "greet": (True, ["model"]),
        "count": (None, None),
        "last": (True, ["page", "default"]),
    }
    assert "input_responses" not in json.dumps(rows)


def test_calls_reads_prompts_and_completions_are_forwarded(door: Door) -> None:
    assert "Who are you?" in text(door.result("tools/call", name="greet", arguments={}))
    answered = {"name": "greet", "arguments": {"input_responses": {"name": "Ada"}}}
    assert door.result("tools/call", **answered)["structuredContent"] == {"greeting": "Hello, Ada!"}
    assert text(door.result("tools/call", name="count", arguments={"words": "a b"})) == "2"
    assert door.result("tools/call", name="last")["isError"]
    assert door.result("prompts/get", name="review", arguments={"language": "x"})["messages"]
    assert door.result("resources/read", uri="notes://1")["contents"][0]["text"] == "1"
    reference = {"type": "ref/prompt", "name": "review"}
    completed = door.result("completion/complete", ref=reference, argument={"name": "language", "value": ""})
    assert completed["completion"]["values"] == []


def test_a_missing_feature_has_the_error_code_of_the_legacy_version(door: Door) -> None:
    assert door.ask("resources/read", uri="other://1")["error"]["code"] == -32002
    assert door.ask("tools/call", name="nothing")["error"]["code"] == -32602
    assert door.ask("tasks/get", taskId="x")["error"]["code"] == -32601


def test_a_front_door_may_be_for_modern_clients_only(tmp_path: Path) -> None:
    (tmp_path / "catalog.json").write_text('{"tools": []}')
    door = FrontDoor("x", tmp_path / "catalog.json", legacy_clients=False, ports=make_ports)
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    response = door.lambda_handler(http_event(body, headers={}), None)
    assert json.loads(response["body"])["error"]["code"] == -32022
