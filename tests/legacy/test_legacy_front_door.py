"""Legacy clients of a front door, which serves lists and forwards calls unchanged."""

import json

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip_tools.catalog.catalog import catalog_lists
from support.deployment import legacy

owner = Server("owner")


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


@pytest.fixture
def door():
    return legacy(owner, through_door=True, door_options={"instructions": "Knock."})


def test_the_front_door_negotiates_the_version(door):
    client = {"name": "x", "version": "1"}
    result = door.result("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    assert result["capabilities"].keys() == {"tools", "prompts", "resources", "completions"}
    assert (result["serverInfo"]["name"], result["instructions"]) == ("door", "Knock.")
    assert door.result("ping") == {}


def test_lists_equal_those_of_the_owner(door):
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        own, listed = legacy(owner).result(method), door.result(method)
        assert {**listed, "_meta": None} == {**own, "_meta": None}
    tools = {tool["name"]: tool for tool in door.result("tools/list")["tools"]}
    assert "input_responses" in tools["greet"]["inputSchema"]["properties"]
    assert "input_responses" not in tools["count"]["inputSchema"]["properties"]


def test_the_catalog_says_which_tools_ask_and_how():
    rows = catalog_lists({"owner": owner})["tools"]
    assert {row["definition"]["name"]: (row.get("asks"), row.get("channels")) for row in rows} == {
        "greet": (True, ["model"]),
        "count": (None, None),
        "last": (True, ["page", "default"]),
    }
    assert "input_responses" not in json.dumps(rows)


def test_calls_reads_prompts_and_completions_are_forwarded(door):
    assert "Who are you?" in door.text("greet")
    greeted = door.call("greet", input_responses={"name": "Ada"})
    assert greeted["structuredContent"] == {"greeting": "Hello, Ada!"}
    assert door.text("count", words="a b") == "2"
    assert door.call("last")["isError"]
    assert door.result("prompts/get", name="review", arguments={"language": "x"})["messages"]
    assert door.result("resources/read", uri="notes://1")["contents"][0]["text"] == "1"
    reference = {"type": "ref/prompt", "name": "review"}
    completed = door.result("completion/complete", ref=reference, argument={"name": "language", "value": ""})
    assert completed["completion"]["values"] == []
    assert len(door.forwarded) == 7


def test_a_missing_feature_has_the_error_code_of_the_legacy_version(door):
    assert door.post("resources/read", uri="other://1")["error"]["code"] == -32002
    assert door.post("tools/call", name="nothing")["error"]["code"] == -32602
    assert door.post("tasks/get", taskId="x")["error"]["code"] == -32601


def test_a_front_door_may_be_for_modern_clients_only():
    door = legacy(Server("owner"), through_door=True, door_options={"legacy_clients": False})
    assert door.refusal("initialize")[1] == -32022
