"""Calls that do not fit into the table. An error in the log ends a deployment: only the author causes one."""

import re

import pytest

from mcp_roundtrip import Context, Server
from support.client_requests import TASKS
from support.deployment import Deployment

LONG = "x" * 500_000
server = Server("large")


@server.tool(task="optional")
def asks_first(ctx: Context, label: str = "") -> str:
    name = ctx.elicit("name", "Name?", str)
    ctx.run_as_task()
    return name


@server.tool(task="required")
def lasting(ctx: Context, label: str = "") -> str:
    ctx.run_as_task()
    return ctx.elicit("name", "Name?", str)


@server.tool(task="optional")
def returns_large_step(ctx: Context, label: str = "") -> None:
    ctx.step("work", lambda: LONG)
    ctx.run_as_task()


@server.tool(task="optional")
def works_first(ctx: Context, label: str = "") -> None:
    ctx.step("work", lambda: "x" * 30_000)
    ctx.run_as_task()


@server.tool(task="optional")
def asks_at_length(ctx: Context) -> bool:
    ctx.run_as_task()
    return ctx.confirm("sure", LONG)


@pytest.fixture
def client():
    return Deployment(server)


@pytest.mark.parametrize(("tool", "capabilities"), [("lasting", None), ("asks_first", TASKS)])
def test_long_arguments_are_no_error_in_the_log(client, tool, capabilities):
    client = client.by(capabilities=capabilities or client.capabilities)
    assert "arguments are too" in client.error_text(tool, label=LONG)
    assert (client.outcome, client.failures) == ("arguments_too_large", [])


@pytest.mark.parametrize("label", ["", "x" * 50_000])
def test_long_capabilities_are_named_also_if_other_parts_of_the_task_are_longer(client, label):
    large = client.by(capabilities={**client.capabilities, "x" * 20_000: {}})
    refused = large.text("works_first", label=label)
    assert re.search("of _meta .* 16000 bytes .* is repeated: work", refused)
    assert client.failures == []


@pytest.mark.parametrize("label", ["", "x" * 300_000])
def test_a_long_result_of_a_step_is_an_error_in_the_log(client, label):
    error = client.call_error("returns_large_step", label=label)
    assert (error["code"], "is repeated: work." in error["message"]) == (-32603, True)
    assert client.failures == ["task_too_large"]


def test_the_log_names_the_tool_and_the_questions_that_a_task_cannot_hold(client):
    client.run_task("asks_at_length")
    [(event, error)] = client.observer.failures
    assert event == "task_too_large"
    assert error.__notes__[-1].endswith("'asks_at_length': sure")
    assert client.by(capabilities={}).call_error("asks_at_length")["code"] == -32603
    assert client.failures == 2 * [event]
