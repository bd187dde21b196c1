"""A forgotten `await` is a tool error; the log has its key and line."""

import asyncio

import pytest

from mcp_roundtrip import AsyncContext, NotAwaited, Server
from mcp_roundtrip_testing import WITH_TASKS, Player
from support.servers import server_of

NEUTRAL = "The tool failed. Quote {} to its operator."
DELETED = []

server = Server("forgetful")


def delete() -> None:
    DELETED.append("everything")


@server.tool
async def checks_call(ctx: AsyncContext) -> str:
    if ctx.elicit("sure", "Delete everything?", bool):
        delete()
    return "deleted"


@server.tool
async def discards_call(ctx: AsyncContext) -> str:
    ctx.elicit("sure", "Delete everything?", bool)
    await ctx.step("delete", delete)
    return "deleted"


@server.tool(task="optional")
async def discards_call_after_question(ctx: AsyncContext) -> str:
    await ctx.run_as_task()
    await ctx.step("prepare", int)
    ctx.elicit("sure", "Delete everything?", bool)
    await ctx.step("delete", delete)
    return "deleted"


@pytest.fixture(autouse=True)
def nothing_is_deleted():
    DELETED.clear()
    yield
    assert DELETED == []


def in_the_log(play):
    [(event, error)] = play.observer.failures
    assert event == "tool_raised"
    assert isinstance(error, NotAwaited)
    return str(error)


@pytest.mark.parametrize("name", [name for name in server.tools if name != "discards_call_after_question"])
def test_the_client_gets_a_neutral_tool_error_and_the_log_has_the_key(name):
    play = Player(server)
    played = play.call(name)
    assert played.failed
    assert played.result["content"][0]["text"] == NEUTRAL.format("test")
    assert "'sure'" in in_the_log(play)


def test_a_task_fails_with_the_error_and_keeps_its_journal():
    play = Player(server, WITH_TASKS)
    task = play.call("discards_call_after_question").task
    assert (task.status, task.failed) == ("completed", True)
    assert task.result["content"][0]["text"] == NEUTRAL.format("test-worker-1")
    assert "question 'sure'" in in_the_log(play)
    stored = play.table.store.query(play.table.dispatcher.pks[task.task_id])
    assert [item["sk"] for item in stored if "prepare" in str(item["sk"])]
    assert not [item["sk"] for item in stored if "delete" in str(item["sk"])]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_a_task_of_a_tool_cannot_end_the_environment(kind):
    async def ends() -> None:
        async def task() -> None:
            raise kind

        await asyncio.create_task(task())

    async def innocent() -> str:
        return "fine"

    play = Player(server_of(ends, innocent))
    assert play.call("ends").failed
    assert play.call("innocent").text == "fine"
