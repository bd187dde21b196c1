"""The audit records of requests, tasks and refusals."""

import json
from contextlib import suppress
from types import SimpleNamespace
from uuid import uuid4

import pytest

from mcp_roundtrip import Context, Server, ToolError
from mcp_roundtrip.auth.callers import AuthMode, EventAuthenticator
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import ForwardingFailed, ItemTooLarge, StoreError
from mcp_roundtrip.protocol.constants import META_CLIENT_INFO
from mcp_roundtrip.protocol.http import HttpRequest
from mcp_roundtrip.server.lambda_invocation import Invocation
from mcp_roundtrip.tasks.model import ENTRY
from mcp_roundtrip_testing import Player, crashes
from mcp_roundtrip_testing.player import WITH_TASKS
from mcp_roundtrip_testing.ports import make_ports
from support.audit_lines import AuditLines
from support.client_requests import TASKS
from support.deployment import Deployment, make_front_door
from support.faulty_store import FaultyStore, Operation
from support.lambda_context import LambdaContext
from support.messages import META, call, headers, http_event, message
from support.servers import server_of

server = Server("audited", scopes={"orders:write": ["orders:read"]})

SECRETS = {kind: f"{kind}-{uuid4().hex}" for kind in ("argument", "answer", "result", "bearer")}


@server.tool
def order(ctx: Context, card: str) -> str:
    """Order."""
    address = ctx.elicit("address", "Where to?", str)
    result = ctx.step("charge", lambda: SECRETS["result"])
    return f"{card} {address} {result}"


@server.tool
def plain(fails: str = "") -> str:
    if fails == "tool error":
        raise ToolError("not possible")
    if fails:
        raise RuntimeError("bug")
    return "done"


@server.tool(scopes=["orders:read"])
def protected() -> str:
    return "done"


@server.tool(task="required")
def lasting(ctx: Context) -> str:
    ctx.run_as_task()
    return ctx.elicit("address", "Where to?", str)


@server.tool(task="optional")
def charges(ctx: Context) -> None:
    ctx.step("charge", lambda: None)
    ctx.run_as_task()
    ctx.step("ship", lambda: None)


def asks_name(ctx: Context) -> str:
    return ctx.elicit("name", "Whose?", str, user_only=False)


@server.prompt
def greeting(name: str) -> str:
    return f"Greet {name}"


@server.resource("orders://{number}")
def stored_order(number: str) -> str:
    return number


@pytest.fixture
def log():
    return AuditLines()


def player(log, **options):
    return Player(server, ports={"audit": log.log}, **options)


def deployed(log, **facets):
    return Deployment(server, audit=log, **facets)


def brief(record, *names):
    return [record.get(name) for name in names]


def test_a_worker_that_cannot_store_its_record_runs_nothing_and_is_repeated(log):
    client = player(log, capabilities=WITH_TASKS)
    task_id = client.call("lasting").result["taskId"]
    log.fails = lambda phase: True
    with pytest.raises(ProtocolError):  # Lambda or the queue repeats the delivery
        client.task(task_id)
    assert [record["outcome"] for record in log.records()] == ["task"]
    log.fails = lambda phase: False
    client.clock.advance(600)
    assert set(client.task(task_id).asked) == {"address"}
    assert [record["outcome"] for record in log.records()] == ["task", "input_required"]


def test_caller_client_scopes_and_trace_are_in_the_record(log):
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    body = call("protected", meta={**META, "traceparent": f"00-{trace_id}-b7ad6b7169203331-01"})
    claims = {"iss": "https://id", "sub": "alice", "client_id": "app", "scope": "orders:write profile"}
    event = http_event(body, authorizer={"jwt": {"claims": claims}})
    deployed(log).invoke(event, LambdaContext(aws_request_id="invocation-7"))
    [record] = log.records()
    caller = {"kind": "jwt", "issuer": "https://id", "client_id": "app", "subject": "alice"}
    assert record["principal"] == caller
    assert record["client"].keys() == {"name", "version"}
    assert brief(record, "scopes_required", "scopes_used") == [["orders:read"], ["orders:write"]]
    assert brief(record, "stack", "function", "correlation_id", "xray_trace_id") == [
        *("shop", "orders", "invocation-7", "1-5f-2a")
    ]
    assert [line["trace_id"] for line in log.lines] == [trace_id, trace_id]


