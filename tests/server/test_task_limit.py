"""The limit of open tasks on the wire: HTTP 429 with a remedy."""

import json

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.observing.logs_and_metrics import WARNING_EVENTS
from mcp_roundtrip.protocol.constants import LEGACY_VERSION
from support.client_requests import next_round
from support.deployment import Deployment
from support.task_tools import ran, run_step

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


def test_a_tool_that_asks_is_counted_when_it_becomes_a_task_and_its_refused_round_can_be_retried(deployment):
    for _ in range(LIMIT + 1):
        asked = deployment.call("asks")
    first, *_ = at_limit(deployment)
    refusal(deployment, "asks", **next_round(asked, size=1))
    assert ran == []
    deployment.cancel(first)
    assert deployment.retry("asks", asked, size=1)["resultType"] == "task"


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
