"""The limit of open tasks on the wire: HTTP 429 with a remedy, before the tool runs."""

from __future__ import annotations

import json
from asyncio import TaskGroup
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip import AsyncContext, Context, FrontDoor, Server, UsageError
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.protocol.constants import META_CLIENT_INFO
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.tasks.changes import Change
from mcp_roundtrip.tasks.limit import OPEN_TASKS
from mcp_roundtrip.tasks.model import TASK
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip.telemetry import WARNING_EVENTS
from mcp_roundtrip_local.catalog import catalog_lists
from support.messages import http_event
from support.task_deployment import DECLARED, UNDECLARED, LambdaContext, TaskDeployment, accepted

LIMIT = 2
REFUSED = (
    f"The caller has {LIMIT} open tasks, and the server allows no more; calls that wait for an answer count, "
    "too. Wait until one of them has ended, or cancel a task with tasks/cancel, and call again."
)

server = Server("limited")
ran: list[str] = []


@pytest.fixture(autouse=True)
def reset_ran() -> None:
    ran.clear()


@pytest.fixture
def deployment() -> TaskDeployment:
    deployment = TaskDeployment(server)
    deployment.table.max_open = LIMIT
    return deployment


def record_run(what: str) -> str:
    ran.append(what)
    return what


@server.tool(task="required")
def requires_task(ctx: Context) -> str:
    record_run("body")
    ctx.run_as_task()
    return ctx.step("work", record_run, "work")


@server.tool(task="optional")
def may_start_task(ctx: Context, size: int = 0) -> str:
    before = ctx.step("before", record_run, "before") if size else ""
    ctx.run_as_task()
    record_run("after")
    return before


@server.tool(task="optional")
def reports(ctx: Context) -> None:
    ctx.progress(1)
    ctx.step("step", record_run, "step")
    ctx.progress(2)
    ctx.run_as_task()
    ctx.progress(3)


@server.tool(task="optional")
def fails_after_step(ctx: Context) -> None:
    ctx.step("step", record_run, "step")
    ctx.run_as_task()
    raise LookupError


@server.tool(task="optional")
def asks_after_step(ctx: Context) -> None:
    ctx.step("step", record_run, "step")
    ctx.run_as_task()
    ctx.elicit("size", "How large?", int)


@server.tool(task="optional")
def asks_twice(ctx: Context) -> int:
    size = ctx.elicit("size", "How large?", int)
    ctx.step("step", record_run, "step")
    ctx.run_as_task()
    return size + ctx.elicit("color", "Which number?", int)


@server.tool(task="optional")
def runs_three_steps(ctx: Context) -> str:
    ctx.step("first", during_step[0])
    ctx.run_as_task()
    ctx.step("second", during_step[1])
    ctx.step("third", record_run, "third")
    if not ran:
        ctx.elicit("size", "How large?", int)
    return "done"


@server.tool(task="optional")
def sleeps_after_step(ctx: Context) -> str:
    before = ctx.step("before", record_run, "before")
    ctx.run_as_task()
    ctx.sleep("pause", 1_000)
    return before


@server.tool(task="optional")
def continues_after_failure(ctx: Context) -> str:
    def fail() -> None:
        raise LookupError

    with suppress(LookupError):
        ctx.step("failing", fail)
    ctx.run_as_task()
    record_run("after")
    return "done"


@server.tool(task="optional")
def continues_after_bad_result(ctx: Context) -> str:
    with suppress(UsageError):
        ctx.step("bad", lambda: object())
    ctx.run_as_task()
    record_run("after")
    return "done"


@server.tool(task="optional")
async def asks_beside_task(ctx: AsyncContext) -> int:
    await ctx.step("first", record_run, "first")
    async with TaskGroup() as group:
        size = group.create_task(ctx.elicit("size", "How large?", int))
        group.create_task(ctx.run_as_task())
    return await size


