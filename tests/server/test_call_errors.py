"""The error reply and the log record of an exception raised by a feature."""

import asyncio

import pytest

from mcp_roundtrip import AsyncContext, Context, ProtocolError, Server, ToolError
from mcp_roundtrip.errors import UsageError
from mcp_roundtrip_testing import WITH_TASKS, Player
from support.servers import server_of


def raising(error):
    server = Server("raises")

    @server.tool(task="optional")
    def tool(ctx: Context) -> str:
        ctx.run_as_task()
        raise error

    @server.prompt
    def prompt() -> str:
        raise error

    @server.resource("test://text")
    def resource() -> str:
        raise error

    return server


FORBIDDEN = [
    (ProtocolError(-32002, "x"), "raise ResourceNotFound"),
    (ProtocolError(-32042, "x"), "ctx.elicit_url"),
    (ProtocolError(-32021, "x"), "raise MissingClientCapability"),
    (ProtocolError(-32020, "x"), "raise ToolError"),
    (ProtocolError(-32022, "x"), "raise ToolError"),
    (ProtocolError(-32000, "x"), "outside -32768 to -32000"),
    (ProtocolError(-32099, "x"), "outside -32768 to -32000"),
    (ProtocolError(-32601, "x"), "outside -32768 to -32000"),
    (ProtocolError(-32768, "x"), "outside -32768 to -32000"),
    (ProtocolError("1", "x"), "an int"),  # type: ignore[arg-type]
    (ProtocolError(True, "x"), "an int"),
    (ProtocolError(1, object()), "is not JSON"),  # type: ignore[arg-type]
    (ProtocolError(1, 7), "a str"),  # type: ignore[arg-type]
    (ProtocolError(1, "x", {"a": object()}), "is not JSON"),
    (ProtocolError(1, "x", http_status=503), "from 200 to 499"),
]


@pytest.mark.parametrize(("error", "instead"), FORBIDDEN, ids=range(len(FORBIDDEN)))
def test_an_error_code_forbidden_by_the_specification_is_replaced_and_the_log_has_the_remedy(error, instead):
    play = Player(raising(error))
    tool, prompt, resource = play.call("tool"), play.prompt("prompt"), play.read("test://text")
    assert tool.failed
    assert {prompt.error["code"], resource.error["code"]} == {-32603}
    assert {each.status for each in (tool, prompt, resource)} == {200}
    assert "Quote test" in tool.result["content"][0]["text"]
    events = [(event, type(logged), instead in str(logged)) for event, logged in play.observer.failures]
    kinds = ("tool_raised", "prompt_raised", "resource_raised")
    assert events == [(kind, UsageError, True) for kind in kinds]
    assert play.observer.failures[0][1].__cause__ is error, "the traceback has the line"
    task = Player(raising(error), WITH_TASKS).call("tool").task
    assert "Quote" in task.result["content"][0]["text"]


def failing_branches(*kinds):
    """Return a player of a tool with a branch per kind. A branch raises an exception of its kind, or asks."""

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

    return Player(server_of(tool), capabilities={})


def test_errors_of_several_branches_are_joined_and_different_ones_are_a_failed_tool():
    class Other(ToolError):
        pass

    refused = failing_branches(None, None).call("tool")
    assert refused.error["data"] == {"requiredCapabilities": {"roots": {}}}
    assert failing_branches(ToolError, Other).call("tool").text == "ToolError\nOther"
    play = failing_branches(ToolError, RuntimeError)
    assert play.call("tool").failed
    assert play.observer.failures[0][0] == "tool_raised"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_a_task_of_an_async_tool_cannot_end_the_environment(kind):
    async def ends() -> None:
        async def task() -> None:
            raise kind

        await asyncio.create_task(task())

    async def innocent() -> str:
        return "fine"

    play = Player(server_of(ends, innocent))
    assert play.call("ends").failed
    assert play.call("innocent").text == "fine"
