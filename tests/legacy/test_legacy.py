import json

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip_tools.catalog.catalog import catalog_lists
from support.client_requests import refused
from support.deployment import legacy

server = Server("everything")


@server.tool
def add(ctx: Context, a: int, b: int) -> dict[str, int]:
    return {"sum": a + b}


@server.tool
def plain() -> int:
    return 3


def nested(**keywords):
    place = {"type": "object", "properties": {"region": {"type": "string", **keywords}, "x": True}}
    return {"type": "object", "properties": {"place": place}}


@server.tool(input_schema=nested(**{"x-mcp-header": "Region"}))
def region(arguments: dict[str, dict[str, str]]) -> str:
    return arguments["place"]["region"]


server.resource("notes://all", name="all")(lambda: "all")


@server.tool(channels=("model",))
def greet(ctx: Context) -> dict[str, str]:
    return {"greeting": f"Hello, {ctx.elicit('name', 'Who are you?', str)}!"}


@server.tool(task="required")
def takes_long(ctx: Context) -> str:
    ctx.run_as_task()
    return "done"


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


def test_output_schemas_are_those_of_earlier_versions():
    structured = [
        tool["name"] for tool in legacy(server).result("tools/list")["tools"] if "outputSchema" in tool
    ]
    assert structured == ["add"], "an outputSchema is that of an object"


def test_the_header_of_a_parameter_is_not_declared_and_optional_but_must_agree():
    client = legacy(server)
    [tool] = [tool for tool in client.result("tools/list")["tools"] if tool["name"] == "region"]
    assert tool["inputSchema"] == nested()
    assert client.text("region", place={"region": "eu"}) == "eu"
    call = client.body("tools/call", name="region", arguments={"place": {"region": "eu"}})
    answer = json.loads(client.send(call, mcp_param_region="us").body)
    assert answer["error"]["code"] == -32020


def test_the_catalog_says_which_tools_ask_and_how():
    rows = catalog_lists({"owner": server})["tools"]
    asks = {row["definition"]["name"]: (row["asks"], row["channels"]) for row in rows if "asks" in row}
    assert asks == {
        "greet": (True, ["model"]),
        "add": (True, ["app", "page", "default"]),
        "takes_long": (True, ["page", "default"]),
    }
    assert "input_responses" not in json.dumps(rows)
