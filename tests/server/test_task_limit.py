"""The limit of open tasks on the wire: HTTP 429 with a remedy, before the tool runs."""

from __future__ import annotations

import json
from asyncio import TaskGroup
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from mcp_roundtrip import AsyncContext, Context, Server, UsageError
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, META_CLIENT_CAPABILITIES, META_CLIENT_INFO
from mcp_roundtrip.tasks.limit import OPEN_TASKS
from mcp_roundtrip.tasks.model import TASK
from mcp_roundtrip.telemetry import WARNING_EVENTS
from mcp_roundtrip_testing.http_requests import read_messages
from support.client_requests import ASKABLE, FORMS, TASKS, next_round, responses, text
from support.deployment import Deployment
from support.faulty_store import FaultyStore
from support.messages import META
from support.task_tools import meanwhile, ran, run_step

LIMIT = 2
REFUSED = (
    f"The caller has {LIMIT} open tasks, and the server allows no more; calls that wait for an answer count, "
    "too. Wait until one of them has ended, or cancel a task with tasks/cancel, and call again."
)

server = Server("limited")


@pytest.fixture
def deployment():
    return Deployment(server, max_open=LIMIT)


@server.tool(task="required")
def requires_task(ctx: Context) -> str:
    run_step("body")
    ctx.run_as_task()
    return ctx.step("work", run_step, "work")


@server.tool(task="optional")
def may_start_task(ctx: Context, size: int = 0) -> str:
    before = ctx.step("before", run_step, "before") if size else ""
    ctx.run_as_task()
    run_step("after")
    return before


@server.tool(task="optional")
def reports(ctx: Context) -> None:
    ctx.progress(1)
    ctx.step("step", run_step, "step")
    ctx.progress(2)
    ctx.run_as_task()
    ctx.progress(3)


@server.tool(task="optional")
def fails_after_step(ctx: Context) -> None:
    ctx.step("step", run_step, "step")
    ctx.run_as_task()
    raise LookupError


@server.tool(task="optional")
def asks_after_step(ctx: Context) -> None:
    ctx.step("step", run_step, "step")
    ctx.run_as_task()
    ctx.elicit("size", "How large?", int)


@server.tool(task="optional")
def asks_twice(ctx: Context) -> int:
    size = ctx.elicit("size", "How large?", int)
    ctx.step("step", run_step, "step")
    ctx.run_as_task()
    return size + ctx.elicit("color", "Which number?", int)


@server.tool(task="optional")
def runs_three_steps(ctx: Context) -> str:
    ctx.step("first", run_step, "first")
    ctx.run_as_task()
    ctx.step("second", run_step, "second")
    ctx.step("third", run_step, "third")
    if not ran:
        ctx.elicit("size", "How large?", int)
    return "done"


@server.tool(task="optional")
def sleeps_after_step(ctx: Context) -> str:
    before = ctx.step("before", run_step, "before")
    ctx.run_as_task()
    ctx.sleep("pause", 1_000)
    return before


@server.tool(task="optional")
def continues_after_failure(ctx: Context) -> str:
    def fail():
        raise LookupError

    with suppress(LookupError):
        ctx.step("failing", fail)
    ctx.run_as_task()
    run_step("after")
    return "done"


@server.tool(task="optional")
def continues_after_bad_result(ctx: Context) -> str:
    with suppress(UsageError):
        ctx.step("bad", lambda: object())
    ctx.run_as_task()
    run_step("after")
    return "done"


@server.tool(task="optional")
async def asks_beside_task(ctx: AsyncContext) -> int:
    await ctx.step("first", run_step, "first")
    async with TaskGroup() as group:
        size = group.create_task(ctx.elicit("size", "How large?", int))
        group.create_task(ctx.run_as_task())
    return await size


@server.tool(task="optional")
def sleeps_after_uuid(ctx: Context) -> None:
    ctx.uuid("id")
    ctx.run_as_task()
    ctx.step("after", run_step, "after")
    ctx.sleep("pause", 1_000)


@server.tool(task="optional")
def asks_between_steps(ctx: Context) -> None:
    ctx.step("before", run_step, "before")
    ctx.elicit("size", "How large?", int)
    ctx.run_as_task()
    ctx.step("after", run_step, "after")
    ctx.sleep("pause", 1_000)


@server.tool(task="optional")
def runs_at_most_once_after_step(ctx: Context) -> str:
    before = ctx.step("before", run_step, "before")
    ctx.run_as_task()
    return before + ctx.step("pay", run_step, "pay", at_most_once=True)


@server.tool(task="optional")
async def sleeps_in_branches(ctx: AsyncContext) -> list[str]:
    async def pause(branch: AsyncContext) -> str:
        before = await branch.step("before", run_step, "before")
        await branch.sleep("pause", 1_000)
        return before

    await ctx.step("first", run_step, "first")
    await ctx.run_as_task()
    return list((await ctx.gather({"one": pause, "two": pause})).values())


