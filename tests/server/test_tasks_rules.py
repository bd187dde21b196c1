"""Single rules of the tasks extension. `test_task_methods` has whole flows.

Every result is validated with `support.tasks_schema`: members, types, and values by status.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pytest

from mcp_roundtrip import Context, Elicit, ProtocolError, Server, ToolError
from mcp_roundtrip.engine.client_requests import NamespacedRequest
from mcp_roundtrip.errors import DefinitionError, UsageError
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, TASKS_EXTENSION
from support.messages import META
from support.task_deployment import DECLARED, UNDECLARED, TaskDeployment, accepted

METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
LEGACY: Mapping[str, Any] = {"elicitation": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}}
"""The declaration of 2025-11-25."""

SAFE = re.compile(r"[A-Za-z0-9_-]+")

server = Server("rules")
ran: list[str] = []


@pytest.fixture(autouse=True)
def reset_ran() -> None:
    ran.clear()


def record_run(what: str) -> str:
    ran.append(what)
    return what


@server.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


@server.tool(task="optional")
def job(ctx: Context, label: str) -> dict[str, str]:
    ctx.run_as_task(ttl_ms=60_000)
    return {"label": ctx.step("work", record_run, label)}


@server.tool(task="optional")
def asks_first(ctx: Context) -> str:
    size = ctx.elicit("size", "How large?", int)
    ctx.run_as_task()
    return ctx.step("work", record_run, f"size {size}")


@server.tool(task="required")
def asks_twice(ctx: Context) -> str:
    ctx.run_as_task()
    name, size = ctx.ask(Elicit("name", "Name?", str), Elicit("size", "Size?", int))
    return f"{name} {size}"


@server.tool(task="required")
def samples(ctx: Context) -> str:
    ctx.run_as_task()
    ctx.sample("poem", [{"role": "user", "content": {"type": "text", "text": "A poem"}}], max_tokens=10)
    return "unreached"


@server.tool(task="optional")
def ends(ctx: Context, how: str) -> str:
    ctx.run_as_task()
    if how == "tool error":
        raise ToolError("no luck")
    if how == "protocol error":
        raise ProtocolError(-32603, "broken", {"why": "luck"})
    return how


@pytest.fixture
def deployment() -> TaskDeployment:
    return TaskDeployment(server)


def asked(deployment: TaskDeployment) -> str:
    """Return a task that waits for two answers."""
    task_id = deployment.start("asks_twice")
    deployment.run_workers()
    return task_id


def body(deployment: TaskDeployment, method: str, task_id: Any) -> Any:
    responses: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
    return deployment.body(method, taskId=task_id, **responses)


# -- negotiation


def test_a_server_with_tasks_does_not_advertise_the_legacy_capability(deployment: TaskDeployment) -> None:
    assert "tasks" not in deployment.post("server/discover")["result"]["capabilities"]


def test_a_declaration_holds_only_for_its_own_request(deployment: TaskDeployment) -> None:
    assert deployment.call("job", arguments={"label": "x"})["result"]["resultType"] == "task"
    second = deployment.call("job", arguments={"label": "x"}, capabilities=UNDECLARED)
    assert second["result"]["resultType"] == "complete"
    assert deployment.call("samples", capabilities=UNDECLARED)["error"]["code"] == -32021


def test_a_declaration_in_the_first_round_does_not_hold_for_the_second(deployment: TaskDeployment) -> None:
    first = deployment.call("asks_first")["result"]
    second = deployment.call(
        "asks_first",
        requestState=first["requestState"],
        inputResponses={"size": accepted(4)},
        capabilities=UNDECLARED,
    )
    assert second["result"]["resultType"] == "complete"
    assert not deployment.table.dispatcher.sent


def test_a_missing_declaration_is_a_bad_request(deployment: TaskDeployment) -> None:
    call = deployment.body("tools/call", name="samples", arguments={}, capabilities=UNDECLARED)
    assert deployment.send(call).status == 400


@pytest.mark.parametrize("capabilities", [UNDECLARED, LEGACY], ids=["none", "legacy"])
@pytest.mark.parametrize("method", METHODS)
def test_task_methods_without_the_declaration_are_refused_for_own_tasks_too(
    deployment: TaskDeployment, method: str, capabilities: Mapping[str, Any]
) -> None:
    task_id = asked(deployment)
    responses = {"inputResponses": {"name": accepted("Ada")}} if method == "tasks/update" else {}
    refused = deployment.send(deployment.body(method, taskId=task_id, capabilities=capabilities, **responses))
    error = json.loads(refused.body)["error"]
    assert (refused.status, error["code"]) == (400, -32021)
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"name", "size"}


def test_a_legacy_declaration_does_not_count(deployment: TaskDeployment) -> None:
    optional = deployment.call("job", arguments={"label": "x"}, capabilities=LEGACY)
    assert optional["result"]["resultType"] == "complete"
    assert deployment.call("samples", capabilities=LEGACY)["error"]["code"] == -32021


@pytest.mark.parametrize("task", [{}, {"ttl": 60_000}, None, "yes"])
@pytest.mark.parametrize("capabilities", [DECLARED, UNDECLARED, LEGACY])
def test_a_task_parameter_is_ignored(
    deployment: TaskDeployment, task: Any, capabilities: Mapping[str, Any]
) -> None:
    plain = deployment.call("greet", arguments={"name": "Ada"}, task=task, capabilities=capabilities)
    assert plain["result"]["resultType"] == "complete"
    job = deployment.call("job", arguments={"label": "x"}, task=task, capabilities=capabilities)["result"]
    assert job["resultType"] == ("task" if capabilities is DECLARED else "complete")
    assert job.get("ttlMs", 60_000) == 60_000


def test_related_task_metadata_does_not_request_a_task(deployment: TaskDeployment) -> None:
    related = {"io.modelcontextprotocol/relatedTaskIds": ["A" * 32]}
    call = deployment.body("tools/call", name="job", arguments={"label": "x"}, capabilities=UNDECLARED)
    call["params"]["_meta"] = {**call["params"]["_meta"], **related}
    assert json.loads(deployment.send(call).body)["result"]["resultType"] == "complete"


def test_subscriptions_to_tasks_need_the_declaration_and_are_declined(deployment: TaskDeployment) -> None:
    def listen(capabilities: Mapping[str, Any]) -> Any:
        filters = {"taskIds": ["A" * 32]}
        return deployment.send(
            deployment.body("subscriptions/listen", notifications=filters, capabilities=capabilities)
        )

    refused = json.loads(listen(UNDECLARED).body)["error"]
    assert refused["code"] == -32021
    assert TASKS_EXTENSION in refused["data"]["requiredCapabilities"]["extensions"]
    acknowledged = json.loads(listen(DECLARED).body.splitlines()[0].removeprefix("data: "))
    assert acknowledged["params"]["notifications"] == {}


# -- creation


def test_a_task_can_be_read_as_soon_as_its_client_gets_the_id(deployment: TaskDeployment) -> None:
    created = deployment.call("job", arguments={"label": "x"})["result"]
    found = deployment.get(created["taskId"])["result"]
    assert {**found, "resultType": "task"} == created


def test_ids_are_unguessable_and_fit_into_a_header(deployment: TaskDeployment) -> None:
    ids = [deployment.start("job", label="x") for _ in range(200)]
    assert all(SAFE.fullmatch(task_id) and len(task_id) == 32 for task_id in ids)
    assert len(set(ids)) == len(ids)
    # 192 random bits: no place in them is the same in all, or the same in two out of three.
    for place in zip(*ids, strict=True):
        assert max(map(place.count, place)) < 30


# -- tasks/get


@pytest.mark.parametrize("how", ["well", "tool error"])
def test_the_result_of_a_task_equals_that_of_a_plain_call(deployment: TaskDeployment, how: str) -> None:
    at_once = deployment.call("ends", arguments={"how": how}, capabilities=UNDECLARED)["result"]
    task_id = deployment.start("ends", how=how)
    deployment.run_workers()
    done = deployment.get(task_id)["result"]
    assert (done["status"], done["result"]) == ("completed", at_once)


def test_the_error_of_a_task_equals_that_of_a_plain_call(deployment: TaskDeployment) -> None:
    at_once = deployment.call("ends", arguments={"how": "protocol error"}, capabilities=UNDECLARED)["error"]
    task_id = deployment.start("ends", how="protocol error")
    deployment.run_workers()
    failed = deployment.get(task_id)["result"]
    assert (failed["status"], failed["error"]) == ("failed", at_once)
    assert failed["statusMessage"]


def test_every_poll_returns_all_outstanding_requests(deployment: TaskDeployment) -> None:
    task_id = asked(deployment)
    polls = [deployment.get(task_id)["result"] for _ in range(3)]
    assert polls[0]["inputRequests"].keys() == {"name", "size"}
    assert polls[0] == polls[1] == polls[2]


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_id_is_invalid_params(deployment: TaskDeployment, method: str) -> None:
    for task_id in ("A" * 32, "", "x", "../../etc", "A" * 32 + "\n", "é" * 32, "A" * 100_000, "M", "a#M"):
        response = deployment.send(body(deployment, method, task_id))
        assert (response.status, json.loads(response.body)["error"]["code"]) == (400, -32602), task_id


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task_id", [None, 7, True, ["A" * 32], {"id": "A" * 32}])
def test_an_id_that_is_not_text_is_invalid_params(
    deployment: TaskDeployment, method: str, task_id: Any
) -> None:
    response = deployment.send(body(deployment, method, task_id))
    assert (response.status, json.loads(response.body)["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_id_is_invalid_params(deployment: TaskDeployment, method: str) -> None:
    request = body(deployment, method, "")
    del request["params"]["taskId"]
    assert json.loads(deployment.send(request).body)["error"]["code"] == -32602


@pytest.mark.parametrize("method", METHODS)
def test_an_expired_task_is_unknown(deployment: TaskDeployment, method: str) -> None:
    task_id = deployment.start("job", label="x")
    deployment.run_workers()
    deployment.clock.advance(60 + 3_599)
    assert deployment.status(task_id) == "completed"
    deployment.clock.advance(1)
    expired = deployment.send(body(deployment, method, task_id))
    unknown = deployment.send(body(deployment, method, "A" * 32))
    assert (expired.status, expired.body) == (unknown.status, unknown.body)


@pytest.mark.parametrize("method", METHODS)
def test_a_task_of_another_principal_is_unknown_and_unchanged(
    deployment: TaskDeployment, method: str
) -> None:
    task_id = asked(deployment)
    before = deployment.get(task_id)
    foreign = deployment.send(body(deployment, method, task_id), user="bob")
    unknown = deployment.send(body(deployment, method, "A" * 32), user="bob")
    assert (foreign.status, foreign.body) == (unknown.status, unknown.body)
    assert deployment.get(task_id) == before


def test_no_result_of_a_task_has_a_request_state_or_names_related_tasks(deployment: TaskDeployment) -> None:
    first = deployment.call("asks_first")["result"]
    created = deployment.call(
        "asks_first", requestState=first["requestState"], inputResponses={"size": accepted(4)}
    )
    task_id = created["result"]["taskId"]
    working = deployment.get(task_id)
    deployment.run_workers()
    for response in (
        created,
        working,
        deployment.get(task_id),
        deployment.update(task_id),
        deployment.cancel(task_id),
    ):
        text = json.dumps(response)
        assert "requestState" not in text
        assert "related-task" not in text


def test_an_ended_task_never_changes(deployment: TaskDeployment) -> None:
    task_id = deployment.start("job", label="x")
    delivery = deployment.table.dispatcher.sent[0]
    deployment.run_workers()
    ended = deployment.get(task_id)
    deployment.update(task_id, name=accepted("Ada"))
    deployment.cancel(task_id)
    deployment.table.dispatcher.sent.append(delivery)
    deployment.run_workers()
    deployment.clock.advance(3_600)
    assert deployment.get(task_id) == ended
    assert ran == ["x"]


def test_a_task_is_readable_until_its_ttl_ends(deployment: TaskDeployment) -> None:
    task_id = asked(deployment)
    deployment.clock.advance(3_599)
    assert deployment.status(task_id) == "input_required"


# -- tasks/update


def test_a_key_is_never_used_for_a_second_request(deployment: TaskDeployment) -> None:
    task_id, seen = asked(deployment), []
    for wrong in range(3):
        requests = deployment.get(task_id)["result"]["inputRequests"]
        seen += [key for key in requests if key.startswith("size")]
        deployment.update(task_id, **{key: accepted(f"no number {wrong}") for key in requests})
        deployment.run_workers()
    assert len(set(seen)) == 3


def test_an_unsupported_request_fails_the_task(deployment: TaskDeployment) -> None:
    task_id = deployment.post(
        "tools/call", name="samples", arguments={}, capabilities={"extensions": {TASKS_EXTENSION: {}}}
    )["result"]["taskId"]
    deployment.run_workers()
    failed = deployment.get(task_id)["result"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32021)
    assert failed["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


def test_requests_depend_on_the_capabilities_declared_at_creation(
    deployment: TaskDeployment,
) -> None:
    task_id = deployment.start("samples")
    deployment.get(task_id, capabilities={"extensions": {TASKS_EXTENSION: {}}})
    deployment.run_workers()
    requests = deployment.get(task_id)["result"]["inputRequests"]
    assert [request["method"] for request in requests.values()] == ["sampling/createMessage"]


def test_an_acknowledgement_is_empty(deployment: TaskDeployment) -> None:
    task_id = asked(deployment)
    for acknowledged in (deployment.update(task_id, name=accepted("Ada")), deployment.cancel(task_id)):
        del acknowledged["result"]["_meta"]
        assert acknowledged == {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}}


def test_an_acknowledged_answer_is_already_stored(deployment: TaskDeployment) -> None:
    task_id = asked(deployment)
    deployment.update(task_id, size=accepted(3))
    task = deployment.get(task_id)["result"]
    assert (task["status"], task["inputRequests"].keys()) == ("input_required", {"name"})
    assert not deployment.table.dispatcher.sent
    deployment.update(task_id, name=accepted("Ada"))
    assert deployment.status(task_id) == "working"
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["content"][0]["text"] == "Ada 3"


MALFORMED: list[Any] = [None, 7, "yes", [], {}, {"action": "maybe"}, {"action": "accept", "content": [1]}]


@pytest.mark.parametrize("value", MALFORMED, ids=str)
def test_keys_that_are_not_outstanding_are_ignored(deployment: TaskDeployment, value: Any) -> None:
    task_id = asked(deployment)
    deployment.update(task_id, size=accepted(3))
    before = deployment.get(task_id)
    deployment.update(task_id, **{"size": value, "never": value, "size~2": value, "": value, "M": value})
    assert deployment.get(task_id) == before
    deployment.update(task_id, name=accepted("Ada"))
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["content"][0]["text"] == "Ada 3"


@pytest.mark.parametrize("value", MALFORMED, ids=str)
def test_an_update_with_a_malformed_answer_is_invalid_params_and_stores_nothing(
    deployment: TaskDeployment, value: Any
) -> None:
    task_id = asked(deployment)
    responses = {"name": accepted("Ada"), "size": value}
    refused = deployment.send(deployment.body("tasks/update", taskId=task_id, inputResponses=responses))
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (400, -32602)
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"size", "name"}
    deployment.update(task_id, name=accepted("Bob"), size=accepted(3))
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["content"][0]["text"] == "Bob 3"


@pytest.mark.parametrize("responses", [None, [], "x", 7])
def test_answers_that_are_not_an_object_are_invalid_params(
    deployment: TaskDeployment, responses: Any
) -> None:
    task_id = asked(deployment)
    refused = deployment.send(deployment.body("tasks/update", taskId=task_id, inputResponses=responses))
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (400, -32602)
    assert deployment.status(task_id) == "input_required"


# -- tasks/cancel


def test_a_task_waiting_for_answers_can_be_cancelled(deployment: TaskDeployment) -> None:
    task_id = asked(deployment)
    deployment.cancel(task_id)
    cancelled = deployment.get(task_id)
    assert cancelled["result"]["status"] == "cancelled"
    deployment.update(task_id, name=accepted("Ada"), size=accepted(3))
    deployment.run_workers()
    assert deployment.get(task_id) == cancelled


def test_a_task_cancelled_while_it_runs_starts_no_further_step() -> None:
    other = Server("other")

    @other.tool(task="required")
    def long(ctx: Context) -> None:
        ctx.run_as_task()
        for number in range(3):
            ctx.step(f"step-{number}", lambda: record_run("step") and deployment.cancel(task_id) and None)

    deployment = TaskDeployment(other)
    task_id = deployment.start("long")
    deployment.run_workers()
    assert deployment.status(task_id) == "cancelled"
    assert ran == ["step"]


def test_a_cancelled_notification_does_not_cancel_a_task(deployment: TaskDeployment) -> None:
    task_id = asked(deployment)
    before = deployment.get(task_id)
    for params in ({"requestId": 1}, {"requestId": task_id}, {"taskId": task_id}):
        notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        assert deployment.send(notification).status == 202
    assert deployment.get(task_id) == before


# -- notifications, headers, names


def test_a_task_sends_no_notifications(deployment: TaskDeployment) -> None:
    other = Server("other")

    @other.tool(task="required")
    def talks(ctx: Context) -> str:
        ctx.run_as_task()
        ctx.progress(1, 2, "half")
        ctx.log("error", "trouble")
        ctx.sleep("a while", 60_000)
        return "done"

    deployment = TaskDeployment(other)
    wants = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}
    meta = {**META, META_CLIENT_CAPABILITIES: DECLARED, **wants}

    def send(method: str, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        answer = deployment.send(request)
        assert answer.headers["content-type"] == "application/json"
        return json.loads(answer.body)["result"]

    task_id = send("tools/call", name="talks", arguments={})["taskId"]
    deployment.run_workers()
    assert send("tasks/get", taskId=task_id)["statusMessage"] == "half"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("header", ["B" * 32, "", "=?base64?QUFB?=", "=?base64?!?="])
def test_a_name_header_other_than_the_id_is_a_mismatch(
    deployment: TaskDeployment, method: str, header: str
) -> None:
    task_id = asked(deployment)
    before = deployment.get(task_id)
    response = deployment.send(body(deployment, method, task_id), mcp_name=header)
    assert (response.status, json.loads(response.body)["error"]["code"]) == (400, -32020)
    assert deployment.get(task_id) == before


@pytest.mark.parametrize("method", METHODS)
def test_a_method_header_other_than_the_method_is_a_mismatch(deployment: TaskDeployment, method: str) -> None:
    response = deployment.send(body(deployment, method, "A" * 32), mcp_method="tools/call")
    assert (response.status, json.loads(response.body)["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("method", METHODS)
def test_a_name_header_may_be_encoded_and_may_be_missing(deployment: TaskDeployment, method: str) -> None:
    task_id = asked(deployment)
    encoded = f"=?base64?{b64encode(task_id.encode()).decode()}?="
    for header in (encoded, f" {task_id} ", None):
        assert deployment.send(body(deployment, method, task_id), mcp_name=header).status == 200


@pytest.mark.parametrize(
    "method", ["tasks/result", "tasks/list", "tasks/input_response", "tasks/delete", "tasks/", "tasks"]
)
def test_other_methods_of_tasks_do_not_exist(deployment: TaskDeployment, method: str) -> None:
    response = deployment.send(deployment.body(method, taskId=asked(deployment)))
    assert (response.status, json.loads(response.body)["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize(
    "name",
    [
        "tasks/approve",
        "tasks/get",
        "notifications/tasks",
        "notifications/tasks/approve",
        TASKS_EXTENSION,
        "io.modelcontextprotocol/approval",
    ],
)
def test_reserved_names_are_not_accepted_as_keys(name: str) -> None:
    with pytest.raises(DefinitionError):
        NamespacedRequest("key", name, {})


def test_a_task_sends_only_requests_of_the_extension() -> None:
    other = Server("other", namespaced_requests=True)

    @other.tool(task="required")
    def approval(ctx: Context) -> None:
        ctx.run_as_task()
        ctx.request("approval", "com.example/approval", {})

    declared: Mapping[str, Any] = {"extensions": {TASKS_EXTENSION: {}, "com.example/approval": {}}}
    deployment = TaskDeployment(other, capabilities=declared)
    task_id = deployment.start("approval")
    deployment.run_workers()
    assert "inputRequests" not in deployment.get(task_id)["result"]
    assert isinstance(deployment.observer.failures[-1][1], UsageError)
