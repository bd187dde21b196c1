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
from support.task_deployment import UNDECLARED, OfALambda, World, accepted

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
def world() -> World:
    return World(server)


def test_the_extension_is_advertised_where_a_tool_can_become_a_task(world: World) -> None:
    assert world.post("server/discover")["result"]["capabilities"]["extensions"] == {TASKS_EXTENSION: {}}
    plain = Server("plain")
    assert "extensions" not in World(plain).post("server/discover")["result"]["capabilities"]
    assert World(plain).get("x" * 32)["error"]["code"] == -32601


def test_a_call_becomes_a_task_and_its_result_is_the_calls(world: World) -> None:
    created = world.call("compute", arguments={"label": "x"})["result"]
    assert created.keys() == {
        *("resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "_meta")
    }
    assert (created["resultType"], created["status"], created["ttlMs"]) == ("task", "working", 60_000)
    assert world.status(created["taskId"]) == "working"
    world.run_workers()
    done = world.get(created["taskId"])["result"]
    assert (done["resultType"], done["status"]) == ("complete", "completed")
    assert done["result"]["content"] == [{"type": "text", "text": "x"}]
    assert done["result"]["resultType"] == "complete"
    assert ran == ["x"]


def test_a_client_that_did_not_declare_tasks_gets_the_result_at_once(world: World) -> None:
    result = world.call("compute", arguments={"label": "x"}, capabilities=UNDECLARED)["result"]
    assert result["resultType"] == "complete"


def test_a_tool_that_needs_a_task_refuses_a_client_without(world: World) -> None:
    error = world.call("fails", capabilities=UNDECLARED)["error"]
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS_EXTENSION: {}}}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_methods_need_the_declaration_before_anything_is_looked_up(world: World, method: str) -> None:
    error = world.post(method, taskId="gate", inputResponses={}, capabilities=UNDECLARED)["error"]
    assert error["code"] == -32021


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list", "tasks/input_response"])
def test_other_methods_of_older_dialects_do_not_exist(world: World, method: str) -> None:
    assert world.post(method, taskId="x")["error"]["code"] == -32601


def test_a_tool_error_completes_the_task_and_a_protocol_error_fails_it(world: World) -> None:
    failing, breaking = world.start("fails"), world.start("breaks")
    world.run_workers()
    failed = world.get(failing)["result"]
    assert (failed["status"], failed["result"]["isError"]) == ("completed", True)
    broken = world.get(breaking)["result"]
    assert (broken["status"], broken["error"]) == ("failed", {"code": -32603, "message": "broken"})
    assert "result" not in broken


def test_rounds_come_first_and_what_they_learnt_goes_into_the_task(world: World) -> None:
    asked = world.call("provision", arguments={"name": "db"})["result"]
    assert asked["resultType"] == "input_required"
    created = world.call(
        "provision",
        arguments={"name": "db"},
        requestState=asked["requestState"],
        inputResponses={"size": accepted(4)},
    )["result"]
    assert created["resultType"] == "task"
    assert not {"requestState", "inputRequests"} & created.keys()
    task_id = created["taskId"]
    world.run_workers()
    waiting = world.get(task_id)["result"]
    assert waiting["status"] == "input_required"
    assert waiting["inputRequests"].keys() == {"keep"}
    assert world.get(task_id)["result"] == waiting, "until it is answered"
    assert world.update(task_id, keep=accepted(True))["result"].keys() == {"resultType", "_meta"}
    world.run_workers()
    result = world.get(task_id)["result"]["result"]
    assert result["structuredContent"] == {"made": "create 4", "kept": True, "done": "activate"}
    assert ran == ["create 4", "activate"]


def parked(world: World) -> str:
    asked = world.call("provision", arguments={"name": "db"}, inputResponses={"size": accepted(4)})["result"]
    world.run_workers()
    return str(asked["taskId"])


def test_an_answer_that_does_not_fit_is_asked_again_under_a_new_key(world: World) -> None:
    task_id = parked(world)
    world.update(task_id, keep=accepted("maybe"))
    world.run_workers()
    assert world.get(task_id)["result"]["inputRequests"].keys() == {"keep~2"}
    world.update(task_id, **{"keep": accepted(True)})
    assert world.get(task_id)["result"]["inputRequests"].keys() == {"keep~2"}
    world.update(task_id, **{"keep~2": accepted(False)})
    world.run_workers()
    assert world.get(task_id)["result"]["result"]["structuredContent"]["kept"] is False
    assert ran == ["create 4", "activate"]


def test_answers_to_no_question_are_acknowledged_and_change_nothing(world: World) -> None:
    task_id = parked(world)
    before = world.get(task_id)["result"]
    assert "result" in world.update(task_id, unknown={"ignored": True})
    assert world.get(task_id)["result"] == before
    assert not world.table.dispatcher.sent


