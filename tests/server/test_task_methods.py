"""Tasks from a call to their end: the extension's rules over a store in memory, workers run by hand."""

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
def nothing_ran() -> None:
    ran.clear()


def did(what: str) -> str:
    ran.append(what)
    return what


@server.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


@server.tool(task="optional")
def compute(ctx: Context, label: str) -> str:
    ctx.run_as_task(ttl_ms=60_000)
    return ctx.step("work", did, label)


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
    made = ctx.step("create", did, f"create {size}")
    keep = ctx.elicit("keep", f"Keep {made}?", bool)
    return {"made": made, "kept": keep, "done": ctx.step("activate", did, "activate")}


@server.tool(task="required")
async def two(ctx: AsyncContext) -> dict[str, str]:
    await ctx.run_as_task()
    return await ctx.gather({name: lambda branch: branch.elicit("name", "Name?", str) for name in ("a", "b")})


@server.tool(task="required")
def naps(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("before", did, "before")
    ctx.sleep("nap", 30_000)
    return ctx.step("after", did, "after")


@pytest.fixture
def deployment() -> TaskDeployment:
    return TaskDeployment(server)


def test_the_extension_is_advertised_where_a_tool_can_become_a_task(deployment: TaskDeployment) -> None:
    assert deployment.post("server/discover")["result"]["capabilities"]["extensions"] == {TASKS_EXTENSION: {}}
    plain = Server("plain")
    assert "extensions" not in TaskDeployment(plain).post("server/discover")["result"]["capabilities"]
    assert TaskDeployment(plain).get("x" * 32)["error"]["code"] == -32601


def test_a_call_becomes_a_task_and_its_result_is_the_calls(deployment: TaskDeployment) -> None:
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


def test_a_client_that_did_not_declare_tasks_gets_the_result_at_once(deployment: TaskDeployment) -> None:
    result = deployment.call("compute", arguments={"label": "x"}, capabilities=UNDECLARED)["result"]
    assert result["resultType"] == "complete"


def test_a_tool_that_needs_a_task_refuses_a_client_without(deployment: TaskDeployment) -> None:
    error = deployment.call("fails", capabilities=UNDECLARED)["error"]
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS_EXTENSION: {}}}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_methods_need_the_declaration_before_anything_is_looked_up(
    deployment: TaskDeployment, method: str
) -> None:
    error = deployment.post(method, taskId="gate", inputResponses={}, capabilities=UNDECLARED)["error"]
    assert error["code"] == -32021


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list", "tasks/input_response"])
def test_other_methods_of_older_dialects_do_not_exist(deployment: TaskDeployment, method: str) -> None:
    assert deployment.post(method, taskId="x")["error"]["code"] == -32601


def test_a_tool_error_completes_the_task_and_a_protocol_error_fails_it(deployment: TaskDeployment) -> None:
    failing, breaking = deployment.start("fails"), deployment.start("breaks")
    deployment.run_workers()
    failed = deployment.get(failing)["result"]
    assert (failed["status"], failed["result"]["isError"]) == ("completed", True)
    broken = deployment.get(breaking)["result"]
    assert (broken["status"], broken["error"]) == ("failed", {"code": -32603, "message": "broken"})
    assert "result" not in broken


def test_rounds_come_first_and_what_they_learnt_goes_into_the_task(deployment: TaskDeployment) -> None:
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
    assert deployment.get(task_id)["result"] == waiting, "until it is answered"
    assert deployment.update(task_id, keep=accepted(True))["result"].keys() == {"resultType", "_meta"}
    deployment.run_workers()
    result = deployment.get(task_id)["result"]["result"]
    assert result["structuredContent"] == {"made": "create 4", "kept": True, "done": "activate"}
    assert ran == ["create 4", "activate"]


def parked(deployment: TaskDeployment) -> str:
    asked = deployment.call("provision", arguments={"name": "db"}, inputResponses={"size": accepted(4)})[
        "result"
    ]
    deployment.run_workers()
    return str(asked["taskId"])


def test_an_answer_that_does_not_fit_is_asked_again_under_a_new_key(deployment: TaskDeployment) -> None:
    task_id = parked(deployment)
    deployment.update(task_id, keep=accepted("maybe"))
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"keep~2"}
    deployment.update(task_id, **{"keep": accepted(True)})
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"keep~2"}
    deployment.update(task_id, **{"keep~2": accepted(False)})
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["structuredContent"]["kept"] is False
    assert ran == ["create 4", "activate"]


def test_answers_to_no_question_are_acknowledged_and_change_nothing(deployment: TaskDeployment) -> None:
    task_id = parked(deployment)
    before = deployment.get(task_id)["result"]
    assert "result" in deployment.update(task_id, unknown={"ignored": True})
    assert deployment.get(task_id)["result"] == before
    assert not deployment.table.dispatcher.sent


def test_some_of_several_answers_leave_the_rest_outstanding(deployment: TaskDeployment) -> None:
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


