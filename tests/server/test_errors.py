"""The error reply and the log record of an exception raised by a feature."""

import asyncio
from typing import Annotated

import pytest
from pydantic import AfterValidator

from mcp_roundtrip import (
    AsyncContext,
    Context,
    Elicit,
    MissingClientCapability,
    ProtocolError,
    Server,
    ToolError,
)
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
    (ProtocolError("1", "x"), "must be an int"),  # type: ignore[arg-type]
    (ProtocolError(True, "x"), "must be an int"),
    (ProtocolError(1, object()), "is not JSON"),  # type: ignore[arg-type]
    (ProtocolError(1, 7), "must be a str"),  # type: ignore[arg-type]
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


@pytest.mark.parametrize(
    "error",
    [
        ProtocolError(-32602, "x", {"hint": 1}),
        ProtocolError(-32603, "x"),
        ProtocolError(1, "x", http_status=404),
        ProtocolError(-31999, "x"),
        ProtocolError(-32769, "x"),
        MissingClientCapability({"sampling": {}}),
    ],
    ids=str,
)
def test_every_other_protocol_error_is_sent_unchanged(error):
    play = Player(raising(error))
    for played in (play.call("tool"), play.prompt("prompt"), play.read("test://text")):
        assert (played.error["code"], played.error["message"]) == (error.code, error.message)
        assert played.error.get("data") == error.data
    assert play.observer.failures == []


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [(ToolError("Not today."), -32602, "Not today."), (OSError("secret"), -32603, "Quote")],
    ids=["tool error", "other"],
)
def test_a_tool_error_of_a_prompt_or_a_resource_is_invalid_params_and_others_are_internal_errors(
    error, code, said
):
    play = Player(raising(error))
    for played in (play.prompt("prompt"), play.read("test://text")):
        assert (played.error["code"], played.status) == (code, 200)
        assert said in played.error["message"]
        assert "secret" not in played.error["message"]
    logged = [event for event, _ in play.observer.failures]
    assert logged == ([] if code == -32602 else ["prompt_raised", "resource_raised"])


def asking():
    def order(ctx: Context, early: bool = False) -> str:
        if early:
            ctx.elicit("size", "How large?", int)
        ctx.step("reserve", int)
        ctx.now("when")
        return str(ctx.sample("advice", "Advice?", max_tokens=9, tools=[]).text)

    def in_rounds(ctx: Context) -> str:
        ctx.step("reserve", int)
        ctx.elicit("size", "How large?", int)
        return str(ctx.sample("advice", "Advice?", max_tokens=9, tools=[]).text)

    def several(ctx: Context) -> str:
        return str(ctx.ask(*(Elicit(f"q{number}", "?", int) for number in range(5))))

    async def branches(ctx: AsyncContext) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b"):
                group.create_task(work(ctx.branch(name)))

    server = server_of(order, in_rounds, several, branches)
    server.tool("needy", requires=["sampling.tools", "extensions.com.example/x"])(lambda: "")
    return server


async def work(ctx):
    await ctx.step("work", int)
    await ctx.elicit("q", "?", int)


NO_TABLE = {"tasks": None}
"""With a table, the page asks in place of the client."""

ELICITATION = "client capabilities that this request does not declare: elicitation.form."


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("order", {"early": True}, f"The question 'size' needs {ELICITATION}"),
        ("several", {}, f"The questions 'q0', 'q1', 'q2' and 2 more need {ELICITATION}"),
        ("branches", {}, f"The questions 'a/q', 'b/q' need {ELICITATION}"),
        ("needy", {}, "The tool 'needy' needs client capabilities that this request does not declare: "
                      "sampling.tools, extensions.com.example/x."),
    ],
)  # fmt: skip
def test_a_missing_capability_is_named_with_its_cause_and_remedy(tool, arguments, said):
    error = Player(asking(), {}, ports=NO_TABLE).call(tool, arguments).error
    assert error["code"] == -32021
    assert error["message"].startswith(said)
    assert "Do not retry with this client: " in error["message"]
    assert "that declares them." in error["message"]


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


def test_an_exception_of_a_validator_is_one_of_the_tool():
    def look_up(code: str) -> str:
        raise KeyError(code)

    def tool(code: Annotated[str, AfterValidator(look_up)]) -> str:
        return code

    play = Player(server_of(tool))
    refused = play.call("tool", {"code": "unknown"})
    assert (refused.failed, type(refused.raised)) == (True, KeyError)
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