def test_some_of_several_answers_leave_the_rest_outstanding(world: World) -> None:
    task_id = world.start("two")
    world.run_workers()
    assert world.get(task_id)["result"]["inputRequests"].keys() == {"a/name", "b/name"}
    world.update(task_id, **{"a/name": accepted("Ada")})
    after = world.get(task_id)["result"]
    assert (after["status"], after["inputRequests"].keys()) == ("input_required", {"b/name"})
    world.update(task_id, **{"a/name": accepted("Eve")})
    world.update(task_id, **{"b/name": accepted("Bob")})
    world.run_workers()
    assert world.get(task_id)["result"]["result"]["structuredContent"] == {"a": "Ada", "b": "Bob"}


def test_a_cancelled_task_is_worked_on_no_more(world: World) -> None:
    task_id = world.start("compute", label="x")
    for _ in range(2):
        assert world.cancel(task_id)["result"].keys() == {"resultType", "_meta"}
    world.run_workers()
    assert world.status(task_id) == "cancelled"
    assert ran == []


def test_cancelling_what_has_ended_is_acknowledged_and_changes_nothing(world: World) -> None:
    task_id = world.start("compute", label="x")
    world.run_workers()
    before = world.get(task_id)["result"]
    assert "result" in world.cancel(task_id)
    assert world.get(task_id)["result"] == before


def test_a_task_of_another_principal_looks_like_no_task(world: World) -> None:
    task_id = world.start("compute", label="x")
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        foreign = world.post(method, taskId=task_id, inputResponses={}, user="bob")["error"]
        unknown = world.post(method, taskId="A" * 32, inputResponses={})["error"]
        malformed = world.post(method, taskId="../x", inputResponses={})["error"]
        assert foreign == unknown == malformed
        assert foreign["code"] == -32602
    assert world.status(task_id) == "working"


def test_a_task_whose_dispatch_was_lost_is_worked_on_after_a_poll(world: World) -> None:
    task_id = world.start("compute", label="x")
    world.table.dispatcher.sent.clear()
    world.get(task_id)
    assert not world.table.dispatcher.sent, "not at once"
    world.clock.advance(16)
    world.get(task_id)
    world.get(task_id)
    assert len(world.table.dispatcher.sent) == 1
    world.run_workers()
    assert world.status(task_id) == "completed"


def test_a_sleeping_task_wakes_at_a_poll_and_repeats_nothing(world: World) -> None:
    task_id = world.start("naps")
    world.run_workers()
    assert (world.status(task_id), ran) == ("working", ["before"])
    world.clock.advance(20)
    world.get(task_id)
    assert not world.table.dispatcher.sent
    world.clock.advance(10)
    world.get(task_id)
    world.run_workers()
    assert (world.status(task_id), ran) == ("completed", ["before", "after"])