@server.tool(task="required")
def asks(ctx: Context) -> str:
    ctx.elicit("size", "How large?", int)
    run_step("answered")
    ctx.run_as_task()
    return "done"


@server.tool(task="required")
def charges(ctx: Context) -> str:
    ctx.step("charge", run_step, "charge")
    ctx.run_as_task()
    return "done"


@server.tool(task="required")
def observed(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("observed", run_step, "observed")
    return ctx.step("after", run_step, "after")


def at_limit(deployment):
    """Open as many tasks as the limit allows, and return their ids."""
    tasks = [deployment.start("requires_task") for _ in range(LIMIT)]
    ran.clear()
    return tasks


def send(deployment, tool, **more):
    return deployment.send(deployment.body("tools/call", name=tool, arguments={}, **more))


def refusal(deployment, tool, **more):
    """Return the error of a call that the limit refuses."""
    response = send(deployment, tool, **more)
    assert (response.status, response.headers["retry-after"]) == (429, "30")
    error = json.loads(response.body)["error"]
    assert (error["code"], error["data"]) == (429, {"maxOpenTasks": LIMIT, "retryAfterMs": 30_000})
    return error


def test_a_limit_of_one_task_is_one_task():
    deployment = Deployment(server, max_open=1)
    deployment.start("requires_task")
    message = deployment.call_error("requires_task")["message"]
    assert message.startswith("The caller has 1 open task, and the server allows no more;")


def test_a_tool_that_requires_a_task_is_refused_before_it_runs(deployment):
    at_limit(deployment)
    assert refusal(deployment, "requires_task")["message"] == REFUSED
    assert ran == []
    assert len(deployment.sent) == LIMIT, "no worker is dispatched"


def test_of_concurrent_calls_only_those_with_a_place_run(deployment):
    number = 4 * LIMIT
    others_are_refused = Event()
    refused = []

    def make(_):
        status = send(deployment, "charges").status
        if status == 429:
            refused.append(status)
        if len(refused) == number - LIMIT:
            others_are_refused.set()
        return status

    meanwhile.extend([lambda: others_are_refused.wait(10)] * LIMIT)
    with ThreadPoolExecutor(number) as threads:
        statuses = list(threads.map(make, range(number)))
    assert sorted(statuses) == [200] * LIMIT + [429] * (number - LIMIT)
    assert ran == ["charge"] * LIMIT
    assert send(deployment, "charges").status == 429


def test_a_call_that_asks_gives_its_place_back(deployment):
    for _ in range(LIMIT + 1):
        assert deployment.call("asks")["resultType"] == "input_required"


def test_the_place_of_a_lost_process_lapses_with_the_time_of_its_call():
    store = FaultyStore(matches=lambda operation: operation.name == "update", times=0)
    deployment = Deployment(server, max_open=LIMIT, store=store)

    def die():
        store.times = float("inf")
        raise LookupError

    for _ in range(LIMIT):
        meanwhile.append(die)
        assert send(deployment, "charges").status == 200
        store.times = 0
    assert send(deployment, "requires_task").status == 429
    deployment.clock.now += 3_600
    assert send(deployment, "requires_task").status == 200


def test_a_cancelled_task_counts_until_the_running_step_ends(deployment):
    tasks = [deployment.start("observed") for _ in range(LIMIT)]
    statuses = []

    def cancel_and_create():
        for task in tasks:
            deployment.cancel(task)
        statuses.extend(send(deployment, "requires_task").status for _ in range(LIMIT))

    meanwhile.append(cancel_and_create)
    deployment.run_worker()
    assert statuses == [200, 429], "only the task whose worker had not started made room"
    assert "after" not in ran
    assert send(deployment, "requires_task").status == 200


def test_a_tool_that_may_start_a_task_is_refused_before_its_first_step(deployment):
    at_limit(deployment)
    assert refusal(deployment, "may_start_task")["message"] == REFUSED
    assert ran == []


def test_a_call_that_has_run_a_step_continues_without_a_task(deployment):
    at_limit(deployment)
    assert deployment.text("may_start_task", size=1) == "before"
    assert ran == ["before", "after"]
    assert ("task_postponed", {"tool": "may_start_task", "limit": LIMIT}) in deployment.observer.events
    assert "task_postponed" in WARNING_EVENTS


def test_the_traceback_of_a_call_without_a_task_does_not_show_the_limit(deployment):
    at_limit(deployment)
    deployment.call("fails_after_step")
    [(event, error)] = deployment.observer.failures
    assert (event, type(error), error.__context__) == ("tool_raised", LookupError, None)


def test_a_call_that_has_run_a_step_becomes_a_task_if_there_is_a_place(deployment):
    for _ in range(LIMIT):
        deployment.start("may_start_task", size=1)
    assert ran == ["before"] * LIMIT
    refusal(deployment, "requires_task")


def test_a_call_without_a_task_sends_each_notification_once(deployment):
    at_limit(deployment)
    meta = {**META, META_CLIENT_CAPABILITIES: ASKABLE, "progressToken": "p"}
    *notifications, response = read_messages(send(deployment, "reports", meta=meta))
    assert [each["params"]["progress"] for each in notifications] == [1, 2, 3]
    assert response["result"]["resultType"] == "complete"
    assert ran == ["step"]


def test_the_next_round_of_a_call_without_a_task_becomes_a_task(deployment):
    first, *_ = at_limit(deployment)
    asked = deployment.call("asks_after_step")
    assert asked["resultType"] == "input_required"
    deployment.cancel(first)
    assert deployment.retry("asks_after_step", asked, size=1)["resultType"] == "task"
    assert ran == ["step"]


def test_a_call_without_a_task_uses_the_answers_of_its_round(deployment):
    asked = deployment.call("asks_twice")
    at_limit(deployment)
    asked = deployment.retry("asks_twice", asked, size=1)
    assert list(asked["inputRequests"]) == ["color"]
    assert text(deployment.retry("asks_twice", asked, color=2)) == "3"
    assert ran == ["step"]


@pytest.mark.parametrize(("first_s", "second_s"), [(26, 0), (1, 25)])
def test_a_call_without_a_task_that_is_out_of_time_continues_in_the_next_round(deployment, first_s, second_s):
    at_limit(deployment)
    for seconds in (first_s, second_s):
        meanwhile.append(lambda seconds=seconds: deployment.clock.advance(seconds))
    asked = deployment.call("runs_three_steps")
    assert asked["resultType"] == "input_required"
    assert ran == ["first", "second"][: 1 if first_s > second_s else 2]
    assert text(deployment.retry("runs_three_steps", asked)) == "done"
    assert ran == ["first", "second", "third"]


NEEDS_TASK = {
    "sleeps_after_step": ["before"],
    "runs_at_most_once_after_step": ["before"],
    "sleeps_in_branches": ["first", "before", "before"],
}


@pytest.mark.parametrize("tool", NEEDS_TASK)
def test_a_call_that_cannot_end_without_a_task_keeps_its_steps_until_there_is_a_place(deployment, tool):
    first, *_ = at_limit(deployment)
    asked = deployment.call(tool)
    assert (asked["resultType"], "inputRequests" in asked) == ("input_required", False)
    assert ran == NEEDS_TASK[tool]
    for _ in range(2):
        message = refusal(deployment, tool, requestState=asked["requestState"])["message"]
        assert message == REFUSED.replace("call again", "send this request again")
    deployment.cancel(first)
    assert deployment.retry(tool, asked)["resultType"] == "task"
    assert ran == NEEDS_TASK[tool]


@pytest.mark.parametrize("tool", ["continues_after_failure", "continues_after_bad_result"])
def test_a_call_whose_step_has_failed_is_not_refused(deployment, tool):
    """The step has had its effect, and has no entry in the journal."""
    at_limit(deployment)
    assert deployment.text(tool) == "done"
    assert ran[-1] == "after"


@pytest.mark.parametrize("is_full", [False, True])
def test_an_answer_to_a_question_of_the_same_request_does_not_count_at_the_limit(deployment, is_full):
    if is_full:
        at_limit(deployment)
    client = deployment.by(capabilities=ASKABLE if is_full else FORMS)
    result = client.post_call("asks_beside_task", inputResponses=responses(size=1))["result"]
    assert (result["resultType"], list(result["inputRequests"])) == ("input_required", ["size"])


def test_a_round_that_needs_a_task_is_refused_without_running(deployment, monkeypatch):
    at_limit(deployment)
    asked = deployment.call("sleeps_after_step")
    passes = []
    monkeypatch.setattr("mcp_roundtrip.server.runner.run_pass", lambda *_: passes.append("pass"))
    refusal(deployment, "sleeps_after_step", requestState=asked["requestState"])
    assert passes == []


def test_a_client_that_answers_no_requests_is_refused_before_its_first_step(deployment):
    """Its question on the page would need a place, and it need not follow a state."""
    at_limit(deployment)
    refusal(deployment.by(capabilities=TASKS), "asks_after_step")
    assert ran == []


BREAKS_ON_STATES = {
    **META,
    META_CLIENT_INFO: {"name": "Anthropic/ClaudeAI", "version": "1.0.0"},
    META_CLIENT_CAPABILITIES: {**ASKABLE, "elicitation": {"form": {}, "url": {}}},
}


@pytest.mark.parametrize("tool", ["sleeps_after_step", "sleeps_after_uuid"])
def test_a_client_that_breaks_on_states_is_refused_before_its_first_step(deployment, tool):
    """It could not continue the call in rounds."""
    at_limit(deployment)
    refusal(deployment, tool, meta=BREAKS_ON_STATES)
    assert ran == []


def test_a_later_round_of_a_client_that_breaks_on_states_is_refused_before_a_new_step(deployment):
    asked = deployment.post_call("asks_between_steps", meta=BREAKS_ON_STATES)["result"]
    first, *_ = at_limit(deployment)
    answer = {"meta": BREAKS_ON_STATES, **next_round(asked, size=1)}
    refusal(deployment, "asks_between_steps", **answer)
    assert ran == []
    deployment.cancel(first)
    assert deployment.post_call("asks_between_steps", **answer)["result"]["resultType"] == "task"


def test_a_refused_later_round_can_be_retried(deployment):
    asked = deployment.call("asks")
    first, *_ = at_limit(deployment)
    refusal(deployment, "asks", **next_round(asked, size=1))
    assert ran == []
    deployment.cancel(first)
    assert deployment.retry("asks", asked, size=1)["resultType"] == "task"


def test_a_client_without_the_extension_is_not_limited(deployment):
    at_limit(deployment)
    assert deployment.by(capabilities=FORMS).call("may_start_task")["resultType"] == "complete"


def test_the_last_round_of_a_call_is_refused_before_it_runs():
    """Only a task could continue it."""
    deployment = Deployment(server, max_open=LIMIT, config={"max_rounds": 1})
    asked = deployment.call("asks_twice")
    first, *_ = at_limit(deployment)
    refusal(deployment, "asks_twice", **next_round(asked, size=1))
    assert ran == []
    deployment.cancel(first)
    assert deployment.retry("asks_twice", asked, size=1)["resultType"] == "task"


@pytest.fixture
def unlisted():
    """A deployment that cannot change the list of open tasks."""
    store = FaultyStore(matches=lambda operation: operation[::2] == ("update", OPEN_TASKS))
    return Deployment(server, max_open=LIMIT, store=store)


def test_a_call_that_has_run_a_step_continues_in_rounds_if_no_place_can_be_reserved(unlisted):
    assert unlisted.call("may_start_task", size=1)["resultType"] == "complete"
    assert ran == ["before", "after"]
    assert unlisted.failures == ["task_table_unavailable"]


def test_a_tool_does_not_run_if_no_place_can_be_reserved(unlisted):
    assert unlisted.call_error("requires_task")["code"] == -32603
    assert ran == []
    assert unlisted.failures == ["task_table_unavailable"]


@pytest.mark.parametrize("end", ["cancelled", "completed"])
def test_an_ended_task_makes_room(deployment, end):
    first, *_ = at_limit(deployment)
    if end == "cancelled":
        deployment.cancel(first)
    else:
        deployment.run_worker()
    deployment.start("requires_task")
    refusal(deployment, "requires_task")


def test_other_callers_are_not_affected(deployment):
    at_limit(deployment)
    assert send(deployment.by(user="bob"), "requires_task").status == 200


def test_a_refusal_is_a_warning_and_a_metric_for_the_operator(deployment):
    at_limit(deployment)
    refusal(deployment, "requires_task")
    assert ("task_limit_reached", {"tool": "requires_task", "limit": LIMIT}) in deployment.observer.events
    assert "task_limit_reached" in WARNING_EVENTS
    refused = next(fields for event, fields in deployment.observer.events if event == "request_refused")
    assert (refused["code"], refused["status"]) == (429, 429)


@pytest.mark.parametrize("is_forwarded", [False, True])
def test_the_response_is_429_directly_and_through_the_front_door(is_forwarded):
    deployment = Deployment(server, source="http_api", through_door=is_forwarded, max_open=LIMIT)
    at_limit(deployment)
    refusal(deployment, "requires_task")
    assert ran == []


def test_a_legacy_client_gets_the_error_with_status_200():
    """Legacy clients do not read the body of a 4xx response."""
    legacy_server = Server("limited", legacy_tasks="sep-2322")
    legacy_server.tool(task="required")(requires_task)
    deployment = Deployment(legacy_server, max_open=LIMIT)
    at_limit(deployment)
    response = send(deployment.by(version=LEGACY_VERSION), "requires_task", task={})
    error = json.loads(response.body)["error"]
    assert (response.status, error["code"], error["message"]) == (200, 429, REFUSED)
    assert ran == []


def test_the_list_of_open_tasks_cannot_be_read_as_a_task(deployment):
    at_limit(deployment)
    [pk] = [pk for pk, sk in deployment.store._items if sk == OPEN_TASKS]
    assert deployment.store.get(pk, TASK) is None
