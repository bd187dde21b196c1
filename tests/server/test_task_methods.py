"""Tasks from the call to their end, with a store in memory and workers run by the test."""

import json
from typing import Any

import pytest

from mcp_roundtrip import AsyncContext, Context, Server
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION
from support.client_requests import accepted, next_round
from support.deployment import Deployment
from support.faulty_store import FaultyStore
from support.task_tools import meanwhile, ran, run_step, task_server

server = Server("jobs")


@server.tool(task="optional")
def compute(ctx: Context, label: str) -> str:
    ctx.run_as_task(ttl_ms=60_000)
    return ctx.step("work", run_step, label)


@server.tool(task="optional")
def provision(ctx: Context, name: str) -> dict[str, Any]:
    size = ctx.elicit("size", f"How large is {name}?", int)
    ctx.run_as_task()
    created = ctx.step("create", run_step, f"create {size}")
    keep = ctx.elicit("keep", f"Keep {created}?", bool)
    return {"created": created, "keep": keep, "done": ctx.step("activate", run_step, "activate")}


@server.tool(task="required")
async def asks_while_it_works(ctx: AsyncContext) -> Any:
    async def asks(branch: AsyncContext) -> str:
        return await branch.elicit("name", "Name?", str)

    async def works(branch: AsyncContext) -> str:
        await branch.sleep("nap", 30_000)
        done = await branch.step("work", run_step, "work")
        await branch.sleep("another", 30_000)
        return done

    await ctx.run_as_task()
    return await ctx.gather({"asks": asks, "works": works})


def test_the_extension_is_advertised_if_a_tool_can_become_a_task(deployment):
    capabilities = deployment.result("server/discover")["capabilities"]
    assert capabilities["extensions"] == {TASKS_EXTENSION: {}}
    assert "tasks" not in capabilities, "of 2025-11-25"
    plain = Deployment(Server("plain"))
    assert "extensions" not in plain.result("server/discover")["capabilities"]
    assert plain.error("tasks/get", taskId="x" * 32)["code"] == -32601


def test_a_task_started_after_rounds_keeps_their_answers(deployment):
    asked = deployment.call("provision", name="db")
    assert asked["resultType"] == "input_required"
    created = deployment.post_call("provision", {"name": "db"}, **next_round(asked, size=4))["result"]
    assert created["resultType"] == "task"
    assert not {"requestState", "inputRequests"} & created.keys()
    task_id = created["taskId"]
    assert {**deployment.poll(task_id), "resultType": "task"} == created
    deployment.run_workers()
    waiting = deployment.poll(task_id)
    assert waiting["status"] == "input_required"
    assert waiting["inputRequests"].keys() == {"keep"}
    assert "related-task" not in json.dumps([created, waiting])
    assert deployment.poll(task_id) == waiting, "while the question is open"
    assert deployment.update(task_id, keep=accepted(True))["result"].keys() == {"resultType", "_meta"}
    deployment.run_workers()
    result = deployment.poll(task_id)["result"]
    assert result["structuredContent"] == {"created": "create 4", "keep": True, "done": "activate"}
    assert ran == ["create 4", "activate"]


def parked(deployment):
    created = deployment.post_call("provision", {"name": "db"}, inputResponses={"size": accepted(4)})
    deployment.run_workers()
    return created["result"]["taskId"]


def test_an_answer_that_arrives_during_a_pass_counts(deployment):
    task_id = deployment.run_task("asks_while_it_works")
    deployment.clock.advance(30)
    deployment.poll(task_id)
    meanwhile.append(lambda: deployment.update(task_id, **{"asks/name": accepted("Ada")}))
    deployment.run_workers()
    assert deployment.status(task_id) == "working", "nothing is asked again"
    deployment.clock.advance(30)
    deployment.poll(task_id)
    deployment.run_workers()
    assert deployment.poll(task_id)["result"]["structuredContent"] == {"asks": "Ada", "works": "work"}


def test_a_poll_redispatches_a_task_whose_dispatch_was_lost_and_one_delivery_runs_it(
    deployment,
):
    task_id = deployment.start("compute", label="x")
    deployment.sent.clear()
    deployment.poll(task_id)
    assert not deployment.sent, "not at once"
    deployment.clock.advance(16)
    deployment.poll(task_id)
    deployment.poll(task_id)
    assert len(deployment.sent) == 1
    deployment.sent.extend(2 * list(deployment.sent))
    deployment.run_workers()
    assert (deployment.status(task_id), ran) == ("completed", ["x"])


def test_a_task_past_its_ttl_fails_and_is_deleted_later(deployment):
    task_id = parked(deployment)
    deployment.clock.advance(3599)
    assert deployment.status(task_id) == "input_required"
    deployment.clock.advance(1)
    failed = deployment.poll(task_id)
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert failed["statusMessage"]
    assert "result" in deployment.update(task_id, keep=accepted(True))
    deployment.clock.advance(3600)
    assert deployment.error("tasks/get", taskId=task_id)["code"] == -32602


def test_a_large_result_is_read_completely():
    text = "".join(chr(33 + (number * 7919) % 90) for number in range(1_500_000))
    deployment = Deployment(task_server(lambda ctx: text))
    assert deployment.text_of(deployment.run_task("works")) == text


def test_progress_is_the_status_message_while_the_task_works():
    seen = []

    def look():
        task = deployment.poll(task_id)
        seen.append((task["status"], task.get("statusMessage")))

    def body(ctx):
        ctx.progress(1, 3, "one of three")
        ctx.step("early", look)
        ctx.elicit("go", "On?", bool)
        ctx.step("resumed", look)
        ctx.progress(2, 3, "two of three")
        ctx.step("late", look)

    deployment = Deployment(task_server(body))
    task_id = deployment.start("works")
    deployment.run_workers()
    look()
    deployment.update(task_id, go=accepted(True))
    look()
    deployment.run_workers()
    look()
    assert seen == [
        ("working", "one of three"),
        ("input_required", None),
        ("working", None),
        ("working", None),
        ("working", "two of three"),
        ("completed", None),
    ]


def test_a_step_result_over_the_item_limit_fails_the_task_with_a_remedy():
    deployment = Deployment(task_server(lambda ctx: ctx.step("much", lambda: "x" * 500_000)))
    failed = deployment.poll(deployment.run_task("works"))
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert deployment.failures == ["task_too_large"]


def test_an_answer_over_the_item_limit_is_refused_and_the_question_stays_open(deployment):
    task_id = parked(deployment)
    assert deployment.update(task_id, keep=accepted("x" * 500_000))["error"]["code"] == -32602
    assert deployment.status(task_id) == "input_required"


def test_a_store_error_is_an_internal_error_and_the_task_continues_later(deployment):
    task_id = deployment.start("compute", label="x")

    throttled = deployment.by(store=FaultyStore())
    with pytest.raises(StoreError):
        throttled.work({"task": deployment.sent[0][1]})
    assert throttled.error("tasks/get", taskId=task_id)["code"] == -32603
    assert deployment.failures[-1] == "task_table_unavailable"
    deployment.run_workers()
    assert deployment.status(task_id) == "completed"


def test_a_worker_that_runs_out_of_time_checkpoints_and_dispatches_the_next():
    def slow(name):
        deployment.clock.advance(880)
        return run_step(name)

    names = ["one", "two", "three"]
    deployment = Deployment(task_server(lambda ctx: " ".join(ctx.step(name, slow, name) for name in names)))
    assert deployment.text_of(deployment.run_task("works")) == "one two three"
    assert ran == names
    assert deployment.events.count("worker_finished") == 3
