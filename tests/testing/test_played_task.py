"""`PlayedTask`, with which tool authors test tasks."""

import pytest

from mcp_roundtrip import AsyncContext, Context, ProtocolError, Server, ToolError
from mcp_roundtrip.engine.journal import Kind
from mcp_roundtrip_testing import WITH_TASKS, FakeClock, PlayedTask, Player
from mcp_roundtrip_testing import played_task as driver
from support.task_tools import no_step_ran, ran, run_step, task_server  # noqa: F401 - a fixture is among them

server = Server("jobs")


@server.tool(task="optional")
def provision(ctx: Context, name: str) -> dict[str, object]:
    size = ctx.elicit("size", f"How large is {name}?", int)
    ctx.run_as_task()
    made = ctx.step("create", run_step, f"create {size}")
    ctx.progress(1, 2, "created")
    return {
        "made": made,
        "kept": ctx.elicit("keep", f"Keep {made}?", bool),
        "end": ctx.step("end", run_step, "end"),
    }


@server.tool(task="required")
async def compare(ctx: AsyncContext) -> dict[str, str]:
    await ctx.run_as_task()

    async def quote(branch: AsyncContext) -> str:
        return await branch.step("quote", run_step, await branch.elicit("name", "Name?", str))

    return await ctx.gather({"a": quote, "b": quote})


@server.tool(task="required")
def naps(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("before", run_step, "before")
    ctx.sleep("nap", 30_000)
    return ctx.step("after", run_step, "after")


def test_a_task_is_played_to_its_result_and_its_journal_says_what_it_has_recorded():
    play = Player(server, WITH_TASKS)
    task = play.call("provision", {"name": "db"}, size=2).task
    assert task.question("keep") == "Keep create 2?"
    assert [entry.key for entry in task.journal.entries] == ["size", "create"]
    done = task.answer(keep=True)
    assert done.structured == {"made": "create 2", "kept": True, "end": "end"}
    steps = {entry.key: entry.value for entry in done.journal.entries if entry.kind is Kind.STEP}
    assert steps == {"create": "create 2", "end": "end"}
    assert ran == ["create 2", "end"]
    assert play.task("unknown").journal is None


@server.tool(task="required")
def ends(ctx: Context, how: str) -> str:
    ctx.run_as_task()
    if how == "tool error":
        raise ToolError("no luck")
    if how == "protocol error":
        raise ProtocolError(-32602, "broken")
    return "well"


def start(tool: str, **arguments: object) -> PlayedTask:
    return Player(server, WITH_TASKS).call(tool, arguments).task


def provisioning() -> PlayedTask:
    return Player(server, WITH_TASKS).call("provision", {"name": "db"}, size=4).task


def test_the_branches_of_an_async_tool_are_answered_one_after_the_other_or_together():
    task = start("compare")
    assert task.asked.keys() == {"a/name", "b/name"}
    partly = task.answer(**{"a/name": "Ada"})
    assert (partly.status, partly.asked.keys(), ran) == ("input_required", {"b/name"}, [])
    assert partly.answer(**{"b/name": "Bob"}).structured == {"a": "Ada", "b": "Bob"}
    together = start("compare").answer(**{"a/name": "Ada", "b/name": "Bob"})
    assert together.structured == {"a": "Ada", "b": "Bob"}


@pytest.mark.parametrize("key", ["keep", "keep~2"])
def test_a_repeated_question_is_answered_by_its_key_or_by_its_wire_key(key):
    again = provisioning().answer(keep="maybe")
    assert again.asked.keys() == {"keep~2"}
    assert again.question(key) == again.question("keep~2")
    assert again.answer(**{key: False}).structured["kept"] is False


def test_raw_responses_can_be_sent():
    task = provisioning()
    assert task.respond({"unknown": 1}).detailed == task.detailed
    assert task.respond({"keep": {"action": "accept", "content": {"value": True}}}).structured["kept"] is True


def test_sleeps_of_a_task_can_be_skipped():
    play = Player(server, WITH_TASKS)
    before = play.clock()
    done = play.call("naps").task.wake()
    assert done.text == "after"
    assert play.clock() == pytest.approx(before + 30, abs=0.01)
    assert done.wake().detailed == done.detailed


def test_a_tool_error_completes_a_task_and_a_protocol_error_fails_it():
    ended = start("ends", how="tool error")
    assert (ended.failed, ended.text) == (True, "no luck")
    broken = start("ends", how="protocol error")
    assert (broken.status, broken.status_message, broken.error["code"]) == ("failed", "broken", -32602)
    with pytest.raises(AssertionError, match="broken"):
        _ = broken.result


def test_the_failure_shows_a_call_that_did_not_become_a_task():
    with pytest.raises(AssertionError, match="it asks 'size'"):
        _ = Player(server, WITH_TASKS).call("provision", {"name": "db"}).task
    with pytest.raises(AssertionError, match="-32021"):
        _ = Player(server).call("naps").task


def test_a_deleted_task_shows_the_error_of_the_poll():
    play = Player(server, WITH_TASKS)
    task = play.call("naps").task
    play.clock.advance(3 * 3600)
    with pytest.raises(AssertionError, match="-32602"):
        _ = task.poll().status


def test_a_worker_without_time_is_followed_by_the_next():
    clock = FakeClock()

    def slow(name: str) -> str:
        clock.advance(55)
        return run_step(name)

    def long(ctx: Context) -> str:
        return " ".join(ctx.step(name, slow, name) for name in ("one", "two", "three"))

    play = Player(task_server(long), WITH_TASKS, clock=clock, worker_ms=60_000)
    assert play.call("works").task.text == "one two three"
    assert ran == ["one", "two", "three"]
    assert [event for event, _ in play.observer.events].count("worker_finished") == 3


def test_a_task_that_never_settles_fails_the_test(monkeypatch):
    def endless(ctx: Context) -> None:
        for number in range(1_000_000):
            ctx.step(str(number), run_step, "work")

    monkeypatch.setattr(driver, "MAX_TURNS", 20)
    created = Player(task_server(endless), WITH_TASKS, always_replay=True).call("works")
    with pytest.raises(AssertionError, match="does not rest"):
        _ = created.task
    assert len(ran) <= 20


def test_with_always_replay_a_task_waits_until_a_page_was_visited():
    visits: list[str] = []

    def visit(ctx: Context) -> str:
        ctx.run_as_task()
        ctx.elicit_url("page", "Sign in", "https://x.test", done=lambda: bool(visits))
        return "signed in"

    play = Player(task_server(visit), WITH_TASKS, always_replay=True)
    task = play.call("works").task.answer(page={"action": "accept"}).wake()
    assert task.status == "working"
    visits.append("ada")
    assert task.wake().text == "signed in"
