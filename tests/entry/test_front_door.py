"""Requests that the front door serves itself. tests/functions covers `functions/front_door`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_roundtrip import Context, FrontDoor, Server
from mcp_roundtrip.entry.catalog import Catalog
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.http import HttpRequest
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, META_SERVER_INFO, TASKS_EXTENSION
from mcp_roundtrip.server.endpoint import Endpoint
from mcp_roundtrip.server.invocation import Forwarded, Invocation
from mcp_roundtrip.server.options import PAGE_SIZE, ServerOptions
from mcp_roundtrip.server.tools import ToolMethods
from mcp_roundtrip_local.catalog import catalog_lists
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import TaskTable
from support.messages import META, call, headers, message

TASKS = {**META, META_CLIENT_CAPABILITIES: {"extensions": {TASKS_EXTENSION: {}}}}
plain, lasting = Server("plain"), Server("lasting")


@plain.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


@lasting.tool(task="optional")
def last(ctx: Context) -> str:
    ctx.run_as_task()
    return "done"


def front_door(folder: Path, page_size: int = PAGE_SIZE, **servers: Server) -> FrontDoor:
    path = folder / "catalog.json"
    path.write_text(json.dumps(catalog_lists(servers)))
    return FrontDoor("one", path, page_size=page_size)


@pytest.fixture
def ports() -> Ports:
    clock = FakeClock()
    return replace(make_ports(clock=clock), tasks=TaskTable(clock).port)


def post(endpoint: Endpoint, body: Mapping[str, Any], ports: Ports) -> Any:
    request = HttpRequest("POST", headers(body), json.dumps(body))
    return json.loads(endpoint.respond(request, ports, Invocation("id", 1e18)).body)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["tools", "prompts", "scopes", "definition", "owner", "name", "x"]), inner
            )
        ),
    )
)
def test_a_file_other_than_a_catalog_is_a_value_error(content: Any) -> None:
    with suppress(ValueError):
        Catalog.read(json.dumps(content))


@pytest.mark.parametrize("text", ["[]", '{"tools": [{}]}', '{"tools": [{"definition": {"name": "a"}}]}', "{"])
def test_a_malformed_catalog_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|catalog"):
        Catalog.read(text)


def test_a_forwarded_call_parses_no_definition_but_that_of_its_tool(tmp_path: Path, ports: Ports) -> None:
    door = front_door(tmp_path, plain=plain, lasting=lasting)
    forwarding = replace(ports, forward=lambda *invocation: {"statusCode": 200, "headers": {}, "body": "{}"})
    request = HttpRequest("POST", headers(call("greet")), json.dumps(call("greet")))
    assert door.endpoint.respond(request, forwarding, Invocation("id", 1e18)).raw is not None
    parsed = [name for name, entry in door.catalog.tools.items() if "members" in vars(entry)]
    assert parsed == ["greet"]


def test_tasks_of_all_owners_are_served_by_the_front_door(tmp_path: Path, ports: Ports) -> None:
    door = front_door(tmp_path, plain=plain, lasting=lasting)
    created = post(lasting.endpoint, call("last", meta=TASKS), ports)["result"]
    asked = message("tasks/get", meta=TASKS, taskId=created["taskId"])
    found = post(door.endpoint, asked, ports)["result"]
    assert (found["taskId"], found["status"]) == (created["taskId"], "working")
    post(door.endpoint, message("tasks/cancel", meta=TASKS, taskId=created["taskId"]), ports)
    assert post(door.endpoint, asked, ports)["result"]["status"] == "cancelled"


def test_a_task_of_a_forwarded_call_completes_with_the_name_of_the_front_door() -> None:
    clock = FakeClock()
    table = TaskTable(clock)
    ports = replace(make_ports(clock=clock), tasks=table.port)
    forwarded = Forwarded(server_info={"name": "door", "version": "1"})
    body = call("last", meta=TASKS)
    lasting.endpoint.respond(
        HttpRequest("POST", headers(body), json.dumps(body)),
        ports,
        Invocation("id", 1e18, forwarded=forwarded),
    )
    [(_, pk)] = table.dispatcher.sent
    work(ToolMethods(ServerOptions(lasting.info), lasting.tools), {"task": pk}, None, lambda: ports)
    task = table.task(pk.partition("#")[2])
    assert task is not None
    assert task.result["_meta"][META_SERVER_INFO]["name"] == "door"


def test_the_extension_is_advertised_if_an_owner_has_tasks(tmp_path: Path, ports: Ports) -> None:
    discover = message("server/discover")
    with_tasks = post(front_door(tmp_path, plain=plain, lasting=lasting).endpoint, discover, ports)
    without = post(front_door(tmp_path, plain=plain).endpoint, discover, ports)
    assert with_tasks["result"]["capabilities"]["extensions"] == {TASKS_EXTENSION: {}}
    assert "extensions" not in without["result"]["capabilities"]


def test_task_methods_exist_only_if_an_owner_has_tasks(tmp_path: Path, ports: Ports) -> None:
    body = message("tasks/get", meta=TASKS, taskId="A" * 32)
    assert post(front_door(tmp_path, plain=plain).endpoint, body, ports)["error"]["code"] == -32601


def test_a_cached_list_is_sent_with_the_id_of_each_request(tmp_path: Path, ports: Ports) -> None:
    door = front_door(tmp_path, plain=plain, lasting=lasting)
    asked = [{**message("tools/list"), "id": request_id} for request_id in (1, 'a "quoted" one', 1)]
    answers = [post(door.endpoint, body, ports) for body in asked]
    assert [answer["id"] for answer in answers] == [body["id"] for body in asked]
    assert answers[0]["result"] == answers[1]["result"] == answers[2]["result"]
    assert [tool["name"] for tool in answers[0]["result"]["tools"]] == ["greet", "last"]


def test_pages_of_a_list_are_cached_separately_and_other_cursors_are_refused(
    tmp_path: Path, ports: Ports
) -> None:
    door = front_door(tmp_path, page_size=1, plain=plain, lasting=lasting)
    for _ in range(2):
        first = post(door.endpoint, message("tools/list"), ports)["result"]
        second = post(door.endpoint, message("tools/list", cursor=first["nextCursor"]), ports)["result"]
        assert [first["tools"][0]["name"], second["tools"][0]["name"]] == ["greet", "last"]
        assert "nextCursor" not in second
        cursors: tuple[Any, ...] = ("1.forged", 1, [first["nextCursor"]], {})
        for cursor in cursors:
            refused = post(door.endpoint, message("tools/list", cursor=cursor), ports)
            assert refused["error"]["code"] == -32602
