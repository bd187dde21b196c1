"""SEP-2322, "Persistent Tool Workflow", and its basis, the tasks of 2025-11-25."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp_types import _v2025_11_25 as legacy
from msgspec.structs import replace
from pydantic import BaseModel

from mcp_roundtrip import Context, DefinitionError, FrontDoor, ProtocolError, Server, ToolError
from mcp_roundtrip.http import HttpRequest, HttpResponse
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_RELATED_TASK,
    META_SERVER_INFO,
    TASKS_EXTENSION,
)
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_local.catalog import catalog_lists
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import TaskTable
from support.messages import http_event
from support.task_deployment import TaskDeployment, accepted

LEGACY_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class Input(BaseModel):
    input: str


PAGE = "https://mcp.test/mcp/questions?token="

server = Server("legacy", instructions="Ask me.", legacy_tasks="sep-2322")


@server.tool(task="required")
def echo(ctx: Context) -> str:
    ctx.run_as_task()
    return f"Echo: {ctx.elicit('echo_input', 'What shall I echo?', Input).input}"


@server.tool(task="optional")
def compute(ctx: Context, label: str) -> str:
    ctx.run_as_task(ttl_ms=60_000)
    return label


@server.tool(task="optional")
def provision(ctx: Context, name: str) -> dict[str, int]:
    size = ctx.elicit("size", f"How large is {name}?", int)
    ctx.run_as_task()
    return {"size": size, "copies": ctx.elicit("copies", "How many?", int)}


@server.tool(task="required")
def fails(ctx: Context) -> str:
    ctx.run_as_task()
    raise ToolError("no luck")


@server.tool(task="required")
def breaks(ctx: Context) -> str:
    ctx.run_as_task()
    raise ProtocolError(-31999, "broken", {"part": "x"})


@server.tool(task="optional")
def at_once(ctx: Context, fail: bool = False, length: int = 1) -> str:
    if fail:
        raise ToolError("no")
    return "".join(chr(33 + (number * 7919) % 90) for number in range(length))


@server.tool
def greet(ctx: Context) -> str:
    return f"Hello, {ctx.elicit('name', 'Who?', str)}!"


@server.tool
def several() -> list[int]:
    return [1, 2]


@server.tool
def sizes() -> dict[str, int]:
    return {"small": 1}


def valid(method: str, params: Mapping[str, Any], response: Mapping[str, Any]) -> None:
    """Validate a response with the models of 2025-11-25, which have no `resultType`."""
    result = response.get("result")
    if result is None:
        legacy.JSONRPCErrorResponse.model_validate(response)
        return
    as_task = legacy.CallToolResult if params.get("task") is None else legacy.CreateTaskResult
    models: dict[str, type[BaseModel]] = {
        "initialize": legacy.InitializeResult,
        "tools/list": legacy.ListToolsResult,
        "tools/call": as_task,
        "tasks/get": legacy.GetTaskResult,
        "tasks/cancel": legacy.CancelTaskResult,
        "tasks/result": legacy.CallToolResult,
    }
    if method in models and result.get("resultType") != "input_required":
        models[method].model_validate(result)


@dataclass
class LegacyDeployment(TaskDeployment):
    """A deployment with a client of 2025-11-25. The server calls `pause` while it waits."""

    pause: Callable[[], None] = lambda: None
    pauses: list[float] = field(default_factory=list)
    deadline_ms: float = 1e18

    def ports(self, store: TaskStore | None = None) -> Ports:
        def pause_ms(duration_ms: float) -> None:
            self.pauses.append(duration_ms)
            self.clock.advance(duration_ms / 1000)
            self.pause()

        return replace(super().ports(store), pause_ms=pause_ms)

    def request(
        self, body: Any, *, user: str = "alice", method: str = "POST", **headers: str
    ) -> HttpResponse:
        given = {**LEGACY_HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
        text = body if isinstance(body, str) else json.dumps(body)
        claims = {"jwt": {"claims": {"iss": "https://id", "sub": user}}} if user else {}
        invocation = Invocation("id", self.deadline_ms)
        return self.server.endpoint.respond(
            HttpRequest(method, given, text, claims), self.ports(), invocation
        )

    def ask(self, rpc: str, *, by: str = "alice", **params: Any) -> Any:
        """Return the response to a request. Protocol errors have HTTP status 200."""
        response = self.request({"jsonrpc": "2.0", "id": 1, "method": rpc, "params": params}, user=by)
        assert response.status == 200
        read = json.loads(response.body)
        valid(rpc, params, read)
        return read

    def as_task(self, name: str, *, task: Any = None, **arguments: Any) -> Any:
        task = {} if task is None else task
        return self.ask("tools/call", name=name, arguments=arguments, task=task)["result"]["task"]

    def task(self, task_id: str) -> Any:
        return self.ask("tasks/get", taskId=task_id)["result"]

    def outcome(self, task_id: str) -> Any:
        return self.ask("tasks/result", taskId=task_id)

    def respond(self, task_id: str, **responses: Any) -> Any:
        related = {META_RELATED_TASK: {"taskId": task_id}}
        return self.ask("tasks/input_response", inputResponses=responses, _meta=related)

    def parked(self) -> str:
        task_id = str(self.as_task("echo")["taskId"])
        self.run_workers()
        return task_id

    def ended(self, name: str, **arguments: Any) -> str:
        task_id = str(self.as_task(name, **arguments)["taskId"])
        self.run_workers()
        return task_id


@pytest.fixture
def deployment() -> LegacyDeployment:
    return LegacyDeployment(server)


# -- the example flow -----------------------------------------------------------------------------------

FLOW = json.loads(Path(__file__).with_name("echo_task.json").read_text("utf-8"))
PAIRS = list(zip(FLOW[::2], FLOW[1::2], strict=True))


def essence(value: Any, task_id: str) -> Any:
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


def test_the_example_flow_has_the_twelve_messages_of_the_sep(deployment: LegacyDeployment) -> None:
    """In the SEP the sixth message has `_meta` beside `result`, which JSON-RPC forbids. Here it is inside."""
    task_id = ""
    for request, expected in PAIRS:
        sent = json.loads(json.dumps(request).replace("<taskId>", task_id))
        response = json.loads(deployment.request(sent).body)
        valid(sent["method"], sent["params"], response)
        task_id = task_id or response["result"]["task"]["taskId"]
        assert essence(response, task_id) == expected
        deployment.run_workers()


def test_unexpected_content_is_acknowledged_and_requested_again(
    deployment: LegacyDeployment,
) -> None:
    task_id = deployment.parked()
    assert "result" in deployment.respond(task_id, echo_input=accepted({"not_requested_parameter": "x"}))
    deployment.run_workers()
    assert deployment.task(task_id)["status"] == "input_required"
    assert deployment.outcome(task_id)["result"]["inputRequests"].keys() == {"echo_input~2"}
    deployment.respond(task_id, **{"echo_input~2": accepted({"input": "hi"})})
    deployment.run_workers()
    assert deployment.outcome(task_id)["result"]["content"][0]["text"] == "Echo: hi"


def test_a_call_may_begin_with_rounds_and_continue_as_a_task(deployment: LegacyDeployment) -> None:
    call: dict[str, Any] = {"name": "provision", "arguments": {"name": "db"}, "task": {"ttl": 9_000}}
    asked = deployment.ask("tools/call", **call)["result"]
    assert (asked["resultType"], asked["inputRequests"].keys()) == ("input_required", {"size"})
    assert not deployment.table.dispatcher.sent
    answers = {"size": accepted(4)}
    created = deployment.ask("tools/call", **call, inputResponses=answers, requestState=asked["requestState"])
    assert created["result"].keys() == {"task"}
    task_id = created["result"]["task"]["taskId"]
    deployment.run_workers()
    assert deployment.outcome(task_id)["result"]["inputRequests"].keys() == {"copies"}
    deployment.respond(task_id, copies=accepted(2))
    deployment.run_workers()
    assert deployment.outcome(task_id)["result"]["structuredContent"] == {"size": 4, "copies": 2}


def test_a_round_that_is_sent_again_gets_the_same_task_in_its_own_dialect(
    deployment: LegacyDeployment,
) -> None:
    """No dialect can read the tasks of the other one, so it refuses the states of their flows."""
    call: dict[str, Any] = {"name": "provision", "arguments": {"name": "db"}}
    with_task = {**call, "task": {}}

    def round_of(asked: Any, size: int) -> dict[str, Any]:
        return {"inputResponses": {"size": accepted(size)}, "requestState": asked["result"]["requestState"]}

    asked = deployment.ask("tools/call", **with_task)
    created = deployment.ask("tools/call", **with_task, **round_of(asked, 4))
    deployment.run_workers()
    assert deployment.ask("tools/call", **with_task, **round_of(asked, 5)) == created
    assert deployment.post("tools/call", **call, **round_of(asked, 4))["error"]["code"] == -32602

    asked = deployment.post("tools/call", **call)
    created = deployment.post("tools/call", **call, **round_of(asked, 4))
    assert deployment.post("tools/call", **call, **round_of(asked, 5)) == created
    assert deployment.ask("tools/call", **with_task, **round_of(asked, 4))["error"]["code"] == -32602


# -- tools/call -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "given"),
    [({}, 60_000), ({"ttl": None}, 60_000), ({"ttl": 9_000}, 9_000), ({"ttl": 10**30}, 60_000)],
)
def test_a_created_task_is_nested_and_has_the_shorter_ttl(
    deployment: LegacyDeployment, asked: Any, given: int
) -> None:
    result = deployment.ask("tools/call", name="compute", arguments={"label": "x"}, task=asked)["result"]
    assert result.keys() == {"task"}
    task = result["task"]
    assert task.keys() == {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}
    assert (task["status"], task["ttl"]) == ("working", given)
    deployment.clock.advance(given / 1000 + 1)
    assert deployment.task(task["taskId"])["status"] == "failed"


def test_a_task_member_that_is_null_requests_no_task(deployment: LegacyDeployment) -> None:
    null = deployment.ask("tools/call", name="at_once", task=None)
    absent = deployment.ask("tools/call", name="at_once")
    assert null["result"] == absent["result"]


@pytest.mark.parametrize("task", [True, 5, "x", [], {"ttl": 0}, {"ttl": -1}, {"ttl": "1"}, {"ttl": True}])
def test_malformed_task_metadata_is_invalid(deployment: LegacyDeployment, task: Any) -> None:
    for name in ("compute", "greet"):
        assert deployment.ask("tools/call", name=name, task=task)["error"]["code"] == -32602


def test_the_client_decides_whether_there_is_a_task(deployment: LegacyDeployment) -> None:
    meta: dict[str, Any] = {META_CLIENT_CAPABILITIES: {"extensions": {TASKS_EXTENSION: {}}}}
    result = deployment.ask("tools/call", name="compute", arguments={"label": "x"}, _meta=meta)["result"]
    assert "task" not in result
    assert result["content"][0]["text"] == "x"


def test_a_tool_that_must_be_a_task_differs_from_one_that_cannot_be(deployment: LegacyDeployment) -> None:
    assert deployment.ask("tools/call", name="echo")["error"]["code"] == -32601
    assert deployment.ask("tools/call", name="greet", task={})["error"]["code"] == -32601
    assert deployment.ask("tools/call", name="nothing", task={})["error"]["code"] == -32602


def test_the_tool_and_its_use_of_tasks_are_checked_before_the_other_params(
    deployment: LegacyDeployment,
) -> None:
    malformed: dict[str, Any] = {"arguments": 1, "requestState": 2}
    assert deployment.ask("tools/call", name="echo", **malformed)["error"]["code"] == -32601
    assert deployment.ask("tools/call", name="greet", task={}, **malformed)["error"]["code"] == -32601
    assert deployment.ask("tools/call", name="none", **malformed)["error"]["message"] == "Unknown tool: none"
    assert deployment.ask("tools/call", name="greet", **malformed)["error"]["code"] == -32602


def test_without_a_task_a_client_is_asked_what_it_declared_and_else_on_the_page(
    deployment: LegacyDeployment,
) -> None:
    undeclared = deployment.ask("tools/call", name="greet")["result"]
    assert PAGE in undeclared["content"][0]["text"]
    meta: dict[str, Any] = {META_CLIENT_CAPABILITIES: {"elicitation": {}}}
    asked = deployment.ask("tools/call", name="greet", _meta=meta)["result"]
    done = deployment.ask(
        "tools/call",
        name="greet",
        _meta=meta,
        inputResponses={"name": accepted("Ada")},
        requestState=asked["requestState"],
    )
    assert done["result"]["content"][0]["text"] == "Hello, Ada!"


def test_in_a_task_a_client_is_asked_on_the_page_what_it_did_not_declare(
    deployment: LegacyDeployment,
) -> None:
    meta: dict[str, Any] = {META_CLIENT_CAPABILITIES: {}}
    created = deployment.ask("tools/call", name="echo", task={}, _meta=meta)["result"]["task"]
    deployment.run_workers()
    assert PAGE in deployment.task(created["taskId"])["statusMessage"]


def test_without_the_page_a_client_is_asked_only_what_it_declared() -> None:
    without_page = Server("legacy", legacy_tasks="sep-2322", channels=("default",))

    @without_page.tool
    def greet(ctx: Context) -> str:
        return ctx.elicit("name", "Who?", str)

    @without_page.tool(task="required")
    def greet_in_task(ctx: Context) -> str:
        ctx.run_as_task()
        return ctx.elicit("name", "Who?", str)

    deployment = LegacyDeployment(without_page)
    meta: dict[str, Any] = {META_CLIENT_CAPABILITIES: {}}
    assert deployment.ask("tools/call", name="greet")["result"]["isError"]
    assert deployment.ask("tools/call", name="greet", _meta=meta)["error"]["code"] == -32021
    created = deployment.ask("tools/call", name="greet_in_task", task={}, _meta=meta)["result"]["task"]
    deployment.run_workers()
    assert deployment.outcome(created["taskId"])["error"]["code"] == -32021


def test_a_call_that_completes_at_once_is_a_completed_task(deployment: LegacyDeployment) -> None:
    task = deployment.as_task("at_once")
    assert (task["status"], task["ttl"]) == ("completed", 3_600_000)
    assert deployment.as_task("at_once", task={"ttl": 5_000})["ttl"] == 5_000
    assert not deployment.table.dispatcher.sent, "no worker is dispatched"
    assert deployment.outcome(task["taskId"])["result"]["content"][0]["text"] == "!"
    failed = deployment.as_task("at_once", fail=True)
    assert failed["status"] == "failed"
    assert deployment.task(failed["taskId"]) == failed
    assert deployment.outcome(failed["taskId"])["result"]["isError"] is True
    refused = deployment.as_task("at_once", fail="perhaps")
    assert deployment.outcome(refused["taskId"])["result"]["isError"] is True


def test_the_result_of_such_a_task_may_be_larger_than_an_item(deployment: LegacyDeployment) -> None:
    task_id = deployment.ended("at_once", length=1_500_000)
    assert len(deployment.outcome(task_id)["result"]["content"][0]["text"]) == 1_500_000


def test_a_store_error_is_an_internal_error(deployment: LegacyDeployment) -> None:
    class ThrottledStore:
        def update(self, *_: object) -> None:
            raise StoreError("ThrottlingException")

        put_new = get = query = update

    throttled: Any = ThrottledStore()
    deployment.table.store = throttled
    for name in ("compute", "at_once"):
        error = deployment.ask("tools/call", name=name, arguments={"label": "x"}, task={})["error"]
        assert error["code"] == -32603
        assert deployment.observer.failures.pop()[0] == "task_table_unavailable"


# -- tasks/get and tasks/result -------------------------------------------------------------------------

MEMBERS = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval", "statusMessage"}


def test_polls_return_only_the_status(deployment: LegacyDeployment) -> None:
    working = deployment.as_task("compute", label="x")["taskId"]
    assert deployment.task(working)["status"] == "working"
    statuses = {
        "input_required": deployment.parked(),
        "completed": deployment.ended("compute", label="x"),
        "failed": deployment.ended("breaks"),
        "cancelled": deployment.parked(),
    }
    deployment.ask("tasks/cancel", taskId=statuses["cancelled"])
    for status, task_id in statuses.items():
        task = deployment.task(task_id)
        assert task["status"] == status
        assert task.keys() <= MEMBERS


def test_progress_is_shown_while_the_task_works() -> None:
    other = Server("legacy", legacy_tasks="sep-2322")

    @other.tool(task="required")
    def imports(ctx: Context) -> str:
        ctx.run_as_task()
        ctx.progress(1, 2, "half")
        ctx.sleep("a while", 60_000)
        ctx.progress(2, 2, "all")
        return ctx.elicit("name", "Name?", str)

    deployment = LegacyDeployment(other)
    task_id = deployment.ended("imports")
    working = deployment.task(task_id)
    assert (working["status"], working["statusMessage"]) == ("working", "half")
    deployment.clock.advance(61)
    deployment.task(task_id)
    deployment.run_workers()
    asking = deployment.task(task_id)
    assert (asking["status"], "statusMessage" in asking) == ("input_required", False)
    deployment.respond(task_id, name=accepted("x"))
    deployment.run_workers()
    ended = deployment.task(task_id)
    assert (ended["status"], "statusMessage" in ended) == ("completed", False)


def test_the_result_has_the_outstanding_requests_until_they_are_answered(
    deployment: LegacyDeployment,
) -> None:
    task_id = deployment.parked()
    first = deployment.outcome(task_id)["result"]
    assert first.keys() == {"resultType", "inputRequests", "_meta"}
    assert first["resultType"] == "input_required"
    assert first["_meta"] == {META_RELATED_TASK: {"taskId": task_id}}
    assert deployment.outcome(task_id)["result"] == first
    assert not deployment.pauses


def test_the_result_names_its_task(deployment: LegacyDeployment) -> None:
    task_id = deployment.ended("compute", label="x")
    result = deployment.outcome(task_id)["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"][META_RELATED_TASK] == {"taskId": task_id}


def test_a_tool_error_fails_the_task_and_is_its_result(deployment: LegacyDeployment) -> None:
    task_id = deployment.ended("fails")
    assert deployment.task(task_id)["status"] == "failed"
    result = deployment.outcome(task_id)["result"]
    assert (result["isError"], result["content"][0]["text"]) == (True, "no luck")


def test_a_protocol_error_fails_the_task_and_is_the_response(deployment: LegacyDeployment) -> None:
    task_id = deployment.ended("breaks")
    assert deployment.task(task_id)["status"] == "failed"
    assert deployment.outcome(task_id)["error"] == {
        "code": -31999,
        "message": "broken",
        "data": {"part": "x"},
    }


def test_a_request_for_the_result_waits(deployment: LegacyDeployment) -> None:
    task_id = deployment.as_task("compute", label="x")["taskId"]
    deployment.pause = deployment.run_workers
    assert deployment.outcome(task_id)["result"]["content"][0]["text"] == "x"
    assert deployment.pauses == [500]


def test_a_waiting_request_redispatches_a_lost_worker(deployment: LegacyDeployment) -> None:
    task_id = deployment.as_task("compute", label="x")["taskId"]
    deployment.table.dispatcher.sent.clear()
    deployment.pause = deployment.run_workers
    assert "result" in deployment.outcome(task_id)
    assert 15_000 <= sum(deployment.pauses) < 20_000


def test_the_wait_times_out_with_the_advice_to_retry(deployment: LegacyDeployment) -> None:
    task_id = deployment.as_task("compute", label="x")["taskId"]
    error = deployment.outcome(task_id)["error"]
    assert (error["code"], sum(deployment.pauses)) == (-32603, 20_000)
    assert len(deployment.pauses) == 8, "each costs a read of the table"
    deployment.run_workers()
    assert "result" in deployment.outcome(task_id)


def test_the_wait_ends_before_the_invocation(deployment: LegacyDeployment) -> None:
    task_id = deployment.as_task("compute", label="x")["taskId"]
    deployment.deadline_ms = deployment.clock.monotonic_ms() + 1_800
    assert deployment.outcome(task_id)["error"]["code"] == -32603
    assert sum(deployment.pauses) == 1_500


def test_an_unanswered_task_fails_when_its_ttl_ends(deployment: LegacyDeployment) -> None:
    task_id = deployment.parked()
    deployment.clock.advance(3_600)
    failed = deployment.task(task_id)
    assert failed["status"] == "failed"
    assert failed["statusMessage"]
    assert deployment.outcome(task_id)["error"]["code"] == -32603


# -- tasks/input_response and tasks/cancel --------------------------------------------------------------


def test_the_acknowledgement_names_the_task_and_the_task_continues(deployment: LegacyDeployment) -> None:
    task_id = deployment.parked()
    acknowledged = deployment.respond(task_id, echo_input=accepted({"input": "x"}))["result"]
    assert acknowledged == {"_meta": {META_RELATED_TASK: {"taskId": task_id}}}
    assert deployment.task(task_id)["status"] == "working"


def test_an_answer_names_its_task_only_in_its_metadata(deployment: LegacyDeployment) -> None:
    task_id, other = deployment.parked(), deployment.parked()
    responses = {"echo_input": accepted({"input": "x"})}
    related = {META_RELATED_TASK: {"taskId": task_id}}
    deployment.ask("tasks/input_response", taskId=other, inputResponses=responses, _meta=related)
    assert deployment.task(task_id)["status"] == "working"
    assert deployment.task(other)["status"] == "input_required"
    error = deployment.ask("tasks/input_response", taskId=other, inputResponses=responses)["error"]
    assert error["code"] == -32602


@pytest.mark.parametrize(
    "responses",
    [
        *(None, [], "x", 1),
        *({"echo_input": answer} for answer in ("x", None, {}, {"action": "maybe"}, {"action": "accept"})),
    ],
)
def test_malformed_answers_are_refused_and_change_nothing(
    deployment: LegacyDeployment, responses: Any
) -> None:
    task_id = deployment.parked()
    related = {META_RELATED_TASK: {"taskId": task_id}}
    refused = deployment.ask("tasks/input_response", inputResponses=responses, _meta=related)
    assert refused["error"]["code"] == -32602
    assert deployment.task(task_id)["status"] == "input_required"


@pytest.mark.parametrize("related", [None, "x", [], {}, {"taskId": 7}, {"taskId": "A" * 32}])
def test_an_answer_to_no_task_is_refused(deployment: LegacyDeployment, related: Any) -> None:
    meta = {META_RELATED_TASK: related}
    refused = deployment.ask("tasks/input_response", inputResponses={}, _meta=meta)
    assert refused["error"]["code"] == -32602


def test_answers_to_no_question_are_ignored(deployment: LegacyDeployment) -> None:
    task_id = deployment.parked()
    before = deployment.task(task_id)
    assert "result" in deployment.respond(task_id, unknown={"x": 1})
    assert deployment.task(task_id) == before


def test_a_client_can_cancel_instead_of_answering(deployment: LegacyDeployment) -> None:
    task_id = deployment.parked()
    cancelled = deployment.ask("tasks/cancel", taskId=task_id)["result"]
    assert (cancelled["taskId"], cancelled["status"]) == (task_id, "cancelled")
    assert deployment.task(task_id) == cancelled
    assert deployment.outcome(task_id)["error"]["code"] == -32602


@pytest.mark.parametrize("name", ["at_once", "fails", "breaks"])
def test_an_ended_task_cannot_be_cancelled(deployment: LegacyDeployment, name: str) -> None:
    task_id = deployment.ended(name)
    before = deployment.task(task_id)
    assert deployment.ask("tasks/cancel", taskId=task_id)["error"]["code"] == -32602
    assert deployment.task(task_id) == before


def test_a_cancelled_task_cannot_be_cancelled_again(deployment: LegacyDeployment) -> None:
    task_id = deployment.parked()
    deployment.ask("tasks/cancel", taskId=task_id)
    assert deployment.ask("tasks/cancel", taskId=task_id)["error"]["code"] == -32602


def test_other_methods_ignore_related_task_metadata(deployment: LegacyDeployment) -> None:
    task_id, other = deployment.parked(), deployment.ended("compute", label="x")
    related = {META_RELATED_TASK: {"taskId": other}}
    assert deployment.ask("tasks/get", taskId=task_id, _meta=related)["result"]["taskId"] == task_id
    result = deployment.ask("tasks/result", taskId=task_id, _meta=related)["result"]
    assert result["resultType"] == "input_required"
    assert deployment.ask("tasks/cancel", taskId=task_id, _meta=related)["result"]["taskId"] == task_id


def test_a_task_of_another_principal_is_unknown(deployment: LegacyDeployment) -> None:
    task_id = deployment.parked()
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        foreign = deployment.ask(method, by="bob", taskId=task_id)["error"]
        assert foreign == deployment.ask(method, taskId="A" * 32)["error"]
        assert foreign["code"] == -32602
    assert deployment.task(task_id)["status"] == "input_required"


# -- two dialects side by side --------------------------------------------------------------------------


def test_a_task_is_unknown_in_the_other_dialect(deployment: LegacyDeployment) -> None:
    ours, theirs = deployment.parked(), deployment.start("compute", label="x")
    assert deployment.get(ours)["error"]["code"] == -32602
    assert deployment.cancel(ours)["error"]["code"] == -32602
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        assert deployment.ask(method, taskId=theirs)["error"]["code"] == -32602
    assert deployment.respond(theirs, x={})["error"]["code"] == -32602
    deployment.run_workers()
    assert deployment.status(theirs) == "completed"


def test_modern_clients_get_no_members_of_this_dialect(deployment: LegacyDeployment) -> None:
    for method in ("tasks/result", "tasks/input_response", "tasks/list", "initialize", "ping"):
        response = deployment.send(deployment.body(method, taskId="A" * 32))
        assert (response.status, json.loads(response.body)["error"]["code"]) == (404, -32601)
    discovered = deployment.post("server/discover")["result"]
    assert discovered["capabilities"].keys() == {"tools", "logging", "extensions"}
    assert all("execution" not in tool for tool in deployment.post("tools/list")["result"]["tools"])
    ignored = deployment.call("several", task={"ttl": 1})["result"]
    assert ignored["resultType"] == "complete"


def test_without_the_setting_there_are_no_tasks_for_legacy_clients() -> None:
    without = Server("without")
    without.tool(task="required")(echo)
    without.tool(task="optional")(compute)
    deployment = LegacyDeployment(without)
    assert "tasks" not in deployment.ask("initialize", **INITIALIZE)["result"]["capabilities"]
    assert all("execution" not in tool for tool in deployment.ask("tools/list")["result"]["tools"])
    assert deployment.ask("tasks/get", taskId="A" * 32)["error"]["code"] == -32601
    params = {"name": "compute", "arguments": {"label": "x"}, "task": {}}
    response = deployment.request({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert json.loads(response.body)["result"]["content"][0]["text"] == "x"
    refused = deployment.ask("tools/call", name="echo")["result"]
    assert refused["isError"]
    assert "tasks" in refused["content"][0]["text"]


def test_an_unknown_dialect_is_refused(tmp_path: Path) -> None:
    unknown: Any = "sep-1686"
    with pytest.raises(DefinitionError):
        Server("x", legacy_tasks=unknown)
    (tmp_path / "catalog.json").write_text('{"tools": []}')
    with pytest.raises(DefinitionError):
        FrontDoor("x", tmp_path / "catalog.json", legacy_tasks=unknown)


def test_a_dialect_for_clients_that_are_not_served_is_refused() -> None:
    with pytest.raises(DefinitionError):
        Server("x", legacy_tasks="sep-2322", legacy_clients=False)


def test_the_dialect_is_imported_only_if_it_is_used() -> None:
    code = """
