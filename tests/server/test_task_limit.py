"""The limit of open tasks on the wire: HTTP 429 with a remedy."""

import json

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.observing.logs_and_metrics import WARNING_EVENTS
from mcp_roundtrip.protocol.constants import LEGACY_VERSION
from mcp_roundtrip.tasks.limit import OPEN_TASKS
from mcp_roundtrip.tasks.model import TASK
from support.client_requests import next_round
from support.deployment import Deployment
from support.task_tools import meanwhile, ran, run_step

LIMIT = 2

server = Server("limited")


@pytest.fixture
def deployment():
    return Deployment(server, max_open=LIMIT)


@server.tool(task="required")
def requires_task(ctx: Context) -> str:
    run_step("body")
    ctx.run_as_task()
    return ctx.step("work", run_step, "work")


@server.tool(task="required")
def asks(ctx: Context) -> str:
    ctx.elicit("size", "How large?", int)
    run_step("answered")
    ctx.run_as_task()
    return "done"


@server.tool(task="required")
def observed(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.step("observed", run_step, "observed")
    return ctx.step("after", run_step, "after")


def at_limit(deployment):
    tasks = [deployment.start("requires_task") for _ in range(LIMIT)]
    ran.clear()
    return tasks


def refusal(deployment, tool, **more):
    response = deployment.send_call(tool, **more)
    assert (response.status, response.headers["retry-after"]) == (429, "30")
    error = json.loads(response.body)["error"]
    assert (error["code"], error["data"]) == (429, {"maxOpenTasks": LIMIT, "retryAfterMs": 30_000})
    return error


@pytest.mark.parametrize(
    "facets", [{}, {"source": "http_api"}, {"through_door": True}], ids=["endpoint", "function", "front door"]
)
def test_a_tool_that_requires_a_task_is_refused_before_it_runs_and_the_operator_is_warned(facets):
    deployment = Deployment(server, max_open=LIMIT, **facets)
    at_limit(deployment)
    refusal(deployment, "requires_task")
    assert ran == []
    assert len(deployment.sent) == LIMIT, "no worker is dispatched"
    assert ("task_limit_reached", {"tool": "requires_task", "limit": LIMIT}) in deployment.observer.events
    assert "task_limit_reached" in WARNING_EVENTS
    refused = next(fields for event, fields in deployment.observer.events if event == "request_refused")
    assert (refused["code"], refused["status"]) == (429, 429)
    assert deployment.by(user="bob").send_call("requires_task").status == 200


def test_a_tool_that_asks_before_its_task_is_not_counted_yet(deployment):
    for _ in range(LIMIT + 1):
        assert deployment.call("asks")["resultType"] == "input_required"


def test_a_refused_later_round_can_be_retried(deployment):
    asked = deployment.call("asks")
    first, *_ = at_limit(deployment)
    refusal(deployment, "asks", **next_round(asked, size=1))
    assert ran == []
    deployment.cancel(first)
    assert deployment.retry("asks", asked, size=1)["resultType"] == "task"


def test_a_cancelled_task_counts_until_the_running_step_ends(deployment):
    tasks = [deployment.start("observed") for _ in range(LIMIT)]
    statuses = []

    def cancel_and_create():
        for task in tasks:
            deployment.cancel(task)
        statuses.extend(deployment.send_call("requires_task").status for _ in range(LIMIT))

    meanwhile.append(cancel_and_create)
    deployment.run_worker()
    assert statuses == [200, 429], "only the task whose worker had not started made room"
    assert "after" not in ran
    assert deployment.send_call("requires_task").status == 200


def test_a_legacy_client_gets_the_error_with_status_200():
    """Legacy clients do not read the body of a 4xx response."""
    legacy_server = Server("limited", legacy_tasks="sep-2322")
    legacy_server.tool(task="required")(requires_task)
    deployment = Deployment(legacy_server, max_open=LIMIT)
    at_limit(deployment)
    response = deployment.by(version=LEGACY_VERSION).send_call("requires_task", task={})
    error = json.loads(response.body)["error"]
    assert (response.status, error["code"], error["data"]["maxOpenTasks"]) == (200, 429, LIMIT)
    assert ran == []


def test_the_list_of_open_tasks_cannot_be_read_as_a_task(deployment):
    at_limit(deployment)
    [pk] = [pk for pk, sk in deployment.store._items if sk == OPEN_TASKS]
    assert deployment.store.get(pk, TASK) is None
