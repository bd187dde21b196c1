"""The limit of open tasks on the wire: a refusal before anything runs, with HTTP 429 and a remedy."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip import Context, FrontDoor, Server
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.tasks.limit import OPEN_TASKS
from mcp_roundtrip.tasks.model import TASK
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip.telemetry import WARNING_EVENTS
from mcp_roundtrip_local.catalog import catalog_lists
from support.messages import http_event
from support.task_deployment import UNDECLARED, LambdaContext, TaskDeployment, accepted

LIMIT = 2
REFUSED = (
    f"The caller has {LIMIT} open tasks, and the server allows no more. Wait until one of them has ended, or "
    "cancel one with tasks/cancel, and call again."
)

server = Server("limited")
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@pytest.fixture
def deployment() -> TaskDeployment:
    deployment = TaskDeployment(server)
    deployment.table.max_open = LIMIT
    return deployment


def did(what: str) -> str:
    ran.append(what)
    return what


@server.tool(task="required")
def must(ctx: Context) -> str:
    did("body")
    ctx.run_as_task()
    return ctx.step("work", did, "work")


@server.tool(task="optional")
def may(ctx: Context, size: int = 0) -> str:
    before = ctx.step("before", did, "before") if size else ""
    ctx.run_as_task()
    did("after")
    return before


@server.tool(task="required")
def asks(ctx: Context) -> str:
    ctx.elicit("size", "How large?", int)
    did("answered")
    ctx.run_as_task()
    return "done"


during_step: list[Any] = []


@server.tool(task="required")
def observed(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("observed", during_step[0])
    return ctx.step("after", did, "after")


def full(deployment: TaskDeployment) -> list[str]:
    tasks = [deployment.start("must") for _ in range(LIMIT)]
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


def test_a_tool_that_needs_a_task_is_refused_before_its_code_runs(deployment: TaskDeployment) -> None:
    full(deployment)
    assert refusal(call(deployment, "must"))["message"] == REFUSED
    assert ran == []
    assert len(deployment.table.dispatcher.sent) == LIMIT, "no worker is dispatched"


def test_a_cancelled_task_counts_until_the_step_of_its_worker_has_ended(deployment: TaskDeployment) -> None:
    tasks = [deployment.start("observed") for _ in range(LIMIT)]
    statuses: list[int] = []

    def cancel_and_create() -> None:
        for task in tasks:
            deployment.cancel(task)
        statuses.extend(call(deployment, "must").status for _ in range(LIMIT))

    def in_another_thread() -> None:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(cancel_and_create).result()

    during_step[:] = [in_another_thread]
    deployment.run_worker()
    assert statuses == [200, 429], "only the task whose worker had not started made room"
    assert "after" not in ran
    assert call(deployment, "must").status == 200


def test_a_tool_that_may_need_a_task_is_refused_where_it_would_become_one(deployment: TaskDeployment) -> None:
    full(deployment)
    assert refusal(call(deployment, "may"))["message"] == REFUSED
    assert ran == []
    work_is_lost = refusal(call(deployment, "may", arguments={"size": 1}))["message"]
    assert work_is_lost == f"{REFUSED} The call had done part of its work, and a new call does it again."
    assert ran == ["before"]


def test_a_later_round_of_a_tool_that_needs_a_task_is_refused_and_can_be_sent_again(
    deployment: TaskDeployment,
) -> None:
    asked = deployment.call("asks")["result"]
    first, *_ = full(deployment)
    answer = {"inputResponses": {"size": accepted(1)}, "requestState": asked["requestState"]}
    refusal(call(deployment, "asks", **answer))
    assert ran == []
    deployment.cancel(first)
    assert deployment.call("asks", **answer)["result"]["resultType"] == "task"


def test_a_client_without_tasks_is_not_limited(deployment: TaskDeployment) -> None:
    full(deployment)
    assert deployment.call("may", capabilities=UNDECLARED)["result"]["resultType"] == "complete"


@pytest.mark.parametrize("end", ["cancelled", "completed"])
def test_an_ended_task_makes_room(deployment: TaskDeployment, end: str) -> None:
    first, *_ = full(deployment)
    if end == "cancelled":
        deployment.cancel(first)
    else:
        deployment.run_worker()
    deployment.start("must")
    refusal(call(deployment, "must"))


def test_other_callers_are_not_affected(deployment: TaskDeployment) -> None:
    full(deployment)
    body = deployment.body("tools/call", name="must", arguments={})
    assert deployment.send(body, user="bob").status == 200


def test_a_refusal_is_a_warning_and_a_metric_for_the_operator(deployment: TaskDeployment) -> None:
    full(deployment)
    call(deployment, "must")
    assert ("task_limit_reached", {"tool": "must", "limit": LIMIT}) in deployment.observer.events
    assert "task_limit_reached" in WARNING_EVENTS
    refused = next(fields for event, fields in deployment.observer.events if event == "request_refused")
    assert (refused["code"], refused["status"]) == (429, 429)


class ClientContext:
    def __init__(self, custom: Any) -> None:
        self.custom = custom


class Forwarding(LambdaContext):
    """The Lambda context of a function behind a front door."""

    def __init__(self, custom: Any) -> None:
        self.client_context = ClientContext(custom)


@pytest.mark.parametrize("is_forwarded", [False, True])
def test_an_event_is_answered_with_429_directly_and_by_the_front_door(
    tmp_path: Path, is_forwarded: bool
) -> None:
    owner = Server("owner", ports=lambda: deployment.ports())
    owner.tool(task="required")(must)
    deployment = TaskDeployment(owner)
    deployment.table.max_open = LIMIT
    full(deployment)

    def forward(name: str, event: Any, custom: Any, timeout_s: int) -> Any:
        return owner.lambda_handler(event, Forwarding(custom))

    catalog = tmp_path / "catalog.json"
    catalog.write_text(json.dumps(catalog_lists({"owner": owner})))
    door = FrontDoor("door", catalog, ports=lambda: replace(deployment.ports(), forward=forward))
    handler = door.lambda_handler if is_forwarded else owner.lambda_handler
    authorizer = {"jwt": {"claims": {"iss": "https://id", "sub": "alice"}}}
    body = deployment.body("tools/call", name="must", arguments={})
    response = handler(http_event(body, authorizer=authorizer), LambdaContext())
    refusal(HttpResponse(response["statusCode"], response["body"], response["headers"]))
    assert ran == []


def test_a_client_of_the_initialize_era_gets_the_error_with_status_200(deployment: TaskDeployment) -> None:
    """Clients of that time do not read the body of a 4xx."""
    legacy = TaskDeployment(Server("limited", legacy_tasks="sep-2322"))
    legacy.server.tool(task="required")(must)
    legacy.table.max_open = LIMIT
    full(legacy)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    params = {"name": "must", "arguments": {}, "task": {}}
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


class Unreadable(MemoryStore):
    """Cannot read the list of open tasks."""

    def get(self, pk: str, sk: str) -> Any:
        if sk == OPEN_TASKS:
            raise StoreError("ThrottlingException")
        return super().get(pk, sk)


def test_a_tool_does_not_run_while_the_limit_cannot_be_checked() -> None:
    deployment = TaskDeployment(server, store=Unreadable())
    deployment.table.max_open = LIMIT
    error = deployment.call("must")["error"]
    assert (error["code"], error["message"]) == (-32603, "Internal error. Quote id to the server's operator.")
    assert ran == []
    [(event, _)] = deployment.observer.failures
    assert event == "task_table_unavailable"


def test_a_list_of_open_tasks_is_no_task(deployment: TaskDeployment) -> None:
    full(deployment)
    store = deployment.table.store
    assert isinstance(store, MemoryStore)
    [pk] = [pk for pk, sk in store._items if sk == OPEN_TASKS]
    assert store.get(pk, TASK) is None