import sys
from mcp_roundtrip import Server
Server("plain").endpoint.legacy_handlers()
assert "mcp_roundtrip.server.legacy" in sys.modules
dialect = Server("dialect", legacy_tasks="sep-2322").endpoint
assert "mcp_roundtrip.server.legacy.sep_2322" not in sys.modules
dialect.legacy_handlers()
assert "mcp_roundtrip.server.legacy.sep_2322" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_clients_of_a_version_without_tasks_get_no_task_members(deployment: LegacyDeployment) -> None:
    def ask(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return json.loads(deployment.request(body, mcp_protocol_version="2025-06-18").body)

    assert not any("execution" in tool for tool in ask("tools/list")["result"]["tools"])
    assert ask("tasks/get", taskId="A" * 32)["error"]["code"] == -32601
    called = ask("tools/call", name="echo", arguments={}, task={})
    assert "task" not in called.get("result", {})


# -- other legacy methods --------------------------------------------------------------------

INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
CAPABILITIES: dict[str, Any] = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}


@pytest.mark.parametrize(
    ("requested", "agreed"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2025-11-25"),
    ],
)
def test_initialize_negotiates_a_version_and_starts_a_session(
    deployment: LegacyDeployment, requested: str, agreed: str
) -> None:
    result = deployment.ask("initialize", **{**INITIALIZE, "protocolVersion": requested})["result"]
    assert result == {
        "protocolVersion": agreed,
        "capabilities": CAPABILITIES if agreed == "2025-11-25" else {"tools": {}},
        "serverInfo": {"name": "legacy", "version": "1.0.0"},
        "instructions": "Ask me.",
    }
    response = deployment.request({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    assert response.headers.keys() == {"content-type", "mcp-session-id"}
    assert deployment.request({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    assert deployment.ask("ping")["result"] == {}


def test_a_server_without_task_tools_does_not_declare_tasks() -> None:
    plain = Server("plain", legacy_tasks="sep-2322")
    plain.tool(several)
    deployment = LegacyDeployment(plain)
    assert deployment.ask("initialize", **INITIALIZE)["result"]["capabilities"] == {"tools": {}}
    assert deployment.ask("tasks/get", taskId="A" * 32)["error"]["code"] == -32601


def test_listed_tools_declare_their_task_support(deployment: LegacyDeployment) -> None:
    result = deployment.ask("tools/list")["result"]
    assert result.keys() == {"tools", "_meta"}
    tools = {tool["name"]: tool for tool in result["tools"]}
    support = {name: tool["execution"]["taskSupport"] for name, tool in tools.items() if "execution" in tool}
    assert support == {
        **dict.fromkeys(("echo", "fails", "breaks"), "required"),
        **dict.fromkeys(("compute", "provision", "at_once"), "optional"),
    }
    assert deployment.ask("tools/list", cursor="x")["error"]["code"] == -32602


def test_structured_content_is_an_object_or_text(deployment: LegacyDeployment) -> None:
    tools = {tool["name"]: tool for tool in deployment.ask("tools/list")["result"]["tools"]}
    assert "outputSchema" in tools["sizes"]
    assert "outputSchema" not in tools["several"]
    result = deployment.ask("tools/call", name="several")["result"]
    assert "structuredContent" not in result
    assert json.loads(result["content"][0]["text"]) == [1, 2]


@pytest.mark.parametrize("method", ["tasks/list", "tasks/update", "server/discover", "logging/setLevel"])
def test_other_methods_do_not_exist(deployment: LegacyDeployment, method: str) -> None:
    assert deployment.ask(method, level="info")["error"]["code"] == -32601


def test_only_errors_before_the_request_have_their_own_http_status(deployment: LegacyDeployment) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert deployment.request(body, mcp_protocol_version="2025-06-18").status == 200
    assert deployment.request(body, mcp_protocol_version="2024-11-05").status == 400
    assert deployment.request("{").status == 400
    assert deployment.request(body, user="").status == 401
    assert deployment.request(body, origin="https://evil.example").status == 403
    assert deployment.request(body, method="DELETE").status == 405


# -- behind a front door --------------------------------------------------------------------------------


def test_a_front_door_serves_the_dialect_for_its_owners(tmp_path: Path) -> None:
    clock = FakeClock()
    table = TaskTable(clock)
    plain = make_ports(clock=clock, tasks=table)
    owner = Server("owner", legacy_tasks="sep-2322", ports=lambda: plain)
    owner.tool(task="required")(echo)
    owner.tool(several)
    (tmp_path / "catalog.json").write_text(json.dumps(catalog_lists({"owner": owner})))
    forwarding = replace(plain, forward=lambda name, event, *rest: owner.lambda_handler(event, None))
    door = FrontDoor("door", tmp_path / "catalog.json", legacy_tasks="sep-2322", ports=lambda: forwarding)

    def ask(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = door.lambda_handler(http_event(body, headers=LEGACY_HEADERS), None)
        assert response["statusCode"] == 200
        read = json.loads(response["body"])
        valid(method, params, read)
        return read

    assert ask("initialize", **INITIALIZE)["result"]["capabilities"] == CAPABILITIES
    assert ask("ping")["result"] == {}
    listed = {tool["name"]: tool for tool in ask("tools/list")["result"]["tools"]}
    assert listed["echo"]["execution"] == {"taskSupport": "required"}
    assert "execution" not in listed["several"]
    task_id = ask("tools/call", name="echo", task={})["result"]["task"]["taskId"]
    assert ask("tasks/get", taskId=task_id)["result"]["status"] == "working"
    assert ask("tasks/cancel", taskId=task_id)["result"]["status"] == "cancelled"
    assert ask("tasks/result", taskId=task_id)["error"]["code"] == -32602
    assert ask("tools/call", name="echo")["error"]["code"] == -32601
    assert ask("tools/call", name="nothing")["error"]["code"] == -32602