def test_a_task_that_is_not_finished_in_its_time_fails_and_is_forgotten_later(world: World) -> None:
    task_id = parked(world)
    world.clock.advance(3600)
    failed = world.get(task_id)["result"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert failed["statusMessage"]
    assert "result" in world.update(task_id, keep=accepted(True))
    world.clock.advance(3600)
    assert world.get(task_id)["error"]["code"] == -32602


def test_a_task_is_finished_by_one_of_two_deliveries(world: World) -> None:
    task_id = world.start("compute", label="x")
    world.table.dispatcher.sent *= 3
    world.run_workers()
    assert (world.status(task_id), ran) == ("completed", ["x"])


def test_a_large_result_is_read_back_whole(world: World) -> None:
    text = "".join(chr(33 + (number * 7919) % 90) for number in range(1_500_000))
    other = Server("other")

    @other.tool(task="required")
    def large(ctx: Context) -> str:
        ctx.run_as_task()
        return text

    world = World(other)
    task_id = world.start("large")
    world.run_workers()
    assert world.get(task_id)["result"]["result"]["content"][0]["text"] == text


def test_progress_is_the_tasks_status_message(world: World) -> None:
    other = Server("other")

    @other.tool(task="required")
    def slow(ctx: Context) -> str:
        ctx.run_as_task()
        ctx.progress(1, 3, "one of three")
        return str(ctx.elicit("go", "On?", bool))

    world = World(other)
    task_id = world.start("slow")
    world.run_workers()
    assert world.get(task_id)["result"]["statusMessage"] == "one of three"


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


def played(world: World, dies_at: int, *, is_done: bool) -> bool:
    """Play `pays` to its end, killing the worker once; whether there was a call to kill it at."""
    task_id = world.start("pays")
    died = False
    for _ in range(8):
        while world.table.dispatcher.sent:
            _, pk = world.table.dispatcher.sent.popleft()
            dying = CrashingStore(world.table.store, 10**9 if died else dies_at, is_done)
            with suppress(WorkerKilled):
                work(server._tool_methods, {"task": pk}, OfALambda(), partial(world.ports, dying))
            died = died or dying.calls > dies_at
            dies_at = dies_at if died else dies_at - dying.calls
        task = world.get(task_id)["result"]
        if task["status"] == "completed":
            assert task["result"]["isError"] is False
            return died
        if "inputRequests" in task:
            world.update(task_id, **{key: accepted(True) for key in task["inputRequests"]})
        world.clock.advance(1000)  # a lease is over, a poll may send for a worker
    raise AssertionError(f"the task was lost: {world.get(task_id)}")


@pytest.mark.parametrize("is_done", [False, True], ids=["before it is done", "after it is done"])
def test_a_worker_may_be_killed_at_any_call_of_the_store(is_done: bool) -> None:
    for dies_at in count():
        ran.clear()
        if not played(World(server), dies_at, is_done=is_done):
            break
        times = Counter(ran)
        assert times["charge"] <= 1, dies_at
        assert times["charge"] + times["look"] >= 1
        assert times["ship"] >= 1
        assert sum(times.values()) <= 5, "what was journaled did not run again"
    assert dies_at > 10


def test_outside_a_task_nothing_can_be_promised_to_run_once(world: World) -> None:
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

    world = World(other)
    for name in ("pay", "naps", "escalates"):
        assert world.call(name)["result"]["isError"]
        assert world.observer.failures[-1][0] == "tool_raised"
    assert ran == []


def test_a_step_that_returns_more_than_an_item_holds_fails_the_task_and_says_what_to_do() -> None:
    other = Server("other")

    @other.tool(task="required")
    def hoards(ctx: Context) -> str:
        ctx.run_as_task()
        return ctx.step("much", lambda: "x" * 500_000)

    world = World(other)
    task_id = world.start("hoards")
    world.run_workers()
    failed = world.get(task_id)["result"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert [event for event, _ in world.observer.failures] == ["task_too_large"]


def test_an_answer_that_no_item_holds_is_refused_and_the_question_stands(world: World) -> None:
    task_id = parked(world)
    assert world.update(task_id, keep=accepted("x" * 500_000))["error"]["code"] == -32602
    assert world.status(task_id) == "input_required"


def test_a_store_that_fails_is_an_internal_error_and_loses_nothing(world: World) -> None:
    task_id = world.start("compute", label="x")

    class Throttled:
        def update(self, *_: object) -> None:
            raise StoreError("ThrottlingException")

        put_new = get = query = update

    throttled: Any = Throttled()
    with pytest.raises(StoreError):
        work(
            server._tool_methods,
            {"task": world.table.dispatcher.sent[0][1]},
            OfALambda(),
            partial(world.ports, throttled),
        )
    assert world.get(task_id, store=throttled)["error"]["code"] == -32603
    assert world.observer.failures[-1][0] == "task_table_unavailable"
    world.run_workers()
    assert world.status(task_id) == "completed"


def test_a_worker_that_runs_out_of_time_gives_the_task_back_and_sends_for_the_next() -> None:
    other, clock = Server("other"), FakeClock()
    world = World(other, clock)

    def slow(name: str) -> str:
        clock.advance(880)
        return did(name)

    @other.tool(task="required")
    def long(ctx: Context) -> str:
        ctx.run_as_task(ttl_ms=10_000_000)
        return " ".join(ctx.step(name, slow, name) for name in ("one", "two", "three"))

    task_id = world.start("long")
    world.run_workers()
    done = world.get(task_id)["result"]
    assert done["result"]["content"][0]["text"] == "one two three"
    assert ran == ["one", "two", "three"]
    worked = [event for event, _ in world.observer.events if event == "worker_finished"]
    assert len(worked) == 3


def test_a_tool_that_a_later_deployment_does_not_have_fails_its_tasks(world: World) -> None:
    task_id = world.start("compute", label="x")
    world.next_deployment(Server("jobs")).run_workers()
    assert world.status(task_id) == "failed"


def test_code_that_no_longer_fits_the_journal_fails_the_task_and_says_so(world: World) -> None:
    task_id = parked(world)
    changed = Server("jobs")

    @changed.tool(task="optional")
    def provision(ctx: Context, name: str) -> str:
        ctx.elicit("size", f"How small is {name}?", int)
        return "done"

    world.update(task_id, keep=accepted(True))
    world.next_deployment(changed).run_workers()
    failed = world.get(task_id)["result"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert [event for event, _ in world.observer.failures] == ["drift"]
