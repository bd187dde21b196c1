"""What authors may register, and what they are told otherwise."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from mcp_roundtrip import AsyncContext, Context, DefinitionError, Server
from mcp_roundtrip.schema.mirroring import McpHeader
from mcp_roundtrip.testing import Player


def test_the_decorator_returns_the_function_unchanged() -> None:
    server = Server("x")

    @server.tool
    def one(a: int) -> int:
        return a

    @server.tool(name="other.name")
    def two(a: int) -> int:
        return a

    assert one(1) == two(1) == 1
    assert list(server.tools) == ["one", "other.name"]


@pytest.mark.parametrize("name", ["", "with space", "a/b", "ü", "x" * 129, "a\n"])
def test_names_the_specification_advises_against_are_refused(name: str) -> None:
    server = Server("x")
    with pytest.raises(DefinitionError):

        @server.tool(name=name or " ")
        def tool() -> None: ...


def test_two_tools_of_one_name_are_refused() -> None:
    server = Server("x")

    @server.tool(name="same")
    def one() -> None: ...

    with pytest.raises(DefinitionError, match="same"):

        @server.tool(name="same")
        def two() -> None: ...


def test_a_context_of_the_other_kind_is_refused() -> None:
    server = Server("x")
    with pytest.raises(DefinitionError, match="AsyncContext"):

        @server.tool
        async def asynchronous(ctx: Context) -> None: ...

    with pytest.raises(DefinitionError, match="Context"):

        @server.tool
        def synchronous(ctx: AsyncContext) -> None: ...


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}},
    "required": ["n"],
}


def test_an_author_may_bring_a_schema_and_gets_the_arguments_as_one_dict() -> None:
    server = Server("x")

    @server.tool(input_schema=SCHEMA, description="Takes n.")
    def raw(ctx: Context, arguments: dict[str, Any]) -> int:
        return int(arguments["n"])

    playing = Player(server)
    listed = playing.request("tools/list")["result"]["tools"][0]
    assert listed["inputSchema"] == SCHEMA
    assert listed["description"] == "Takes n."
    assert playing.call("raw", {"n": 2}).structured == 2
    assert playing.call("raw", {"n": 0}).failed


def test_a_schema_that_points_elsewhere_is_refused() -> None:
    server = Server("x")
    remote = {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}}
    with pytest.raises(DefinitionError):

        @server.tool(input_schema=remote)
        def raw(arguments: dict[str, Any]) -> None: ...


def test_parameters_that_headers_mirror_are_listed_as_declared() -> None:
    server = Server("x")
    mirrored = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}

    @server.tool(input_schema=mirrored)
    def raw(arguments: dict[str, Any]) -> None: ...

    @server.tool
    def typed(a: Annotated[str, McpHeader("A")]) -> None: ...

    for tool in server.tools.values():
        assert tool.definition()["inputSchema"]["properties"] == mirrored["properties"]


def test_a_declaration_that_clients_would_refuse_is_refused_at_once() -> None:
    server = Server("x")
    mirrored = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
    with pytest.raises(DefinitionError, match="x-mcp-header"):

        @server.tool(input_schema=mirrored)
        def raw(arguments: dict[str, Any]) -> None: ...

    with pytest.raises(DefinitionError, match="x-mcp-header"):

        @server.tool
        def typed(a: Annotated[float, McpHeader("A")]) -> None: ...


def test_the_output_schema_comes_from_the_return_type() -> None:
    server = Server("x")

    @server.tool
    def numbers() -> list[int]:
        return [1, 2]

    @server.tool
    def text() -> str:
        return "x"

    listed = {tool["name"]: tool for tool in Player(server).request("tools/list")["result"]["tools"]}
    assert listed["numbers"]["outputSchema"] == {"type": "array", "items": {"type": "integer"}}
    assert "outputSchema" not in listed["text"]
