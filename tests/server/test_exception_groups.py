"""The error reply when several branches fail."""

import asyncio

from mcp_roundtrip import AsyncContext, ToolError
from mcp_roundtrip_testing import Player
from support.servers import server_of


def branches(*kinds):
    """Return a tool with a branch per kind. A branch raises an exception of its kind, or asks."""

    async def tool(ctx: AsyncContext) -> None:
        async def branch(ctx: AsyncContext, kind: type[Exception] | None) -> None:
            if kind is None:
                await ctx.list_roots()
                await ctx.elicit("q", "?", str)
            else:
                raise kind(kind.__name__)

        async with asyncio.TaskGroup() as group:
            for number, kind in enumerate(kinds):
                group.create_task(branch(ctx.branch(f"b{number}"), kind))

    return server_of(tool)


def test_missing_capabilities_of_several_branches_are_named_together():
    refused = Player(branches(None, None), capabilities={}).call("tool")
    assert refused.error["data"] == {"requiredCapabilities": {"roots": {}}}


def test_tool_errors_of_several_branches_are_joined():
    class Other(ToolError):
        pass

    assert Player(branches(ToolError, Other)).call("tool").text == "ToolError\nOther"


def test_different_exceptions_of_branches_are_a_failed_tool():
    playing = Player(branches(ToolError, RuntimeError))
    assert playing.call("tool").failed
    assert playing.observer.failures[0][0] == "tool_raised"