@server.tool(task="optional")
def sleeps_after_uuid(ctx: Context) -> None:
    ctx.uuid("id")
    ctx.run_as_task()
    ctx.step("after", record_run, "after")
    ctx.sleep("pause", 1_000)


@server.tool(task="optional")
def asks_between_steps(ctx: Context) -> None:
    ctx.step("before", record_run, "before")
    ctx.elicit("size", "How large?", int)
    ctx.run_as_task()
    ctx.step("after", record_run, "after")
    ctx.sleep("pause", 1_000)


@server.tool(task="optional")
def runs_at_most_once_after_step(ctx: Context) -> str:
    before = ctx.step("before", record_run, "before")
    ctx.run_as_task()
    return before + ctx.step("pay", record_run, "pay", at_most_once=True)


@server.tool(task="optional")
async def sleeps_in_branches(ctx: AsyncContext) -> list[str]:
    async def pause(branch: AsyncContext) -> str:
        before = await branch.step("before", record_run, "before")
        await branch.sleep("pause", 1_000)
        return before

    await ctx.step("first", record_run, "first")
    await ctx.run_as_task()
    return list((await ctx.gather({"one": pause, "two": pause})).values())


@server.tool(task="required")
def asks(ctx: Context) -> str:
    ctx.elicit("size", "How large?", int)
    record_run("answered")
    ctx.run_as_task()
    return "done"


@server.tool(task="required")
def charges(ctx: Context) -> str:
    ctx.step("charge", during_step[0])
    ctx.run_as_task()
    return "done"


during_step: list[Any] = []


