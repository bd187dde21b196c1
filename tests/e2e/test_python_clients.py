"""The Python clients against template.yaml over HTTP: every tool, prompt and resource of the examples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from mcp_roundtrip_tools.catalog.catalog import catalog_lists, load_function_servers
from support.clients import Connect, Person, fast_mcp, official
from support.example_calls import CALLS
from support.examples import (
    EXPENSE,
    PRICES,
    TOKYO_FORECAST,
)
from support.mailbox import Mailbox, decide
from support.project import FUNCTIONS
from support.served_application import Served, serve_for_alice

pytestmark = pytest.mark.anyio

CATALOG = catalog_lists(load_function_servers(FUNCTIONS))
FORECAST = "weather://forecast/{place}"


@pytest.fixture(params=[official, fast_mcp], ids=["the official SDK", "FastMCP"])
def connect(request: pytest.FixtureRequest) -> Connect:
    client: Connect = request.param
    return client


def skill_resource(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Resource object of a skill's SKILL.md."""
    frontmatter, uri = row["definition"]["frontmatter"], row["definition"]["uri"]
    about = {member: frontmatter[member] for member in ("name", "description")}
    return {**about, "uri": uri, "mimeType": "text/markdown"}


async def test_all_features_of_the_functions_are_listed(served: Served, connect: Connect) -> None:
    async with connect(served.url, Person([])) as client:
        assert client.protocol_version == "2026-07-28"
        lists = await client.lists()
    for member, items in lists.items():
        listed = [each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in items]
        skills = [skill_resource(row) for row in CATALOG["skills"]] if member == "resources" else []
        assert listed == [*(row["definition"] for row in CATALOG[member]), *skills]
        assert listed
    assert {tool.name for tool in lists["tools"]} >= CALLS.keys() | {"request_approval"}


@pytest.mark.parametrize("tool", CALLS)
async def test_a_tool_is_called_and_its_questions_answered(
    served: Served, connect: Connect, tool: str
) -> None:
    call = CALLS[tool]
    person = Person(list(call.answers))
    async with connect(served.url, person) as client:
        content = await client.call(tool, call.arguments)
    assert call.expected.items() <= content.items()
    assert person.answers == []


async def test_a_client_that_follows_tasks_gets_the_database_from_one(served: Served) -> None:
    call = CALLS["provision_database"]
    async with fast_mcp(served.url, Person(list(call.answers))) as client:
        content = await client.call("provision_database", call.arguments)
    assert content["host"].startswith(content["id"])
    assert (served.requests("tools/call"), served.requests("tasks/update")) == (3, 1)
    assert served.requests("tasks/get") >= 2


@pytest.fixture(scope="module")
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture(scope="module")
def served_for_alice(mailbox: Mailbox) -> Iterator[Served]:
    with serve_for_alice(mailbox) as served:
        yield served


@pytest.mark.parametrize("approved", [True, False])
async def test_an_expense_is_approved_on_the_page(
    served_for_alice: Served, mailbox: Mailbox, connect: Connect, approved: bool
) -> None:
    def open_page(url: str) -> None:
        assert mailbox.link().startswith(url)
        decide(mailbox.link(), approved=approved)

    async with connect(served_for_alice.url, Person([open_page])) as client:
        decision = await client.call("request_approval", EXPENSE)
    assert decision["approved"] is approved


async def test_a_prompt_asks_for_a_missing_argument(served: Served, connect: Connect) -> None:
    picked = "Bug #4301: Sign-in loops when the session cookie has expired"
    person = Person([{"value": picked}])
    async with connect(served.url, person) as client:
        asked = await client.prompt("triage", {})
        assert len(person.asked) == 1
        assert await client.prompt("triage", {"workItemId": "4301"}) == asked
    assert asked.startswith(f"Triage {picked}")
    assert len(person.asked) == 1


async def test_every_resource_can_be_read(served: Served, connect: Connect) -> None:
    uris = [row["definition"]["uri"] for row in CATALOG["resources"]]
    async with connect(served.url, Person([])) as client:
        read = {uri: json.loads(await client.read(uri)) for uri in [*uris, TOKYO_FORECAST]}
    assert read[PRICES]["prices"]["small"]["eu-west-1"] == 2628
    assert read[TOKYO_FORECAST]["place"] == "Tokyo, Japan"
    assert len(read[TOKYO_FORECAST]["days"]) == 7
    assert [row["definition"]["uriTemplate"] for row in CATALOG["templates"]] == [FORECAST]


@pytest.mark.parametrize("uri", ["weather://nowhere", "weather://forecast/Atlantis"])
async def test_an_error_names_a_missing_feature(served: Served, connect: Connect, uri: str) -> None:
    async with connect(served.url, Person([])) as client:
        with pytest.raises(MCPError) as refused:
            await client.read(uri)
    assert (refused.value.code, refused.value.data) == (-32602, {"uri": uri})


async def test_the_official_client_caches_cacheable_results(served: Served) -> None:
    async with official(served.url, Person([])) as client:
        assert await client.read(PRICES) == await client.read(PRICES)
    assert served.requests("resources/read") == 1


async def test_arguments_and_variables_are_completed(served: Served, connect: Connect) -> None:
    prompt = PromptReference(type="ref/prompt", name="triage")
    template = ResourceTemplateReference(type="ref/resource", uri=FORECAST)
    async with connect(served.url, Person([])) as client:
        assert await client.complete(prompt, "workItemId", "44") == ["4410", "4476"]
        offered = ["Hyderabad, Telangana, India", "Hyderabad, Sindh, Pakistan"]
        assert await client.complete(template, "place", "hyd") == offered
