"""Serving clients of 2025-06-18 and 2025-11-25."""

import json
from typing import Annotated, Literal

import pytest

from mcp_roundtrip import Completion, Context, McpHeader, ResourceNotFound, Server, ToolError
from mcp_roundtrip.protocol.constants import LEGACY_VERSIONS, META_CLIENT_CAPABILITIES
from mcp_roundtrip_tools.catalog.catalog import catalog_lists
from support.client_requests import TASKS, refused, text
from support.deployment import legacy
from support.messages import message

server = Server("everything", title="Everything", instructions="Ask me.")


@server.tool(title="Adds", annotations={"readOnlyHint": True}, icons=[{"src": "https://x.test/i.png"}])
def add(ctx: Context, a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    ctx.progress(1, 2, "half")
    return {"sum": a + b}


@server.tool
def numbers(region: Annotated[str, McpHeader("Region")] = "eu") -> list[int]:
    return [1, 2]


server.tool(name="large")(lambda: "x" * 6_000_001)


@server.tool
def fails() -> str:
    raise ToolError("no luck")


@server.tool(channels=("model",))
def greet(ctx: Context) -> dict[str, str]:
    return {"greeting": f"Hello, {ctx.elicit('name', 'Who are you?', str)}!"}


@server.tool(task="required")
def takes_long(ctx: Context) -> str:
    ctx.run_as_task()
    return "done"


@server.prompt()
def review(language: Literal["python", "rust"], code: str = "") -> str:
    return f"Review this {language}: {code}"


@server.resource("notes://all", mime_type="text/plain", ttl_ms=60_000)
def notes() -> str:
    return "all"


@server.resource("notes://{id}")
def note(id: str) -> bytes:  # noqa: A002 - the variable's name
    if id == "0":
        raise ResourceNotFound
    return id.encode()


@server.completion("notes://{id}", "id")
def ids(value: str) -> Completion:
    return Completion([value + "1"])


@pytest.fixture(params=[False, True], ids=["function", "front door"])
def through_door(request):
    return request.param


@pytest.fixture(params=["2025-11-25", "2025-06-18", None], ids=str)
def client(request, through_door):
    return legacy(server, version=request.param, through_door=through_door)


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}


@pytest.mark.parametrize("version", ["2025-03-26", "2024-11-05", "2027-01-01"])
def test_a_header_of_an_unknown_version_gets_the_supported_versions(version):
    modern = Server("modern", legacy_clients=False)
    supported = {server: ["2026-07-28", "2025-11-25", "2025-06-18"], modern: ["2026-07-28"]}
    for each, versions in supported.items():
        response = legacy(each, version=version).request("tools/list")
        assert refused(response) == (400, -32022)
        assert json.loads(response.body)["error"]["data"]["supported"] == versions
    for method in ("initialize", "tools/list"):
        assert legacy(modern).refusal(method) == (400, -32022)


def test_tools_are_called(client):
    result = client.call("add", a=1, b=2)
    assert (result["isError"], result["structuredContent"]) == (False, {"sum": 3})
    assert client.error_text("add", a="one", b=2)
    assert client.error_text("fails") == "no luck"
    assert client.error("tools/call", name="nothing")["code"] == -32602
    assert client.error_text("large"), "a result over the limit"
    assert "tasks" in client.error_text("takes_long")
    assert "Who are you?" in client.text("greet")
    greeted = client.call("greet", input_responses={"name": "Ada"})
    assert greeted["structuredContent"] == {"greeting": "Hello, Ada!"}
    assert client.result("prompts/get", name="review", arguments={"language": "rust"})["messages"]
    assert client.result("resources/read", uri="notes://all")["contents"][0]["text"] == "all"
    reference = {"type": "ref/resource", "uri": "notes://{id}"}
    completed = client.result("completion/complete", ref=reference, argument={"name": "id", "value": "2"})
    assert completed["completion"]["values"] == ["21"]
    result = client.call("numbers", region="us")
    assert "structuredContent" not in result
    assert json.loads(text(result)) == [1, 2]


def test_a_resource_that_its_function_does_not_find_has_the_code_of_these_versions(client):
    assert client.refusal("resources/read", uri="notes://0") == (200, -32002)


OTHERS = [
    *("server/discover", "subscriptions/listen", "resources/subscribe", "logging/setLevel", "tasks/get"),
    "tasks/list",
]


def test_modern_methods_and_stateful_methods_do_not_exist(client):
    for method in OTHERS:
        assert client.error(method)["code"] == -32601


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_the_extension_of_tasks_means_nothing_in_these_versions(version, through_door):
    client = legacy(server, version=version, through_door=through_door, capabilities=TASKS).connected()
    for meta in ({}, {META_CLIENT_CAPABILITIES: TASKS}):
        assert client.post_call("takes_long", meta=meta)["result"]["isError"] is True


STRAY = {
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "extensions": {"x.test/y": {}}},
    "io.modelcontextprotocol/logLevel": "debug",
}


def test_a_legacy_request_may_have_modern_fields(client):
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "inputResponses": {}, "requestState": "x"}
    response = client.send(
        message("tools/call", **params, meta=STRAY), mcp_method="tools/call", mcp_name="add"
    )
    assert json.loads(response.body)["result"]["structuredContent"] == {"sum": 3}


def test_a_mirrored_header_is_optional_but_must_agree():
    client = legacy(server)
    body = client.body("tools/call", name="numbers", arguments={"region": "us"})
    assert "result" in json.loads(client.send(body).body)
    assert "result" in json.loads(client.send(body, mcp_param_region="us").body)
    assert refused(client.send(body, mcp_param_region="eu"))[1] == -32020


def test_the_front_door_negotiates_the_version():
    door = legacy(server, through_door=True, door_options={"instructions": "Knock."})
    result = door.result("initialize", **INITIALIZE)
    assert result["capabilities"].keys() == {"tools", "prompts", "resources", "completions"}
    assert (result["serverInfo"]["name"], result["instructions"]) == ("door", "Knock.")
    door = legacy(Server("owner"), through_door=True, door_options={"legacy_clients": False})
    assert door.refusal("initialize")[1] == -32022


def test_the_catalog_says_which_tools_ask_and_how():
    rows = catalog_lists({"owner": server})["tools"]
    asks = {row["definition"]["name"]: (row["asks"], row["channels"]) for row in rows if "asks" in row}
    assert asks == {
        "greet": (True, ["model"]),
        "add": (True, ["app", "page", "default"]),
        "takes_long": (True, ["page", "default"]),
    }
    assert "input_responses" not in json.dumps(rows)