@server.tool(task="required")
def observed(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("observed", during_step[0])
    return ctx.step("after", record_run, "after")


def deployment_at_limit(deployment: TaskDeployment) -> list[str]:
    tasks = [deployment.start("requires_task") for _ in range(LIMIT)]
    ran.clear()
    return tasks


def refusal(response: HttpResponse) -> dict[str, Any]:
    assert response.status == 429
    assert response.headers["retry-after"] == "30"
    error: dict[str, Any] = json.loads(response.body)["error"]
    assert error["code"] == 429
    assert error["data"] == {"maxOpenTasks": LIMIT, "retryAfterMs": 30_000}
    return error


def call(deployment: TaskDeployment, name: str, **more: Any) -> HttpResponse:
    return deployment.send(
        deployment.body("tools/call", name=name, arguments=more.pop("arguments", {}), **more)
    )


def test_a_limit_of_one_task_is_one_task(deployment: TaskDeployment) -> None:
    deployment.table.max_open = 1
    deployment.start("requires_task")
    message = deployment.call("requires_task")["error"]["message"]
    assert message.startswith("The caller has 1 open task, and the server allows no more;")


def test_a_tool_that_requires_a_task_is_refused_before_it_runs(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    assert refusal(call(deployment, "requires_task"))["message"] == REFUSED
    assert ran == []
    assert len(deployment.table.dispatcher.sent) == LIMIT, "no worker is dispatched"


def test_of_concurrent_calls_only_those_with_a_place_run(deployment: TaskDeployment) -> None:
    number = 4 * LIMIT
    others_are_refused = Event()
    refused: list[int] = []

    def charge() -> str:
        others_are_refused.wait(10)
        return record_run("charge")

    def make(_: int) -> int:
        status = call(deployment, "charges").status
        if status == 429:
            refused.append(status)
        if len(refused) == number - LIMIT:
            others_are_refused.set()
        return status

    during_step[:] = [charge]
    with ThreadPoolExecutor(number) as threads:
        statuses = list(threads.map(make, range(number)))
    assert sorted(statuses) == [200] * LIMIT + [429] * (number - LIMIT)
    assert ran == ["charge"] * LIMIT
    assert call(deployment, "charges").status == 429


def test_a_call_that_asks_gives_its_place_back(deployment: TaskDeployment) -> None:
    for _ in range(LIMIT + 1):
        assert deployment.call("asks")["result"]["resultType"] == "input_required"


def test_the_place_of_a_lost_process_lapses_with_the_time_of_its_call(deployment: TaskDeployment) -> None:
    def die() -> None:
        deployment.table.store.update = lost  # type: ignore[method-assign]
        raise LookupError

    def lost(pk: str, sk: str, change: Change) -> Any:
        raise StoreError("the process is lost")

    during_step[:] = [die]
    for _ in range(LIMIT):
        assert call(deployment, "charges").status == 200
        del deployment.table.store.update
    assert call(deployment, "requires_task").status == 429
    deployment.clock.now += 3_600
    assert call(deployment, "requires_task").status == 200


def test_a_cancelled_task_counts_until_the_running_step_ends(deployment: TaskDeployment) -> None:
    tasks = [deployment.start("observed") for _ in range(LIMIT)]
    statuses: list[int] = []

    def cancel_and_create() -> None:
        for task in tasks:
            deployment.cancel(task)
        statuses.extend(call(deployment, "requires_task").status for _ in range(LIMIT))

    def in_another_thread() -> None:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(cancel_and_create).result()

    during_step[:] = [in_another_thread]
    deployment.run_worker()
    assert statuses == [200, 429], "only the task whose worker had not started made room"
    assert "after" not in ran
    assert call(deployment, "requires_task").status == 200


def test_a_tool_that_may_start_a_task_is_refused_before_its_first_step(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    assert refusal(call(deployment, "may_start_task"))["message"] == REFUSED
    assert ran == []


def test_a_call_that_has_run_a_step_continues_without_a_task(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    reply = deployment.call("may_start_task", arguments={"size": 1})
    assert reply["result"]["content"] == [{"type": "text", "text": "before"}]
    assert ran == ["before", "after"]
    assert ("task_postponed", {"tool": "may_start_task", "limit": LIMIT}) in deployment.observer.events
    assert "task_postponed" in WARNING_EVENTS


def test_the_traceback_of_a_call_without_a_task_does_not_show_the_limit(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    deployment.call("fails_after_step")
    [(event, error)] = deployment.observer.failures
    assert (event, type(error), error.__context__) == ("tool_raised", LookupError, None)


def test_a_call_that_has_run_a_step_becomes_a_task_if_there_is_a_place(deployment: TaskDeployment) -> None:
    for _ in range(LIMIT):
        reply = deployment.call("may_start_task", arguments={"size": 1})
        assert reply["result"]["resultType"] == "task"
    assert ran == ["before"] * LIMIT
    refusal(call(deployment, "requires_task"))


def test_a_call_without_a_task_sends_each_notification_once(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    body = deployment.body("tools/call", name="reports", arguments={})
    body["params"]["_meta"]["progressToken"] = "p"
    response = deployment.send(body)
    lines = response.body.splitlines()
    messages = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [each["params"]["progress"] for each in messages[:-1]] == [1, 2, 3]
    assert messages[-1]["result"]["resultType"] == "complete"
    assert ran == ["step"]


def test_the_next_round_of_a_call_without_a_task_becomes_a_task(deployment: TaskDeployment) -> None:
    first, *_ = deployment_at_limit(deployment)
    asked = deployment.call("asks_after_step")["result"]
    assert asked["resultType"] == "input_required"
    deployment.cancel(first)
    answer = {"inputResponses": {"size": accepted(1)}, "requestState": asked["requestState"]}
    assert deployment.call("asks_after_step", **answer)["result"]["resultType"] == "task"
    assert ran == ["step"]


def test_a_call_without_a_task_uses_the_answers_of_its_round(deployment: TaskDeployment) -> None:
    asked = deployment.call("asks_twice")["result"]
    deployment_at_limit(deployment)
    answers = {"inputResponses": {"size": accepted(1)}, "requestState": asked["requestState"]}
    asked = deployment.call("asks_twice", **answers)["result"]
    assert list(asked["inputRequests"]) == ["color"]
    answers = {"inputResponses": {"color": accepted(2)}, "requestState": asked["requestState"]}
    assert deployment.call("asks_twice", **answers)["result"]["content"][0]["text"] == "3"
    assert ran == ["step"]


@pytest.mark.parametrize(("first_s", "second_s"), [(26, 0), (1, 25)])
def test_a_call_without_a_task_that_is_out_of_time_continues_in_the_next_round(
    deployment: TaskDeployment, first_s: int, second_s: int
) -> None:
    def wait(name: str, seconds: int) -> None:
        ran.append(name)
        deployment.clock.now += seconds

    deployment_at_limit(deployment)
    during_step[:] = [lambda: wait("first", first_s), lambda: wait("second", second_s)]
    result = deployment.call("runs_three_steps")["result"]
    assert result["resultType"] == "input_required"
    assert ran == ["first", "second"][: 1 if first_s > second_s else 2]
    state = {"requestState": result["requestState"]}
    result = deployment.call("runs_three_steps", **state)["result"]
    assert result["content"][0]["text"] == "done"
    assert ran == ["first", "second", "third"]


NEEDS_TASK = {
    "sleeps_after_step": ["before"],
    "runs_at_most_once_after_step": ["before"],
    "sleeps_in_branches": ["first", "before", "before"],
}


@pytest.mark.parametrize("tool", NEEDS_TASK)
def test_a_call_that_cannot_end_without_a_task_keeps_its_steps_until_there_is_a_place(
    deployment: TaskDeployment, tool: str
) -> None:
    first, *_ = deployment_at_limit(deployment)
    result = deployment.call(tool)["result"]
    assert (result["resultType"], "inputRequests" in result) == ("input_required", False)
    assert ran == NEEDS_TASK[tool]
    state = {"requestState": result["requestState"]}
    for _ in range(2):
        message = refusal(call(deployment, tool, **state))["message"]
        assert message == REFUSED.replace("call again", "send this request again")
    deployment.cancel(first)
    result = deployment.call(tool, **state)["result"]
    assert result["resultType"] == "task"
    assert ran == NEEDS_TASK[tool]


@pytest.mark.parametrize("tool", ["continues_after_failure", "continues_after_bad_result"])
def test_a_call_whose_step_has_failed_is_not_refused(deployment: TaskDeployment, tool: str) -> None:
    """The step has had its effect, and has no entry in the journal."""
    deployment_at_limit(deployment)
    result = deployment.call(tool)["result"]
    assert result["content"][0]["text"] == "done"
    assert ran[-1] == "after"


@pytest.mark.parametrize("is_full", [False, True])
def test_an_answer_to_a_question_of_the_same_request_does_not_count_at_the_limit(
    deployment: TaskDeployment, is_full: bool
) -> None:
    if is_full:
        deployment_at_limit(deployment)
    capabilities = DECLARED if is_full else UNDECLARED
    answer = {"inputResponses": {"size": accepted(1)}}
    result = deployment.call("asks_beside_task", capabilities=capabilities, **answer)["result"]
    assert (result["resultType"], list(result["inputRequests"])) == ("input_required", ["size"])


def test_a_round_that_needs_a_task_is_refused_without_running(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    result = deployment.call("sleeps_after_step")["result"]
    hooked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcp_roundtrip.server.runner.run_pass", lambda *_: hooked.append("pass"))
        refusal(call(deployment, "sleeps_after_step", requestState=result["requestState"]))
    assert hooked == []


def test_a_client_that_answers_no_requests_is_refused_before_its_first_step(
    deployment: TaskDeployment,
) -> None:
    """Its question on the page would need a place, and it need not follow a state."""
    deployment_at_limit(deployment)
    refusal(call(deployment, "asks_after_step", capabilities={"extensions": DECLARED["extensions"]}))
    assert ran == []


BREAKS_ON_STATES = {"name": "Anthropic/ClaudeAI", "version": "1.0.0"}
EVERYTHING = {**DECLARED, "elicitation": {"form": {}, "url": {}}}


def call_of_breaking_client(deployment: TaskDeployment, name: str, **params: Any) -> HttpResponse:
    body = deployment.body("tools/call", name=name, arguments={}, capabilities=EVERYTHING, **params)
    body["params"]["_meta"][META_CLIENT_INFO] = BREAKS_ON_STATES
    return deployment.send(body)


@pytest.mark.parametrize("tool", ["sleeps_after_step", "sleeps_after_uuid"])
def test_a_client_that_breaks_on_states_is_refused_before_its_first_step(
    deployment: TaskDeployment, tool: str
) -> None:
    """It could not continue the call in rounds."""
    deployment_at_limit(deployment)
    refusal(call_of_breaking_client(deployment, tool))
    assert ran == []


def test_a_later_round_of_a_client_that_breaks_on_states_is_refused_before_a_new_step(
    deployment: TaskDeployment,
) -> None:
    asked = json.loads(call_of_breaking_client(deployment, "asks_between_steps").body)["result"]
    first, *_ = deployment_at_limit(deployment)
    answer = {"inputResponses": {"size": accepted(1)}, "requestState": asked["requestState"]}
    refusal(call_of_breaking_client(deployment, "asks_between_steps", **answer))
    assert ran == []
    deployment.cancel(first)
    result = json.loads(call_of_breaking_client(deployment, "asks_between_steps", **answer).body)["result"]
    assert result["resultType"] == "task"


def test_a_refused_later_round_can_be_retried(
    deployment: TaskDeployment,
) -> None:
    asked = deployment.call("asks")["result"]
    first, *_ = deployment_at_limit(deployment)
    answer = {"inputResponses": {"size": accepted(1)}, "requestState": asked["requestState"]}
    refusal(call(deployment, "asks", **answer))
    assert ran == []
    deployment.cancel(first)
    assert deployment.call("asks", **answer)["result"]["resultType"] == "task"


def test_a_client_without_the_extension_is_not_limited(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    assert deployment.call("may_start_task", capabilities=UNDECLARED)["result"]["resultType"] == "complete"


def test_the_last_round_of_a_call_is_refused_before_it_runs() -> None:
    """Only a task could continue it."""
    deployment = TaskDeployment(server, max_rounds=1)
    deployment.table.max_open = LIMIT
    asked = deployment.call("asks_twice")["result"]
    first, *_ = deployment_at_limit(deployment)
    answers = {"inputResponses": {"size": accepted(1)}, "requestState": asked["requestState"]}
    refusal(call(deployment, "asks_twice", **answers))
    assert ran == []
    deployment.cancel(first)
    assert deployment.call("asks_twice", **answers)["result"]["resultType"] == "task"


def test_a_call_that_has_run_a_step_continues_in_rounds_if_no_place_can_be_reserved() -> None:
    deployment = TaskDeployment(server, store=FailingStore())
    deployment.table.max_open = LIMIT
    assert deployment.call("may_start_task", arguments={"size": 1})["result"]["resultType"] == "complete"
    assert ran == ["before", "after"]
    [(event, _)] = deployment.observer.failures
    assert event == "task_table_unavailable"


@pytest.mark.parametrize("end", ["cancelled", "completed"])
def test_an_ended_task_makes_room(deployment: TaskDeployment, end: str) -> None:
    first, *_ = deployment_at_limit(deployment)
    if end == "cancelled":
        deployment.cancel(first)
    else:
        deployment.run_worker()
    deployment.start("requires_task")
    refusal(call(deployment, "requires_task"))


def test_other_callers_are_not_affected(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    body = deployment.body("tools/call", name="requires_task", arguments={})
    assert deployment.send(body, user="bob").status == 200


def test_a_refusal_is_a_warning_and_a_metric_for_the_operator(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    call(deployment, "requires_task")
    assert ("task_limit_reached", {"tool": "requires_task", "limit": LIMIT}) in deployment.observer.events
    assert "task_limit_reached" in WARNING_EVENTS
    refused = next(fields for event, fields in deployment.observer.events if event == "request_refused")
    assert (refused["code"], refused["status"]) == (429, 429)


class ClientContext:
    def __init__(self, custom: Any) -> None:
        self.custom = custom


class ForwardedContext(LambdaContext):
    """The Lambda context of a function behind a front door."""

    def __init__(self, custom: Any) -> None:
        self.client_context = ClientContext(custom)


@pytest.mark.parametrize("is_forwarded", [False, True])
def test_the_response_is_429_directly_and_through_the_front_door(tmp_path: Path, is_forwarded: bool) -> None:
    owner = Server("owner", ports=lambda: deployment.ports())
    owner.tool(task="required")(requires_task)
    deployment = TaskDeployment(owner)
    deployment.table.max_open = LIMIT
    deployment_at_limit(deployment)

    def forward(name: str, event: Any, custom: Any, timeout_s: int) -> Any:
        return owner.lambda_handler(event, ForwardedContext(custom))

    catalog = tmp_path / "catalog.json"
    catalog.write_text(json.dumps(catalog_lists({"owner": owner})))
    door = FrontDoor("door", catalog, ports=lambda: replace(deployment.ports(), forward=forward))
    handler = door.lambda_handler if is_forwarded else owner.lambda_handler
    authorizer = {"jwt": {"claims": {"iss": "https://id", "sub": "alice"}}}
    body = deployment.body("tools/call", name="requires_task", arguments={})
    response = handler(http_event(body, authorizer=authorizer), LambdaContext())
    refusal(HttpResponse(response["statusCode"], response["body"], response["headers"]))
    assert ran == []


def test_a_legacy_client_gets_the_error_with_status_200(deployment: TaskDeployment) -> None:
    """Legacy clients do not read the body of a 4xx response."""
    legacy = TaskDeployment(Server("limited", legacy_tasks="sep-2322"))
    legacy.server.tool(task="required")(requires_task)
    legacy.table.max_open = LIMIT
    deployment_at_limit(legacy)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    params = {"name": "requires_task", "arguments": {}, "task": {}}
    sent = json.dumps({**body, "params": params})
    request = HttpRequest(
        "POST",
        {"accept": "application/json", "mcp-protocol-version": "2025-11-25"},
        sent,
        {"jwt": {"claims": {"iss": "https://id", "sub": "alice"}}},
    )
    response = legacy.server.endpoint.respond(request, legacy.ports(), Invocation("id", 1e18))
    error = json.loads(response.body)["error"]
    assert (response.status, error["code"], error["message"]) == (200, 429, REFUSED)
    assert ran == []


class FailingStore(MemoryStore):
    """A store that cannot change the list of open tasks."""

    def update(self, pk: str, sk: str, change: Change) -> Any:
        if sk == OPEN_TASKS:
            raise StoreError("ThrottlingException")
        return super().update(pk, sk, change)


def test_a_tool_does_not_run_if_no_place_can_be_reserved() -> None:
    deployment = TaskDeployment(server, store=FailingStore())
    deployment.table.max_open = LIMIT
    error = deployment.call("requires_task")["error"]
    assert (error["code"], error["message"]) == (-32603, "Internal error. Quote id to the server's operator.")
    assert ran == []
    [(event, _)] = deployment.observer.failures
    assert event == "task_table_unavailable"


def test_the_list_of_open_tasks_cannot_be_read_as_a_task(deployment: TaskDeployment) -> None:
    deployment_at_limit(deployment)
    store = deployment.table.store
    assert isinstance(store, MemoryStore)
    [pk] = [pk for pk, sk in store._items if sk == OPEN_TASKS]
    assert store.get(pk, TASK) is None
