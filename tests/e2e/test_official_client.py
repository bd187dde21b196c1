"""The official Python client with template.yaml over HTTP, with a new process per request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import mcp_types as types
import pytest
from mcp.client import Client

from mcp_roundtrip.server.round import META_PARKED_CALL
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from mcp_roundtrip_tools.run import LocalApp
from support.clients import MODEL, SUMMARY, Person, block_of, official
from support.examples import DOCUMENT, HYDERABAD, RESOLVE
from support.page_user import link_in
from support.project import FUNCTIONS
from support.served_application import FRONT_DOOR, TEMPLATE, serve

WEATHER = "/tools/weather"
WORK_ITEMS = "/tools/work_items"
PROVISION = "/tools/provision"

FORWARDED = ("tools/call", "prompts/get", "resources/read", "completion/complete")

pytestmark = pytest.mark.anyio


@dataclass
class Served:
    """The application and its log lines."""

    app: LocalApp
    lines: list[str]

    def requests(self, method: str = "", path: str = "/") -> int:
        """Return the number of answered requests."""
        return sum(line.startswith(f"POST {path}") and f" {method}" in line for line in self.lines)


@pytest.fixture(scope="module")
def application() -> Iterator[Served]:
    lines: list[str] = []
    with serve(TEMPLATE, fresh=True, parameters={"AuthMode": "none"}, log=lines.append) as app:
        yield Served(app, lines)


@pytest.fixture(autouse=True)
def new_process_per_request(served: Served) -> Iterator[None]:
    before = served.app.processes_started
    yield
    # A forwarded request uses a second function, and a second process. Everything below /tools/ is forwarded.
    forwarded = sum(served.requests(method, FRONT_DOOR) for method in FORWARDED) + served.requests(
        path="/tools/"
    )
    invocations = served.requests() + forwarded
    assert served.app.processes_started - before == invocations > 0


async def test_discovery_and_the_list_come_from_the_front_door(served: Served) -> None:
    async with Client(served.app.url(FRONT_DOOR)) as client:
        tools = (await client.list_tools()).tools
        assert client.protocol_version == "2026-07-28"
        assert client.server_info is not None
        assert client.server_info.name == "mcp-roundtrip-examples"
    assert {tool.name for tool in tools} == {
        name for s in load_function_servers(FUNCTIONS).values() for name in s.tools
    }
    assert all(tool.description for tool in tools)


@pytest.mark.parametrize("path", [FRONT_DOOR, WEATHER])
async def test_weather_asks_which_place_is_meant(served: Served, path: str) -> None:
    person = Person([{"value": "Hyderabad, Sindh, Pakistan"}])
    async with official(served.app.url(path), person) as client:
        content = await client.call("get_weather", HYDERABAD)
    assert content["place"] == "Hyderabad, Sindh, Pakistan"
    assert len(person.asked) == 1
    assert served.requests("tools/call", path) == 2


async def test_weather_asks_nothing_for_an_unambiguous_place(served: Served) -> None:
    async with official(served.app.url(WEATHER), Person([])) as client:
        content = await client.call("get_weather", {"location": "Tokyo"})
    assert content["place"] == "Tokyo, Japan"
    assert served.requests("tools/call") == 1


async def test_work_items_asks_two_questions_over_three_requests(served: Served) -> None:
    person = Person([{"resolution": "Duplicate"}, {"duplicateOfId": 4301}])
    async with official(served.app.url(FRONT_DOOR), person) as client:
        content = await client.call("update_work_item", RESOLVE)
    assert content["text"] == (
        "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created."
    )
    assert len(person.asked) == 2
    assert served.requests("tools/call") == 3


async def test_summarize_uses_the_clients_model_and_roots_in_one_round(served: Served) -> None:
    async with official(served.app.url(FRONT_DOOR), Person([])) as client:
        content = await client.call("summarize", DOCUMENT)
    assert content == {"summary": SUMMARY, "model": MODEL, "project": "engine"}
    assert served.requests("tools/call") == 2


async def test_summarize_works_with_a_client_that_cannot_be_asked(served: Served) -> None:
    async with Client(served.app.url(FRONT_DOOR)) as client:
        result = await client.call_tool("summarize", DOCUMENT)
    assert result.structured_content is not None
    assert result.structured_content["model"] == "sumbasic"
    assert served.requests("tools/call") == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_the_model_gets_an_error_when_the_user_declines(served: Served, action: Any) -> None:
    async def refuse(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action=action)

    async with Client(served.app.url(WEATHER), elicitation_callback=refuse) as client:
        result = await client.call_tool("get_weather", HYDERABAD)
    assert result.is_error
    assert "place" in block_of(result.content)
    assert served.requests("tools/call") == 2


@pytest.mark.parametrize("path", [FRONT_DOOR, PROVISION])
async def test_a_client_that_cannot_be_asked_gets_a_link_and_the_arguments_that_continue_the_call(
    served: Served, path: str
) -> None:
    arguments = {"name": "orders"}
    async with Client(served.app.url(path)) as client:
        asked = await client.call_tool("provision_database", arguments)
        added = (asked.meta or {})[META_PARKED_CALL]["arguments"]
        again = await client.call_tool("provision_database", arguments | added)
    texts = [each.content[0] for each in (asked, again)]
    assert all(isinstance(each, types.TextContent) for each in texts)
    first, second = (link_in(str(each)) for each in texts)
    assert first == second


@pytest.mark.parametrize("path", [FRONT_DOOR, WORK_ITEMS])
async def test_a_prompt_asks_and_resumes_in_another_process(served: Served, path: str) -> None:
    picked = "Bug #4301: Sign-in loops when the session cookie has expired"
    person = Person([{"value": picked}])
    async with official(served.app.url(path), person) as client:
        assert picked in await client.prompt("triage", {})
    assert len(person.asked) == 1
    assert served.requests("prompts/get", path) == 2


@pytest.mark.parametrize("path", [FRONT_DOOR, WEATHER])
async def test_resources_are_read_and_their_variables_completed(served: Served, path: str) -> None:
    async with official(served.app.url(path), Person([])) as client:
        [template] = (await client.client.list_resource_templates()).resource_templates
        ref = types.ResourceTemplateReference(type="ref/resource", uri=template.uri_template)
        place, _ = await client.complete(ref, "place", "Hyd")
        uri = f"weather://forecast/{quote(place, safe='')}"
        [read] = (await client.client.read_resource(uri)).contents
    assert isinstance(read, types.TextResourceContents)
    assert (read.uri, json.loads(read.text)["place"]) == (uri, "Hyderabad, Telangana, India")
