"""Questions of tasks whose clients cannot show them: on the page, with the link in the result of the task."""

from contextlib import suppress

import pytest

from mcp_roundtrip import AsyncContext, Context, Server
from mcp_roundtrip.tasks.worker import MAX_ASKED
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.client_requests import ASKABLE, TASKS, TOKEN, text
from support.deployment import Deployment
from support.task_tools import ran, run_step

server = Server("tasks")
clocks = []


@server.tool(task="required")
def provision(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("create", run_step, "created")
    size = ctx.elicit("size", "How large?", int)
    ctx.elicit("keep", "Keep it?", bool)
    return ctx.step("finish", run_step, f"size {size}")


@server.tool(task="optional")
def rename(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("lock", run_step, "locked")
    name = ctx.elicit("name", "Which name?", str)
    return ctx.step("rename", run_step, name)


@server.tool(task="optional")
def long(ctx: Context) -> str:
    ctx.elicit("go", "Begin?", bool)
    for number in range(6):
        ctx.step(f"part {number}", ten_seconds)
    return "6 parts"


def ten_seconds():
    clocks[-1].advance(10)
    return run_step("part")


@server.tool(task="required")
async def naps(ctx: AsyncContext) -> str:
    await ctx.run_as_task()

    async def nap(branch: AsyncContext) -> None:
        for number in range(1_000):
            await branch.sleep(f"nap {number}", 60_000)

    async def ask(branch: AsyncContext) -> int:
        return await branch.elicit("size", "How large?", int)

    await ctx.gather({"question": ask, "naps": nap})
    return "awake"


@pytest.fixture
def deployment():
    return Deployment(server, capabilities=TASKS)


def done(deployment, tool="provision"):
    task = deployment.poll(deployment.run_task(tool))
    assert task["status"] == "completed"
    return text(task["result"])


def test_a_parked_call_that_runs_out_of_time_becomes_a_task(deployment):
    assert deployment.answer(deployment.text("long"), go=True) == "stored"
    clocks.append(deployment.clock)
    assert done(deployment, "long") == "6 parts"
    assert ran == ["part"] * 6


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_crash_at_any_call_of_the_table_repeats_no_step_and_loses_no_answer(is_done):
    crashes = []
    for killed_call in range(200):
        ran.clear()
        deployment = Deployment(server, capabilities=TASKS, max_open=2)
        crashing = CrashingStore(deployment.store, killed_call, is_done)
        assert survive(deployment, crashing) == "size 3"
        assert ran.count("size 3") <= 1 + ("J#finish" in crashing.killed_at)
        assert ran.count("created") <= 1 + ("J#create" in crashing.killed_at)
        if not crashing.killed_at:
            break
        crashes.append(crashing.killed_at)
    assert sum(each.startswith("put_new_and_update") for each in crashes) >= 4
    assert not crashing.killed_at


def survive(deployment, crashing):
    """Carry out the call; the process that uses the crashing store dies once, and others continue."""
    answers = {"size": 3, "keep": True}
    for _ in range(40):
        said = attempt(
            deployment, lambda: deployment if crashing.killed_at else deployment.by(store=crashing)
        )
        if TOKEN.search(said):
            deployment.answer(said, **{key: answers[key] for key in deployment.asked_by(said)})
        elif said.startswith("size"):
            return said
        deployment.clock.advance(40)
    raise AssertionError("the call does not end")


def attempt(deployment, living):
    """Call the tool and follow its task; return its text, or nothing if the call must be made again."""
    with suppress(WorkerKilled):
        result = living().call("provision")
        if result["resultType"] != "task":
            return text(result)
        for _ in range(10):
            with suppress(WorkerKilled):
                living().run_workers()
            if deployment.status(result["taskId"]) != "working":
                return deployment.text_of(result["taskId"])
            deployment.clock.advance(1_000)
        raise AssertionError("the task does not end")
    return ""


def test_a_question_on_the_page_is_asked_twenty_times_over_all_tasks_of_the_call(deployment):
    def result_of_next_task():
        return deployment.poll(deployment.run_task("provision"))["result"]

    for _ in range(MAX_ASKED):
        asked = result_of_next_task()
        assert asked["isError"] is False
        deployment.answer(text(asked), size="large")
    result = result_of_next_task()
    assert result["isError"] is True
    assert "'size'" in text(result)
    assert ran == ["created"]


def test_an_open_question_is_not_asked_again_when_another_branch_wakes(deployment):
    askable = deployment.by(capabilities=ASKABLE)
    task_id = askable.run_task("naps")
    for _ in range(MAX_ASKED - 1):
        asked = askable.poll(task_id)["inputRequests"]
        askable.resume(task_id, **dict.fromkeys(asked, "large"))
    for _ in range(3):
        askable.clock.advance(60)
        assert askable.status(task_id) == "input_required"
        askable.run_workers()
    assert askable.events.count("answer_refused") == MAX_ASKED - 1


def test_a_task_of_an_unlimited_deployment_asks_on_the_page_also_above_a_later_limit():
    """It is not among the tasks that count."""
    deployment = Deployment(server, capabilities=TASKS)
    task_id = deployment.start("provision")
    deployment.table.max_open = 1
    deployment.start("rename")
    deployment.run_workers()
    assert "on this page" in deployment.text_of(task_id)