def test_a_cancelled_task_is_worked_on_no_more(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    for _ in range(2):
        assert deployment.cancel(task_id)["result"].keys() == {"resultType", "_meta"}
    deployment.run_workers()
    assert deployment.status(task_id) == "cancelled"
    assert ran == []


def test_cancelling_what_has_ended_is_acknowledged_and_changes_nothing(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    deployment.run_workers()
    before = deployment.get(task_id)["result"]
    assert "result" in deployment.cancel(task_id)
    assert deployment.get(task_id)["result"] == before


def test_a_task_of_another_principal_looks_like_no_task(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        foreign = deployment.post(method, taskId=task_id, inputResponses={}, user="bob")["error"]
        unknown = deployment.post(method, taskId="A" * 32, inputResponses={})["error"]
        malformed = deployment.post(method, taskId="../x", inputResponses={})["error"]
        assert foreign == unknown == malformed
        assert foreign["code"] == -32602
    assert deployment.status(task_id) == "working"


def test_a_task_whose_dispatch_was_lost_is_worked_on_after_a_poll(deployment: TaskDeployment) -> None:
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


def test_a_sleeping_task_wakes_at_a_poll_and_repeats_nothing(deployment: TaskDeployment) -> None:
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


def test_a_task_that_is_not_finished_in_its_time_fails_and_is_forgotten_later(
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


def test_a_task_is_finished_by_one_of_two_deliveries(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    deployment.table.dispatcher.sent *= 3
    deployment.run_workers()
    assert (deployment.status(task_id), ran) == ("completed", ["x"])


def test_a_large_result_is_read_back_whole(deployment: TaskDeployment) -> None:
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


def test_progress_is_the_tasks_status_message(deployment: TaskDeployment) -> None:
    other = Server("other")

    @other.tool(task="required")
    def slow(ctx: Context) -> str:
        ctx.run_as_task()
        ctx.progress(1, 3, "one of three")
        return str(ctx.elicit("go", "On?", bool))

    deployment = TaskDeployment(other)
    task_id = deployment.start("slow")
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["statusMessage"] == "one of three"


@server.tool(task="required")
def pays(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("prepare", did, "prepare")
    try:
        ctx.step("charge", did, "charge", at_most_once=True)
    except StepInterrupted:
        ctx.step("look", did, "look")
    ctx.elicit("sure", "Sure?", bool)
    return ctx.step("ship", did, "ship")


def played(deployment: TaskDeployment, dies_at: int, *, is_done: bool) -> bool:
    """Play `pays` to its end, killing the worker once; whether there was a call to kill it at."""
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
        deployment.clock.advance(1000)  # a lease is over, a poll may send for a worker
    raise AssertionError(f"the task was lost: {deployment.get(task_id)}")


@pytest.mark.parametrize("is_done", [False, True], ids=["before it is done", "after it is done"])
def test_a_worker_may_be_killed_at_any_call_of_the_store(is_done: bool) -> None:
    for dies_at in count():
        ran.clear()
        if not played(TaskDeployment(server), dies_at, is_done=is_done):
            break
        times = Counter(ran)
        assert times["charge"] <= 1, dies_at
        assert times["charge"] + times["look"] >= 1
        assert times["ship"] >= 1
        assert sum(times.values()) <= 5, "what was journaled did not run again"
    assert dies_at > 10


def test_outside_a_task_nothing_can_be_promised_to_run_once(deployment: TaskDeployment) -> None:
    other = Server("other")

    @other.tool
    def pay(ctx: Context) -> str:
        return ctx.step("charge", did, "x", at_most_once=True)

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


def test_a_step_that_returns_more_than_an_item_holds_fails_the_task_and_says_what_to_do() -> None:
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


def test_an_answer_that_no_item_holds_is_refused_and_the_question_stands(deployment: TaskDeployment) -> None:
    task_id = parked(deployment)
    assert deployment.update(task_id, keep=accepted("x" * 500_000))["error"]["code"] == -32602
    assert deployment.status(task_id) == "input_required"


def test_a_store_that_fails_is_an_internal_error_and_loses_nothing(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")

    class Throttled:
        def update(self, *_: object) -> None:
            raise StoreError("ThrottlingException")

        put_new = get = query = update

    throttled: Any = Throttled()
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


def test_a_worker_that_runs_out_of_time_gives_the_task_back_and_sends_for_the_next() -> None:
    other, clock = Server("other"), FakeClock()
    deployment = TaskDeployment(other, clock)

    def slow(name: str) -> str:
        clock.advance(880)
        return did(name)

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


def test_a_tool_that_a_later_deployment_does_not_have_fails_its_tasks(deployment: TaskDeployment) -> None:
    task_id = deployment.start("compute", label="x")
    deployment.next_deployment(Server("jobs")).run_workers()
    assert deployment.status(task_id) == "failed"


def test_code_that_no_longer_fits_the_journal_fails_the_task_and_says_so(deployment: TaskDeployment) -> None:
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
