"""Tasks from the call to their end, with a store in memory and workers run by the test."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import pytest

from mcp_roundtrip import AsyncContext, Context, ProtocolError, Server, ToolError
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.errors import StepInterrupted
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.task_deployment import UNDECLARED, LambdaContext, TaskDeployment, accepted

server = Server("jobs")
ran: list[str] = []


@pytest.fixture(autouse=True)
def reset_ran() -> None:
    ran.clear()


def record_run(what: str) -> str:
    ran.append(what)
    return what


@server.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


@server.tool(task="optional")
def compute(ctx: Context, label: str) -> str:
    ctx.run_as_task(ttl_ms=60_000)
    return ctx.step("work", record_run, label)


@server.tool(task="required")
def fails(ctx: Context) -> str:
    ctx.run_as_task()
    raise ToolError("no luck")


@server.tool(task="required")
def breaks(ctx: Context) -> str:
    ctx.run_as_task()
    raise ProtocolError(-32603, "broken")


@server.tool(task="optional")
def provision(ctx: Context, name: str) -> dict[str, Any]:
    size = ctx.elicit("size", f"How large is {name}?", int)
    ctx.run_as_task()
    created = ctx.step("create", record_run, f"create {size}")
    keep = ctx.elicit("keep", f"Keep {created}?", bool)
    return {"created": created, "keep": keep, "done": ctx.step("activate", record_run, "activate")}


@server.tool(task="required")
async def two(ctx: AsyncContext) -> dict[str, str]:
    await ctx.run_as_task()
    return await ctx.gather({name: lambda branch: branch.elicit("name", "Name?", str) for name in ("a", "b")})


@server.tool(task="required")
def naps(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("before", record_run, "before")
    ctx.sleep("nap", 30_000)
    return ctx.step("after", record_run, "after")


@pytest.fixture
def deployment() -> TaskDeployment:
    return TaskDeployment(server)


def test_the_extension_is_advertised_if_a_tool_can_become_a_task(deployment: TaskDeployment) -> None:
    assert deployment.post("server/discover")["result"]["capabilities"]["extensions"] == {TASKS_EXTENSION: {}}
    plain = Server("plain")
    assert "extensions" not in TaskDeployment(plain).post("server/discover")["result"]["capabilities"]
    assert TaskDeployment(plain).get("x" * 32)["error"]["code"] == -32601


def test_a_call_becomes_a_task_with_the_result_of_the_call(deployment: TaskDeployment) -> None:
    created = deployment.call("compute", arguments={"label": "x"})["result"]
    assert created.keys() == {
        *("resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "_meta")
    }
    assert (created["resultType"], created["status"], created["ttlMs"]) == ("task", "working", 60_000)
    assert deployment.status(created["taskId"]) == "working"
    deployment.run_workers()
    done = deployment.get(created["taskId"])["result"]
    assert (done["resultType"], done["status"]) == ("complete", "completed")
    assert done["result"]["content"] == [{"type": "text", "text": "x"}]
    assert done["result"]["resultType"] == "complete"
    assert ran == ["x"]


def test_a_client_without_the_extension_gets_the_result_at_once(deployment: TaskDeployment) -> None:
    result = deployment.call("compute", arguments={"label": "x"}, capabilities=UNDECLARED)["result"]
    assert result["resultType"] == "complete"


def test_a_tool_that_requires_a_task_refuses_clients_without_the_extension(
    deployment: TaskDeployment,
) -> None:
    error = deployment.call("fails", capabilities=UNDECLARED)["error"]
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS_EXTENSION: {}}}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_task_methods_check_the_declaration_before_reading_the_table(
    deployment: TaskDeployment, method: str
) -> None:
    error = deployment.post(method, taskId="gate", inputResponses={}, capabilities=UNDECLARED)["error"]
    assert error["code"] == -32021


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list", "tasks/input_response"])
def test_methods_of_legacy_dialects_do_not_exist(deployment: TaskDeployment, method: str) -> None:
    assert deployment.post(method, taskId="x")["error"]["code"] == -32601


def test_a_tool_error_completes_the_task_and_a_protocol_error_fails_it(deployment: TaskDeployment) -> None:
    failing, breaking = deployment.start("fails"), deployment.start("breaks")
    deployment.run_workers()
    failed = deployment.get(failing)["result"]
    assert (failed["status"], failed["result"]["isError"]) == ("completed", True)
    broken = deployment.get(breaking)["result"]
    assert (broken["status"], broken["error"]) == ("failed", {"code": -32603, "message": "broken"})
    assert "result" not in broken


def test_a_task_started_after_rounds_keeps_their_answers(deployment: TaskDeployment) -> None:
    asked = deployment.call("provision", arguments={"name": "db"})["result"]
    assert asked["resultType"] == "input_required"
    created = deployment.call(
        "provision",
        arguments={"name": "db"},
        requestState=asked["requestState"],
        inputResponses={"size": accepted(4)},
    )["result"]
    assert created["resultType"] == "task"
    assert not {"requestState", "inputRequests"} & created.keys()
    task_id = created["taskId"]
    deployment.run_workers()
    waiting = deployment.get(task_id)["result"]
    assert waiting["status"] == "input_required"
    assert waiting["inputRequests"].keys() == {"keep"}
    assert deployment.get(task_id)["result"] == waiting, "while the question is open"
    assert deployment.update(task_id, keep=accepted(True))["result"].keys() == {"resultType", "_meta"}
    deployment.run_workers()
    result = deployment.get(task_id)["result"]["result"]
    assert result["structuredContent"] == {"created": "create 4", "keep": True, "done": "activate"}
    assert ran == ["create 4", "activate"]


def parked(deployment: TaskDeployment) -> str:
    asked = deployment.call("provision", arguments={"name": "db"}, inputResponses={"size": accepted(4)})[
        "result"
    ]
    deployment.run_workers()
    return str(asked["taskId"])


def test_an_invalid_answer_is_asked_again_with_a_new_key(deployment: TaskDeployment) -> None:
    task_id = parked(deployment)
    deployment.update(task_id, keep=accepted("maybe"))
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"keep~2"}
    deployment.update(task_id, **{"keep": accepted(True)})
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"keep~2"}
    deployment.update(task_id, **{"keep~2": accepted(False)})
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["structuredContent"]["keep"] is False
    assert ran == ["create 4", "activate"]


def test_answers_to_unknown_questions_are_acknowledged_and_ignored(deployment: TaskDeployment) -> None:
    task_id = parked(deployment)
    before = deployment.get(task_id)["result"]
    assert "result" in deployment.update(task_id, unknown={"ignored": True})
    assert deployment.get(task_id)["result"] == before
    assert not deployment.table.dispatcher.sent


def test_unanswered_questions_stay_outstanding(deployment: TaskDeployment) -> None:
    task_id = deployment.start("two")
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"a/name", "b/name"}
    deployment.update(task_id, **{"a/name": accepted("Ada")})
    after = deployment.get(task_id)["result"]
    assert (after["status"], after["inputRequests"].keys()) == ("input_required", {"b/name"})
    deployment.update(task_id, **{"a/name": accepted("Eve")})
    deployment.update(task_id, **{"b/name": accepted("Bob")})
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["structuredContent"] == {"a": "Ada", "b": "Bob"}


def test_a_cancelled_task_does_not_run_again(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    for _ in range(2):
        assert deployment.cancel(task_id)["result"].keys() == {"resultType", "_meta"}
    deployment.run_workers()
    assert deployment.status(task_id) == "cancelled"
    assert ran == []


def test_cancelling_an_ended_task_is_acknowledged_and_has_no_effect(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    deployment.run_workers()
    before = deployment.get(task_id)["result"]
    assert "result" in deployment.cancel(task_id)
    assert deployment.get(task_id)["result"] == before


def test_a_task_of_another_principal_is_unknown(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        foreign = deployment.post(method, taskId=task_id, inputResponses={}, user="bob")["error"]
        unknown = deployment.post(method, taskId="A" * 32, inputResponses={})["error"]
        malformed = deployment.post(method, taskId="../x", inputResponses={})["error"]
        assert foreign == unknown == malformed
        assert foreign["code"] == -32602
    assert deployment.status(task_id) == "working"


def test_a_poll_redispatches_a_task_whose_dispatch_was_lost(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    deployment.table.dispatcher.sent.clear()
    deployment.get(task_id)
    assert not deployment.table.dispatcher.sent, "not at once"
    deployment.clock.advance(16)
    deployment.get(task_id)
    deployment.get(task_id)
    assert len(deployment.table.dispatcher.sent) == 1
    deployment.run_workers()
    assert deployment.status(task_id) == "completed"


def test_a_poll_wakes_a_sleeping_task_without_repeating_steps(deployment: TaskDeployment) -> None:
    task_id = deployment.start("naps")
    deployment.run_workers()
    assert (deployment.status(task_id), ran) == ("working", ["before"])
    deployment.clock.advance(20)
    deployment.get(task_id)
    assert not deployment.table.dispatcher.sent
    deployment.clock.advance(10)
    deployment.get(task_id)
    deployment.run_workers()
    assert (deployment.status(task_id), ran) == ("completed", ["before", "after"])


def test_a_task_past_its_ttl_fails_and_is_deleted_later(
    deployment: TaskDeployment,
) -> None:
    task_id = parked(deployment)
    deployment.clock.advance(3600)
    failed = deployment.get(task_id)["result"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert failed["statusMessage"]
    assert "result" in deployment.update(task_id, keep=accepted(True))
    deployment.clock.advance(3600)
    assert deployment.get(task_id)["error"]["code"] == -32602


def test_one_of_two_deliveries_completes_a_task(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    deployment.table.dispatcher.sent *= 3
    deployment.run_workers()
    assert (deployment.status(task_id), ran) == ("completed", ["x"])


def test_a_large_result_is_read_completely(deployment: TaskDeployment) -> None:
    text = "".join(chr(33 + (number * 7919) % 90) for number in range(1_500_000))
    other = Server("other")

    @other.tool(task="required")
    def large(ctx: Context) -> str:
        ctx.run_as_task()
        return text

    deployment = TaskDeployment(other)
    task_id = deployment.start("large")
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["content"][0]["text"] == text


def test_progress_is_the_status_message_while_the_task_works() -> None:
    other, seen = Server("other"), list[tuple[str, str | None]]()

    def look() -> None:
        task = deployment.get(task_id)["result"]
        seen.append((task["status"], task.get("statusMessage")))

    @other.tool(task="required")
    def slow(ctx: Context) -> str:
        ctx.run_as_task()
        ctx.progress(1, 3, "one of three")
        ctx.step("early", look)
        ctx.elicit("go", "On?", bool)
        ctx.step("resumed", look)
        ctx.progress(2, 3, "two of three")
        ctx.step("late", look)
        return "done"

    deployment = TaskDeployment(other)
    task_id = deployment.start("slow")
    deployment.run_workers()
    look()
    deployment.update(task_id, go={"action": "accept", "content": {"value": True}})
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


@server.tool(task="required")
def pays(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("prepare", record_run, "prepare")
    try:
        ctx.step("charge", record_run, "charge", at_most_once=True)
    except StepInterrupted:
        ctx.step("look", record_run, "look")
    ctx.elicit("sure", "Sure?", bool)
    return ctx.step("ship", record_run, "ship")


def play_with_crash(deployment: TaskDeployment, dies_at: int, *, is_done: bool) -> bool:
    """Play `pays` to its end and kill the worker once. Return whether the call to kill it at occurred."""
    task_id = deployment.start("pays")
    died = False
    for _ in range(8):
        while deployment.table.dispatcher.sent:
            _, pk = deployment.table.dispatcher.sent.popleft()
            dying = CrashingStore(deployment.table.store, 10**9 if died else dies_at, is_done)
            with suppress(WorkerKilled):
                work(server._tool_methods, {"task": pk}, LambdaContext(), partial(deployment.ports, dying))
            died = died or dying.calls > dies_at
            dies_at = dies_at if died else dies_at - dying.calls
        task = deployment.get(task_id)["result"]
        if task["status"] == "completed":
            assert task["result"]["isError"] is False
            return died
        if "inputRequests" in task:
            deployment.update(task_id, **{key: accepted(True) for key in task["inputRequests"]})
        deployment.clock.advance(1000)  # the lease has expired, so a poll may dispatch a worker
    raise AssertionError(f"the task was lost: {deployment.get(task_id)}")


@pytest.mark.parametrize("is_done", [False, True], ids=["before it is done", "after it is done"])
def test_a_task_completes_if_a_worker_is_killed_at_any_call_of_the_store(is_done: bool) -> None:
    for dies_at in count():
        ran.clear()
        if not play_with_crash(TaskDeployment(server), dies_at, is_done=is_done):
            break
        times = Counter(ran)
        assert times["charge"] <= 1, dies_at
        assert times["charge"] + times["look"] >= 1
        assert times["ship"] >= 1
        assert sum(times.values()) <= 5, "a journaled step did not run again"
    assert dies_at > 10


def test_a_nonrepeatable_step_is_refused_outside_a_task(deployment: TaskDeployment) -> None:
    other = Server("other")

    @other.tool
    def pay(ctx: Context) -> str:
        return ctx.step("charge", record_run, "x", at_most_once=True)

    @other.tool
    def naps(ctx: Context) -> None:
        ctx.sleep("nap", 1)

    @other.tool
    def escalates(ctx: Context) -> None:
        ctx.run_as_task()

    deployment = TaskDeployment(other)
    for name in ("pay", "naps", "escalates"):
        assert deployment.call(name)["result"]["isError"]
        assert deployment.observer.failures[-1][0] == "tool_raised"
    assert ran == []


def test_a_step_result_over_the_item_limit_fails_the_task_with_a_remedy() -> None:
    other = Server("other")

    @other.tool(task="required")
    def hoards(ctx: Context) -> str:
        ctx.run_as_task()
        return ctx.step("much", lambda: "x" * 500_000)

    deployment = TaskDeployment(other)
    task_id = deployment.start("hoards")
    deployment.run_workers()
    failed = deployment.get(task_id)["result"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert [event for event, _ in deployment.observer.failures] == ["task_too_large"]


def test_an_answer_over_the_item_limit_is_refused_and_the_question_stays_open(
    deployment: TaskDeployment,
) -> None:
    task_id = parked(deployment)
    assert deployment.update(task_id, keep=accepted("x" * 500_000))["error"]["code"] == -32602
    assert deployment.status(task_id) == "input_required"


def test_a_store_error_is_an_internal_error_and_the_task_continues_later(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")

    class ThrottledStore:
        def update(self, *_: object) -> None:
            raise StoreError("ThrottlingException")

        put_new = get = query = update

    throttled: Any = ThrottledStore()
    with pytest.raises(StoreError):
        work(
            server._tool_methods,
            {"task": deployment.table.dispatcher.sent[0][1]},
            LambdaContext(),
            partial(deployment.ports, throttled),
        )
    assert deployment.get(task_id, store=throttled)["error"]["code"] == -32603
    assert deployment.observer.failures[-1][0] == "task_table_unavailable"
    deployment.run_workers()
    assert deployment.status(task_id) == "completed"


def test_a_worker_that_runs_out_of_time_checkpoints_and_dispatches_the_next() -> None:
    other, clock = Server("other"), FakeClock()
    deployment = TaskDeployment(other, clock)

    def slow(name: str) -> str:
        clock.advance(880)
        return record_run(name)

    @other.tool(task="required")
    def long(ctx: Context) -> str:
        ctx.run_as_task(ttl_ms=10_000_000)
        return " ".join(ctx.step(name, slow, name) for name in ("one", "two", "three"))

    task_id = deployment.start("long")
    deployment.run_workers()
    done = deployment.get(task_id)["result"]
    assert done["result"]["content"][0]["text"] == "one two three"
    assert ran == ["one", "two", "three"]
    worked = [event for event, _ in deployment.observer.events if event == "worker_finished"]
    assert len(worked) == 3


def test_tasks_of_a_removed_tool_fail(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    deployment.next_deployment(Server("jobs")).run_workers()
    assert deployment.status(task_id) == "failed"


def test_code_that_does_not_match_the_journal_fails_the_task_with_a_reason(
    deployment: TaskDeployment,
) -> None:
    task_id = parked(deployment)
    changed = Server("jobs")

    @changed.tool(task="optional")
    def provision(ctx: Context, name: str) -> str:
        ctx.elicit("size", f"How small is {name}?", int)
        return "done"

    deployment.update(task_id, keep=accepted(True))
    deployment.next_deployment(changed).run_workers()
    failed = deployment.get(task_id)["result"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert [event for event, _ in deployment.observer.failures] == ["drift"]
