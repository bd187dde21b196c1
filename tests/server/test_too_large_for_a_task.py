"""Calls that do not fit into the table. An error in the log ends a deployment: only the author causes one."""

import json

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, META_CLIENT_INFO
from support.client_requests import TASKS, next_round, text
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


@pytest.fixture
def client():
    return Deployment(server)


@server.tool(task="optional")
def works_first(ctx: Context, label: str = "") -> None:
    ctx.step("work", lambda: "x" * 30_000)
    ctx.run_as_task()


def send_with(client, tool, name, member, **arguments):
    """Call a tool with another member in the description of the client."""
    body = client.body("tools/call", name=tool, arguments=arguments)
    body["params"]["_meta"][name] = {**body["params"]["_meta"][name], **member}
    return text(json.loads(client.send(body).body)["result"])


@pytest.mark.parametrize(("tool", "capabilities"), [("lasting", None), ("asks_first", TASKS)])
def test_long_arguments_are_no_error_in_the_log(client, tool, capabilities):
    client = client.by(capabilities=capabilities or client.capabilities)
    assert "The arguments are too large" in client.error_text(tool, label=LONG)
    assert (client.outcome, client.failures) == ("arguments_too_large", [])


@pytest.mark.parametrize(("name", "size"), [(META_CLIENT_CAPABILITIES, 20_000), (META_CLIENT_INFO, 500_000)])
def test_a_long_description_of_the_client_makes_no_task_and_is_no_error_in_the_log(client, name, size):
    refused = send_with(client, "lasting", name, {"experimental": {"x" * size: {}}})
    assert "The members of _meta are too large" in refused
    assert (client.outcome, client.failures) == ("meta_too_large", [])
    assert not client.sent


@pytest.mark.parametrize("label", ["", "x" * 50_000])
def test_long_capabilities_are_named_also_if_other_parts_of_the_task_are_longer(client, label):
    refused = send_with(client, "works_first", META_CLIENT_CAPABILITIES, {"x" * 20_000: {}}, label=label)
    assert "The members of _meta are too large for a task: at most about 16000 bytes" in refused
    assert client.failures == []


def test_a_long_answer_is_no_error_in_the_log(client):
    asked = client.call("asks_first")
    refused = client.result("tools/call", name="asks_first", arguments={}, **next_round(asked, name=LONG))
    assert "The answers are too large" in text(refused)
    assert (client.outcome, client.failures) == ("answers_too_large", [])


@pytest.mark.parametrize("label", ["", "x" * 300_000])
def test_a_long_result_of_a_step_is_an_error_in_the_log(client, label):
    assert client.call_error("returns_large_step", label=label)["code"] == -32603
    assert client.failures == ["task_too_large"]
