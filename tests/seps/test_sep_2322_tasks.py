"""SEP-2322, "Persistent Tool Workflow", and its basis, the tasks of 2025-11-25."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_roundtrip import AsyncContext, Context, Server
from mcp_roundtrip.protocol.constants import (
    LEGACY_VERSION,
    META_CLIENT_CAPABILITIES,
    META_RELATED_TASK,
    META_SERVER_INFO,
    PROTOCOL_VERSION,
)
from mcp_roundtrip.protocol.jsonrpc import TOO_MANY_REQUESTS
from support.client_requests import TASKS, accepted, code_in, text
from support.deployment import MARGIN_MS, Deployment


class Input(BaseModel):
    input: str


server = Server("legacy", instructions="Ask me.", legacy_tasks="sep-2322")


@server.tool(task="required")
def echo(ctx: Context) -> str:
    ctx.run_as_task()
    return f"Echo: {ctx.elicit('echo_input', 'What shall I echo?', Input).input}"


@server.tool(task="required")
async def echo_twice(ctx: AsyncContext) -> str:
    await ctx.run_as_task()

    async def ask(branch: AsyncContext) -> str:
        return await branch.elicit("said", "What shall I echo?", str)

    async def ask_later(branch: AsyncContext) -> str:
        await branch.sleep("nap", 60_000)
        return await ask(branch)

    said = await ctx.gather({"now": ask, "later": ask_later})
    return f"Echo: {said['now']} {said['later']}"


@server.tool(task="optional")
def compute(ctx: Context, label: str) -> str:
    ctx.run_as_task(ttl_ms=60_000)
    return label


@server.tool(task="optional")
def provision(ctx: Context, name: str) -> dict[str, int]:
    size = ctx.elicit("size", f"How large is {name}?", int)
    ctx.run_as_task()
    return {"size": size, "copies": ctx.elicit("copies", "How many?", int)}


@server.tool
def several() -> list[int]:
    return [1, 2]


def dialect(server, **facets):
    """Return a deployment with a client of 2025-11-25."""
    return Deployment(server, version=LEGACY_VERSION, **facets)


@pytest.fixture
def deployment():
    return dialect(server)


def as_task(deployment, name, *, task=None, **arguments):
    params = {"name": name, "arguments": arguments, "task": {} if task is None else task}
    return deployment.result("tools/call", **params)["task"]


def ended(deployment, name, **arguments):
    """Return a task without a worker: it has ended, or asks."""
    task_id = str(as_task(deployment, name, **arguments)["taskId"])
    deployment.run_workers()
    return task_id


def parked(deployment):
    return ended(deployment, "echo")


def outcome(deployment, task_id):
    return deployment.result("tasks/result", taskId=task_id)


FLOW = json.loads(Path(__file__).with_name("echo_task.json").read_text("utf-8"))
PAIRS = list(zip(FLOW[::2], FLOW[1::2], strict=True))


def essence(value, task_id):
    """Return a message with placeholders for varying values and without the server name."""
    if isinstance(value, dict):
        return {
            name: "<time>" if name in ("createdAt", "lastUpdatedAt") else essence(member, task_id)
            for name, member in value.items()
            if name != META_SERVER_INFO
        }
    if isinstance(value, list):
        return [essence(item, task_id) for item in value]
    return "<taskId>" if value == task_id else value


def test_the_example_flow_has_the_twelve_messages_of_the_sep(deployment):
    """In the SEP the sixth message has `_meta` beside `result`, which JSON-RPC forbids. Here it is inside."""
    task_id = ""
    for request, expected in PAIRS:
        sent = json.loads(json.dumps(request).replace("<taskId>", task_id))
        response = deployment.post(sent["method"], id=sent["id"], **sent["params"])
        task_id = task_id or response["result"]["task"]["taskId"]
        assert essence(response, task_id) == expected
        deployment.run_workers()


def test_the_calls_of_an_anonymous_session_have_one_limit():
    client = dialect(server, user=None, max_open=1).connected()
    as_task(client, "compute", label="a")
    refused = client.error("tools/call", name="compute", arguments={"label": "b"}, task={})
    assert refused["code"] == TOO_MANY_REQUESTS


@pytest.mark.parametrize("is_dialect_first", [False, True])
def test_a_call_that_waits_on_the_page_becomes_no_task_of_the_other_dialect(deployment, is_dialect_first):
    """The same call in the other dialect starts from its beginning: its client could not read that task."""
    call: dict[str, Any] = {"name": "provision", "arguments": {"name": "db"}}
    in_dialect = {**call, "task": {}, "_meta": {META_CLIENT_CAPABILITIES: {}}}
    modern = deployment.by(version=PROTOCOL_VERSION, capabilities=TASKS)
    for client in (deployment, modern) if is_dialect_first else (modern, deployment):
        if client is modern:
            client.answer(client.text("provision", name="db"), size=4)
            task_id = client.call("provision", name="db")["taskId"]
        else:
            asked = client.result("tools/call", **in_dialect)["task"]
            client.answer(text(outcome(client, asked["taskId"])), size=4)
            task_id = client.result("tools/call", **in_dialect)["task"]["taskId"]
        assert client.status(task_id) == "working"


@pytest.mark.parametrize("is_dialect_first", [False, True])
def test_a_code_continues_no_call_of_the_other_dialect(deployment, is_dialect_first):
    """A caller without an identity. Its client could not read the task that the call becomes."""

    def in_dialect(**arguments: str) -> Any:
        client, meta = deployment.by(user=None), {META_CLIENT_CAPABILITIES: {}}
        task = client.result("tools/call", name="provision", task={}, arguments=arguments, _meta=meta)["task"]
        return outcome(client, task["taskId"])

    modern = deployment.by(version=PROTOCOL_VERSION, user=None, capabilities=TASKS)
    ways = (in_dialect, partial(modern.call, "provision"))
    first, other = ways if is_dialect_first else ways[::-1]
    code = code_in(text(first(name="db")))
    assert "continues no call" in text(other(name="db", continuation_code=code))
    assert code_in(text(first(name="db", continuation_code=code))) == code


def test_an_answer_on_the_page_dispatches_the_worker_and_the_task_ends(deployment):
    """A further question, of a branch that has slept, has a new link to all that are open."""
    meta: dict[str, Any] = {META_CLIENT_CAPABILITIES: {}}
    task_id = deployment.result("tools/call", name="echo_twice", task={}, _meta=meta)["task"]["taskId"]
    deployment.run_workers()
    assert [*deployment.asked_by(deployment.poll(task_id)["statusMessage"])] == ["now/said"]
    deployment.clock.advance(60)
    deployment.poll(task_id)
    deployment.run_workers()
    waiting = deployment.poll(task_id)
    assert waiting["status"] == "working", "its client has nothing to answer"
    assert deployment.answer(waiting["statusMessage"], **{"now/said": "x", "later/said": "y"}) == "stored"
    assert "statusMessage" not in deployment.poll(task_id)
    deployment.run_workers()
    assert text(outcome(deployment, task_id)) == "Echo: x y"


def test_the_wait_for_a_result_ends_before_the_invocation(deployment):
    task_id, began_s = as_task(deployment, "compute", label="x")["taskId"], deployment.clock()
    short = deployment.by(round_ms=1_800 + MARGIN_MS)
    assert short.error("tasks/result", taskId=task_id)["code"] == -32603
    assert deployment.clock() - began_s == 1.5


def test_an_answer_names_its_task_only_in_its_metadata(deployment):
    task_id, other = parked(deployment), parked(deployment)
    responses = {"echo_input": accepted({"input": "x"})}
    related = {META_RELATED_TASK: {"taskId": task_id}}
    params = {"taskId": other, "inputResponses": responses}
    assert deployment.result("tasks/input_response", **params, _meta=related) == {"_meta": related}
    assert deployment.status(task_id) == "working"
    assert deployment.status(other) == "input_required"
    assert deployment.error("tasks/input_response", **params)["code"] == -32602


INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
CAPABILITIES: dict[str, Any] = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}


def test_a_client_of_an_earlier_version_and_a_server_without_tasks_and_a_table_have_none(deployment):
    earlier = deployment.by(version="2025-06-18")
    assert not any("execution" in tool for tool in earlier.result("tools/list")["tools"])
    assert "task" not in earlier.post_call("echo", task={}).get("result", {})
    plain = Server("plain", legacy_tasks="sep-2322")
    plain.tool(several)
    without = dialect(plain)
    for client, code in ((earlier, -32601), (without, -32602), (without.by(has_table=False), -32601)):
        assert client.error("tasks/get", taskId="A" * 32)["code"] == code, "the table may have tasks"


def test_a_front_door_serves_the_dialect_for_its_owners():
    owner = Server("owner", legacy_tasks="sep-2322")
    owner.tool(task="required")(echo)
    owner.tool(several)
    deployment = dialect(owner, through_door=True, door_options={"legacy_tasks": "sep-2322"})
    assert deployment.result("initialize", **INITIALIZE)["capabilities"] == CAPABILITIES
    assert deployment.result("ping") == {}
    listed = {tool["name"]: tool for tool in deployment.result("tools/list")["tools"]}
    assert listed["echo"]["execution"] == {"taskSupport": "required"}
    assert "execution" not in listed["several"]
    task_id = as_task(deployment, "echo")["taskId"]
    assert deployment.status(task_id) == "working"
    assert deployment.result("tasks/cancel", taskId=task_id)["status"] == "cancelled"
    assert deployment.error("tasks/result", taskId=task_id)["code"] == -32602
    assert deployment.call_error("echo")["code"] == -32601
    assert deployment.error("tools/call", name="several", task={})["code"] == -32601
    assert deployment.call_error("nothing")["code"] == -32602