def test_what_is_no_name_of_a_tool_and_no_task_id_is_not_in_a_record(log):
    deployed(log).send(call(SECRETS["argument"]))
    deployed(log).cancel(SECRETS["argument"])
    tool, task = log.records()
    assert brief(tool, "outcome", "code", "feature") == ["refused", -32602, None]
    assert brief(task, "task", "outcome", "code") == [None, "error", -32602]
    assert SECRETS["argument"] not in json.dumps(log.lines)


def test_no_argument_answer_result_token_or_state_is_in_a_record(log):
    for options in (
        {"meta": {"com.example/token": SECRETS["bearer"]}},
        {"client": "cursor"},
        {"client": "chatgpt"},
    ):
        arguments = {"card": SECRETS["argument"]}
        player(log, **options).call("order", arguments, address=SECRETS["answer"])
    text = json.dumps(log.lines)
    assert len(log.records()) > 5
    assert [kind for kind, secret in SECRETS.items() if secret in text] == []
    assert "eyJ" not in text, "no state"
    assert "Where to" not in text, "no question"


@pytest.mark.parametrize("error", [ValueError("fault"), OSError("fault")])
def test_the_answer_leaves_whatever_prevents_the_last_line(log, error):
    def fail(phase: str) -> None:
        if phase == "ended":
            raise error

    log.on_write = fail
    client = player(log)
    answer = client.request("tools/call", name="plain", arguments={})
    assert answer["result"]["content"][0]["text"] == "done"
    assert [record["outcome"] for record in log.records()] == ["unknown"]
    assert "audit_failed" in [event for event, _ in client.observer.events]


ALICE = {"jwt": {"claims": {"iss": "https://id", "sub": "alice", "scope": "orders:read"}}}
JWT = EventAuthenticator(AuthMode.JWT)
FETCHES_KEYS = SimpleNamespace(authenticate=JWT.authenticate)

passes = []


@server.tool(task="required")
def counted(ctx: Context) -> str:
    passes.append("pass")
    ctx.run_as_task()
    ctx.step("charge", lambda: None)
    ctx.sleep("pause", 1_000)
    return "done"


DOOR = make_front_door({"orders": server})


def cannot_forward(*given):
    raise ForwardingFailed("timeout")


def send_through(log, body, path="/tools/orders", *, auth=JWT, authorizer=ALICE, deadline_ms=1e18):
    """Send a request of alice through a front door that cannot forward it."""
    request = HttpRequest("POST", headers(body), json.dumps(body), authorizer, path=path)
    ports = make_ports(forward=cannot_forward, audit=log.log, auth=auth)
    return DOOR.endpoint.respond(request, ports, Invocation("id", deadline_ms))


GREETING = message("prompts/get", name="greeting", arguments={"name": SECRETS["argument"]})
READ = message("resources/read", uri="orders://17")
NOT_FORWARDED = [
    *((path, call("protected"), ["tools/call", "protected", None]) for path in ("/mcp", "/tools/orders")),
    *((path, GREETING, ["prompts/get", "greeting", None]) for path in ("/mcp", "/tools/orders")),
    *((path, READ, ["resources/read", "orders://{number}", None]) for path in ("/mcp", "/tools/orders")),
    ("/tools/orders", message("tasks/cancel", taskId="A" * 32), ["tasks/cancel", None, "A" * 32]),
    ("/tools/orders", call(SECRETS["argument"]), ["tools/call", None, None]),
]


