"""A definition without JSON Schema is reported early and does not hide others."""

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import pytest

from mcp_roundtrip import Context, DefinitionError, DefinitionWarning, Server
from mcp_roundtrip.server.definition_lint import MAX_TOOL_NAME, exceeded_limits
from mcp_roundtrip_testing import Player
from support.deployment import Deployment, legacy


class Connection:
    """A type without JSON form."""


@dataclass
class Holder:
    connection: Connection


def make_server():
    """Return a server with one broken feature between two valid ones in each list."""
    server = Server("x")

    @server.tool
    def first() -> str:
        return "first"

    @server.tool
    def broken(number: int, inside: list[Holder]) -> str:
        return "never"

    @server.tool
    def undescribed(call: Callable[[int], int]) -> str:
        return "never"

    @server.tool
    def wrong_result() -> Holder:
        return Holder(Connection())

    @server.tool(input_schema={"type": "object", "properties": {"a": {"type": "text"}}})
    def wrong_schema(arguments: dict[str, Any]) -> str:
        return "never"

    @server.tool
    def last() -> str:
        return "last"

    @server.prompt
    def greeting(name: str) -> str:
        return name

    @server.prompt
    def broken_prompt(name: Connection) -> str:
        return "never"

    @server.resource("docs://{name}", size=3)
    def document(name: str) -> str:
        return name

    @server.resource("broken://{name}")
    def broken_document(name: Connection) -> str:
        return "never"

    return server


@pytest.fixture
def client():
    """Return a client of this server. `Player` refuses such a server."""
    return Deployment(make_server(), user=None)


def names(client, member):
    return [item["name"] for item in client.result(f"{member}/list")[member]]


def test_only_broken_tools_are_missing_in_the_list(client):
    for _ in range(2):
        assert names(client, "tools") == ["first", "wrong_schema", "last"]
        assert names(client, "prompts") == ["greeting"]
        listed = client.result("resources/templates/list")["resourceTemplates"]
        assert {"uriTemplate": "docs://{name}", "name": "document"} in listed  # which has no size
    failures = [fields for event, fields in client.observer.events if event == "definition_failed"]
    assert names(legacy(make_server()), "tools") == ["first", "wrong_schema", "last"]
    assert failures == [
        {"tool": "broken"},
        {"tool": "undescribed"},
        {"tool": "wrong_result"},
        {"prompt": "broken_prompt"},
    ], "each tool once, by name"


@pytest.mark.parametrize(
    ("name", "arguments"), [("broken", {"number": 1, "inside": []}), ("wrong_schema", {"a": 1})]
)
def test_a_call_of_a_broken_tool_is_an_error_that_names_the_place_in_the_log(client, name, arguments):
    refused = client.error("tools/call", name=name, **arguments)
    assert refused["code"] == -32603
    assert name not in refused["message"]
    ((event, error),) = client.observer.failures
    assert (event, type(error)) == ("definition_failed", DefinitionError)
    assert str(error).startswith(f"{name}: ")
    assert ("definition_failed", {"tool": name}) in client.observer.events
    assert client.text("first") == "first"


def test_all_errors_are_named_together_with_their_parameters():
    with pytest.raises(DefinitionError) as caught:
        make_server().check_definitions()
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        *("broken", "undescribed", "wrong_result", "wrong_schema", "broken_prompt", "broken_document")
    ]
    assert "'inside': Connection " in lines[0]
    assert "'call': " in lines[1]
    with pytest.raises(DefinitionError, match="broken: parameter 'inside'"):
        Player(make_server()).call("first")


def test_a_tool_that_models_refuse_is_a_warning_at_its_function_and_works():
    server = Server("s")

    @server.tool(input_schema={"type": "object", "properties": {"filter[state]": {"type": "string"}}})
    def orders(arguments: dict[str, str]) -> str:
        return arguments["filter[state]"]

    server.resource("docs://" + "x" * MAX_TOOL_NAME, name="x")(lambda: "")
    with pytest.warns(DefinitionWarning, match=r"orders: .*'filter\[state\]'") as caught:
        server.check_definitions()
    [warning] = caught
    assert warning.filename == __file__
    assert "def orders" in "".join(linecache.getlines(__file__)[warning.lineno - 1 :][:2])
    assert Deployment(server).text("orders", **{"filter[state]": "open"}) == "open"


def nested(key, *, within):
    """Return a schema with a property of this name below a keyword."""
    inner = {"type": "object", "properties": {key: {"type": "string"}}}
    below = {
        "properties": {"properties": {"a": inner}},
        "items": {"properties": {"a": {"type": "array", "items": inner}}},
        "anyOf": {"properties": {"a": {"anyOf": [{"type": "null"}, inner]}}},
        "$defs": {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": inner}},
        "additionalProperties": {"additionalProperties": inner},
    }
    return {"type": "object", **below[within]}


@pytest.mark.parametrize("within", ["properties", "items", "anyOf", "$defs", "additionalProperties"])
def test_a_property_that_models_refuse_is_named_at_every_depth_and_others_are_accepted(within):
    for key in ("", "a b", "filter[state]", "$top", "größe", "a\n", "x" * 65):
        [problem] = exceeded_limits("t", nested(key, within=within))
        assert f"{key!r:.80}" in problem
    for key in ("a", "A_b.c-1", "x" * 64, "properties", "anyOf"):
        assert list(exceeded_limits("x" * MAX_TOOL_NAME, nested(key, within=within))) == []
    data = {"properties": {"a b": 1}}
    schema = {"properties": {"a": {"default": data, "const": data, "enum": [data], "examples": [data]}}}
    assert list(exceeded_limits("t", schema)) == [], "data that looks like a schema has no properties"


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf", "enum", "not"])
def test_a_keyword_is_refused_at_the_top_level_only(keyword):
    value = {} if keyword == "not" else [{}]
    [problem] = exceeded_limits("t", {"type": "object", keyword: value})
    assert f"refuse {keyword} at" in problem
    assert list(exceeded_limits("t", {"type": "object", "properties": {"a": {keyword: value}}})) == []


def test_a_name_leaves_space_for_the_name_of_the_server_and_a_message_names_few_properties():
    assert list(exceeded_limits("x" * MAX_TOOL_NAME, {})) == []
    [problem] = exceeded_limits("x" * (MAX_TOOL_NAME + 1), {})
    assert f"at most {MAX_TOOL_NAME}" in problem
    assert len(f"mcp__{'s' * 17}__{'x' * MAX_TOOL_NAME}") == 64, "Claude Code and Codex"
    schema = {"properties": {f"{number} {'ü' * 1_000}": {} for number in range(100)}}
    [problem] = exceeded_limits("t", schema)
    assert "and 95 more" in problem
    assert len(problem) < 700


def test_a_decorator_takes_the_context_and_the_parameters_by_name():
    def order(ctx: Context, item: str) -> str: ...

    server = Server("x")
    server.tool(wraps(order)(lambda ctx, **given: given["item"]))
    assert Deployment(server).text("order", item="tea") == "tea"
    with pytest.raises(DefinitionError, match="'item'"):
        server.tool(name="other")(wraps(order)(lambda ctx: None))
