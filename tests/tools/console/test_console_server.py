"""The API of the console of a running template: its requests, states and tasks."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip_tools.catalog.catalog import main as write_catalog
from mcp_roundtrip_tools.console.admission import ApiRequest
from mcp_roundtrip_tools.console.running_application import describe_application
from mcp_roundtrip_tools.console.tasks import task_keys
from mcp_roundtrip_tools.run.api_gateway.gateway import MAX_BODY
from mcp_roundtrip_tools.run.app import LocalApp
from support.client_requests import ASKABLE
from support.sam_applications import (
    FRONT_DOOR,
    SERVER_WITH_TASKS,
    Response,
    front_door_template,
    http,
    rpc,
    write_application,
)
from support.served_application import serve

SOURCES = {
    "server/app.py": """
        import os, pathlib, time
        from mcp_roundtrip import Context, Server

        server = Server("orders")
        GATE = pathlib.Path(os.environ["GATE"])

        def create(name: str) -> str:
            while not GATE.exists():
                time.sleep(0.02)
            return f"order of {name}"

        @server.tool(task="optional")
        def order(ctx: Context, name: str) -> str:
            if name.startswith("no "):
                raise ValueError(f"{name} cannot be ordered")
            size = ctx.elicit("size", f"Which size of {name}?", str)
            ctx.run_as_task(ttl_ms=600_000)
            made = ctx.step("create", create, name)
            ctx.elicit("keep", f"Keep {made}?", bool)
            return f"{made} {size}"

        handler, worker_handler = server.lambda_handler, server.worker_handler
        """,
}

CLIENT = {META_CLIENT_CAPABILITIES: ASKABLE}

WRITES = {"x-console": "1", "content-type": "application/json"}


def accept(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


def api_url(app: LocalApp, path: str) -> str:
    return f"{app.console_url}console/api/{path}"


@dataclass(frozen=True)
class Console:
    """The API of a running template, and an MCP client of the same template."""

    app: LocalApp
    gate: Path

    def api(self, path: str, body: Any = None) -> Response:
        data, method = (None, "GET") if body is None else (json.dumps(body).encode(), "POST")
        return http(api_url(self.app, path), method=method, body=data, headers=WRITES)

    def read(self, path: str, body: Any = None) -> Any:
        answer = self.api(path, body)
        assert answer.status == 200, answer.body
        return answer.json()

    def rpc(self, method: str, names: str, /, **params: Any) -> Response:
        return rpc(self.app.url("/"), method, meta=CLIENT, sent={"mcp-name": names}, **params)

    def call(self, item: str = "tea", **params: Any) -> Response:
        return self.rpc("tools/call", "order", name="order", arguments={"name": item}, **params)

    def start_task(self) -> str:
        state = self.call().json()["result"]["requestState"]
        answered = self.call(requestState=state, inputResponses={"size": accept("big")})
        return str(answered.json()["result"]["taskId"])

    def task(self, task_id: str, **expected: Any) -> Any:
        """Poll a task until it has these members."""
        for _ in range(200):
            self.rpc("tasks/get", task_id, taskId=task_id)
            found = self.read(f"tasks/{task_id}")
            if expected.items() <= found.items():
                return found
            time.sleep(0.05)
        raise AssertionError(found)


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    """Serve an application with a tool that asks, becomes a task, and waits for the file `gate` in it."""
    folder = tmp_path_factory.mktemp("console")
    template = write_application(folder, SERVER_WITH_TASKS, SOURCES)
    with serve(template, variables={"GATE": str(folder / "gate")}) as app:
        yield Console(app, folder / "gate")


def marks(rows):
    return [(row["key"], row["mark"]) for row in rows]


def test_the_function_behind_the_endpoint_owns_everything(console):
    found = console.read("application")
    assert (found["mcpUrl"], found["defaultOwner"]) == (console.app.url("/"), "Server")
    assert found["owners"] == {}
    assert {each["name"]: each["kind"] for each in found["functions"]} == {
        "Server": "tool",
        "Worker": "worker",
    }


OWNER = """
    from mcp_roundtrip import Context, Server
    server = Server("shop", scopes={"admin": ["read"]})

    @server.tool(scopes=["write"])
    def order(ctx: Context, name: str) -> str:
        return name if ctx.confirm("sure", "Order it?") else ""

    @server.tool
    def count() -> int:
        return 1

    @server.resource("docs://{page}")
    def page(page: str) -> str:
        return page

    handler = server.lambda_handler
    """


def test_the_catalog_of_a_front_door_has_the_owners_the_scopes_and_the_tools_that_ask(tmp_path):
    sources = {"functions/front_door/app.py": FRONT_DOOR, "functions/shop/app.py": OWNER}
    template = write_application(tmp_path, front_door_template(shop="Shop"), sources)
    with serve(template) as app:
        assert describe_application(app, ApiRequest({}, {}))["owners"] == {}
        assert write_catalog(["--functions", str(tmp_path / "functions")]) == 0
        found = describe_application(app, ApiRequest({}, {}))
    assert found["owners"] == dict.fromkeys(["order", "count", "docs://{page}"], "Shop")
    assert found["asking"] == ["order"]
    assert found["scopes"] == ["admin", "write"]


def test_a_request_is_shown_with_what_it_caused(console):
    answer = console.call()
    found = console.read(f"exchanges/{answer.headers['apigw-requestid']}")
    assert (found["method"], found["path"], found["status"]) == ("POST", "/", 200)
    assert found["requestBody"]["params"]["arguments"] == {"name": "tea"}
    assert found["responseBody"] == answer.json()
    (invocation,) = found["invocations"]
    assert (invocation["function"], invocation["trigger"]) == ("Server", "http")
    assert {call["service"] for call in invocation["serviceCalls"]} <= {"kms"}
    assert console.api("exchanges/unknown").status == 404


def test_a_traceback_shows_the_author_the_values_of_the_request(console):
    answer = console.call("no coffee")
    assert "coffee" not in json.dumps(answer.json()), "the client is not told"
    found = console.read(f"exchanges/{answer.headers['apigw-requestid']}")
    lines = found["invocations"][0]["logLines"]
    [shown] = [line for line in lines if "ValueError: no coffee cannot be ordered" in line["text"]]
    assert shown["level"] == "error"


def test_activity_has_the_requests_since_a_number(console):
    sequence = console.read("activity")["sequence"]
    assert console.read(f"activity?after={sequence}")["exchanges"] == []
    console.call()
    (line,) = console.read(f"activity?after={sequence}")["exchanges"]
    assert {
        "kind": "tools/call",
        "subject": "order",
        "client": "test-client",
        "details": ["round 1", "asked size"],
        "failure": None,
        "isFromConsole": False,
    }.items() <= line.items()


def test_a_request_of_the_console_is_marked_by_its_way_and_not_by_its_name(console):
    sequence = console.read("activity")["sequence"]
    named_alike = json.dumps({"params": {"clientInfo": {"name": "mcp-roundtrip-console"}}}).encode()
    http(console.app.url("/"), method="POST", body=named_alike, headers=WRITES)
    http(f"{console.app.console_url}x", method="POST", body=b"{}", headers=WRITES)
    lines = console.read(f"activity?after={sequence}")["exchanges"]
    assert [line["isFromConsole"] for line in lines] == [False, True]


def test_the_state_of_a_round_is_decoded(console):
    state = console.call().json()["result"]["requestState"]
    found = console.read("states", {"requestState": state})
    assert (found["bytes"], found["round"]) == (len(state), 1)
    assert marks(found["journal"]) == [("size", "asked")]
    middle = len(state) // 2
    damaged = state[:middle] + ("B" if state[middle] == "A" else "A") + state[middle + 1 :]
    refusal = console.api("states", {"requestState": damaged})
    assert (refusal.status, refusal.json()["reason"]) == (422, "decryption")
    for body in ({}, {"requestState": 1}, {"requestState": state, "before": 1}):
        assert console.api("states", body).status == 422


def test_a_message_of_a_queue_belongs_to_its_task():
    record = {"messageId": "m", "body": '{"task": "key", "queue": "url"}'}
    assert task_keys(json.dumps({"Records": [record]}).encode()) == ["key"]


def test_the_next_worker_replays_what_a_killed_one_has_recorded(console):
    console.gate.unlink(missing_ok=True)
    task_id = console.start_task()
    running = console.task(task_id, workState="leased")
    environment = running["environmentId"]
    assert console.api(f"tasks/{task_id}/expire-lease", {}).status == 409
    assert console.read(f"environments/{environment}/kill", {}) == {"killed": environment}
    console.task(task_id, environmentId=None)
    assert console.api(f"environments/{environment}/kill", {}).status == 404
    assert console.read(f"tasks/{task_id}/expire-lease", {}) == {"expired": True}
    console.gate.touch()  # the killed process has ended: a fork may outlive its client by milliseconds
    asking = console.task(task_id, status="input_required")
    lost, next_run = asking["runs"]
    assert "SIGKILL" in lost["error"]
    assert marks(lost["journal"]) == [("size", "replayed")]
    assert marks(next_run["journal"]) == [("size", "replayed"), ("create", "ran"), ("keep", "asked")]
    console.rpc("tasks/update", task_id, taskId=task_id, inputResponses={"keep": accept(True)})
    done = console.task(task_id, status="completed")
    last = done["runs"][-1]["journal"]
    assert marks(last) == [("size", "replayed"), ("create", "replayed"), ("keep", "answered")]
    assert done["result"]["content"][0]["text"] == "order of tea big"
    assert (done["tool"], done["arguments"]) == ("order", {"name": "tea"})
    assert task_id in [each["id"] for each in console.read("tasks")["tasks"]]
    assert console.api(f"tasks/{task_id}/expire-lease", {}).status == 409
    assert console.api("tasks/unknown").status == 404


def test_a_call_that_waits_for_its_user_on_a_page_is_no_task(console):
    before = console.read("tasks")
    call = {"name": "order", "arguments": {"name": "tea"}}
    asked = rpc(console.app.url("/"), "tools/call", sent={"mcp-name": "order"}, **call)
    assert asked.json()["result"]["_meta"]["mcp-roundtrip/parkedCall"]["status"] == "input_required"
    assert console.read("tasks") == before


def test_unknown_names_are_not_found_and_known_ones_may_be_percent_encoded(console):
    for path in ("tasks/..%2f..%2fetc", "exchanges/%2e%2e"):
        assert console.api(path).status == 404, path
    for name in ("Server-99", "%00"):
        assert console.api(f"environments/{name}/kill", {}).status == 404, name
    assert console.read("%61pplication") == console.read("application")


NO_STATES = (
    *("", ".", "....", "a.b.c", "a.b.c.d.e", "é" * 10, "\ud800", "\x00", "." * 1000, "A" * 300_000),
    *("e30..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA", "e30.e30." + "A" * 86),
)


def test_a_text_that_is_no_state_is_refused_with_a_reason(console):
    for text in NO_STATES:
        body = json.dumps({"requestState": text}).encode()
        answer = http(api_url(console.app, "states"), method="POST", body=body, headers=WRITES)
        assert (answer.status, answer.json().keys()) == (422, {"message", "reason"}), body[:99]
        assert answer.json()["message"], body[:99]


def test_a_large_event_of_make_invoke_is_refused_with_the_reason(console):
    url, body = api_url(console.app, "invocations"), bytes(MAX_BODY + 1)
    answer = http(url, method="POST", body=body, headers=WRITES)
    assert answer.status == 413
    assert answer.json()["message"]