@pytest.mark.parametrize(("path", "body", "said"), NOT_FORWARDED)
def test_a_request_that_cannot_be_forwarded_has_a_record_of_the_front_door(log, path, body, said):
    send_through(log, body, path)
    assert log.phases == ["ended"]
    [record] = log.records()
    assert brief(record, "method", "feature", "task") == said
    assert brief(record, "outcome", "code", "reason") == ["error", -32603, "forwarding_failed"]
    assert record["principal"]["subject"] == "alice"
    assert record["client"]["name"] == META[META_CLIENT_INFO]["name"]
    assert SECRETS["argument"] not in str(record)


@pytest.mark.parametrize(
    ("auth", "authorizer", "subject"), [(JWT, ALICE, "alice"), (JWT, {}, None), (FETCHES_KEYS, ALICE, None)]
)
def test_an_unread_call_is_recorded_with_its_caller_if_known_in_time(log, auth, authorizer, subject):
    send_through(log, call("plain"), auth=auth, authorizer=authorizer, deadline_ms=0)
    [record] = log.records()
    assert brief(record, "feature", "reason") == ["plain", "forwarding_failed"]
    assert (record["principal"] or {}).get("subject") == subject


def test_a_fault_while_a_call_is_recorded_does_not_change_the_response(log, monkeypatch):
    expected = send_through(log, call("plain"))
    monkeypatch.setattr(EventAuthenticator, "authenticate", lambda *given: 1 / 0)
    response = send_through(log, call("plain"))
    assert (response.status, response.body) == (expected.status, expected.body)


def test_each_pass_has_one_record_with_every_worker_killed_in_turn():
    repetitions, unknown = 0, 0
    log = AuditLines()
    for client in crashes(lambda: player(log, capabilities=WITH_TASKS)):
        passes.clear()
        log.lines.clear()
        assert client.call("counted").task.wake().text == "done"
        records = [record for record in log.records() if record["method"] == "tools/call"]
        assert len(records) == len(passes)
        outcomes = [record["outcome"] for record in records]
        assert {"complete", "unknown"} & set(outcomes)  # a worker may be lost after it stored the result
        unknown += outcomes.count("unknown")
        repetitions += 1
    assert repetitions > 20
    assert unknown > 5


@pytest.mark.parametrize(("tool", "steps"), [("lasting", None), ("charges", ["charge"])])
def test_a_call_above_the_limit_of_tasks_has_one_record_with_the_reason_and_the_steps(log, tool, steps):
    client = deployed(log, max_open=1)
    client.start("lasting")
    log.lines.clear()
    client.post_call(tool)
    [record] = log.records()
    assert brief(record, "outcome", "status", "reason", "feature", "steps") == [
        *("refused", 429, "task_limit_reached", tool, steps)
    ]


def test_the_answers_that_a_model_passed_on_are_recorded_as_such(log):
    client = deployed(log, capabilities={}).by(server=server_of(asks_name, channels=["model"]))
    assert client.text("asks_name", input_responses={"name": "Ada"}) == "Ada"
    assert log.records()[-1]["answered"] == [{"key": "name", "action": "accept", "via": "model"}]


def test_a_pass_that_parks_its_task_has_asked_on_the_page(log):
    deployed(log, capabilities=TASKS).run_task("lasting")
    asked = {"key": "address", "method": "elicitation/create", "via": "page"}
    assert log.records()[-1]["asked"] == [asked]


@pytest.mark.parametrize(
    ("error", "end"),
    [(StoreError("io"), ["worker_failed", "io"]), (ItemTooLarge(5, 4), ["failed", None])],
)
def test_a_step_that_ran_is_in_the_record_also_if_its_result_could_not_be_stored(log, error, end):
    def fail(operation: Operation) -> None:
        raise error

    client = deployed(log)
    client.start("charges")
    with pytest.raises(StoreError):  # no pass begins
        client.by(store=FaultyStore(client.store)).work({"task": client.sent[0][1]})
    faulty = FaultyStore(client.store, lambda operation: f"{ENTRY}ship" in operation.keys[0][1], fail)
    with suppress(StoreError):  # the delivery is repeated
        client.by(store=faulty).run_workers()
    called, worked = log.records()
    assert (called["steps"], brief(worked, "steps", "outcome", "reason")) == (["charge"], [["ship"], *end])
