"""Serving clients of 2025-06-18 and 2025-11-25."""

import json
from typing import Annotated, Literal

import pytest

from mcp_roundtrip import Completion, Context, McpHeader, Server, ToolError
from mcp_roundtrip_tools.catalog.catalog import catalog_lists
from support.client_requests import refused, text
from support.deployment import legacy

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
    assert client.error("resources/read", uri="nothing://")["code"] == -32002
    reference = {"type": "ref/resource", "uri": "notes://{id}"}
    completed = client.result("completion/complete", ref=reference, argument={"name": "id", "value": "2"})
    assert completed["completion"]["values"] == ["21"]
    result = client.call("numbers", region="us")
    assert result["structuredContent"] == {"result": [1, 2]}
    assert json.loads(text(result)) == [1, 2]
    structured = [tool["name"] for tool in client.result("tools/list")["tools"] if "outputSchema" in tool]
    assert structured == ["add"], "an outputSchema is that of an object"
    assert client.result("ping") == {}


def test_the_catalog_says_which_tools_ask_and_how():
    rows = catalog_lists({"owner": server})["tools"]
    asks = {row["definition"]["name"]: (row["asks"], row["channels"]) for row in rows if "asks" in row}
    assert asks == {
        "greet": (True, ["model"]),
        "add": (True, ["app", "page", "default"]),
        "takes_long": (True, ["page", "default"]),
    }
    assert "input_responses" not in json.dumps(rows)
