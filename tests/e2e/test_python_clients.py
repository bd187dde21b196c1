"""The official Python client against template.yaml over HTTP: lists, prompts, resources, and a question.

Each request reaches new processes, so nothing of an earlier one is in memory. tests/artefact/test_deployed.py
calls every tool, and tests/clients/test_real_clients.py makes the calls of each client.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from support.clients import Person, official
from support.example_calls import CALLS
from support.examples import PRICES, TOKYO_FORECAST
from support.served_application import FRONT_DOOR, TEMPLATE, Served, serve

pytestmark = pytest.mark.anyio

FORECAST = "weather://forecast/{place}"


@pytest.fixture(scope="module")
def served():
    lines: list[str] = []
    with serve(TEMPLATE, fresh=True, parameters={"AuthMode": "none"}, log=lines.append) as app:
        yield Served(app.url(FRONT_DOOR), lines)


def skill_resource(row: Mapping[str, Any]) -> dict[str, Any]:
    frontmatter, uri = row["definition"]["frontmatter"], row["definition"]["uri"]
    about = {member: frontmatter[member] for member in ("name", "description")}
    return {**about, "uri": uri, "mimeType": "text/markdown"}


async def test_all_features_of_the_functions_are_listed(served, catalog):
    async with official(served.url, Person([])) as client:
        assert client.protocol_version == "2026-07-28"
        lists = await client.lists()
    for member, items in lists.items():
        listed = [each.model_dump(by_alias=True, exclude_none=True, mode="json") for each in items]
        skills = [skill_resource(row) for row in catalog["skills"]] if member == "resources" else []
        assert listed == [*(row["definition"] for row in catalog[member]), *skills]
        assert listed
    assert {tool.name for tool in lists["tools"]} >= CALLS.keys() | {"request_approval"}


async def test_a_prompt_asks_for_a_missing_argument(served):
    picked = "Bug #4301: Sign-in loops when the session cookie has expired"
    person = Person([{"value": picked}])
    async with official(served.url, person) as client:
        asked = await client.prompt("triage", {})
        assert len(person.asked) == 1
        assert await client.prompt("triage", {"workItemId": "4301"}) == asked
    assert asked.startswith(f"Triage {picked}")
    assert len(person.asked) == 1


async def test_every_resource_can_be_read(served, catalog):
    uris = [row["definition"]["uri"] for row in catalog["resources"]]
    async with official(served.url, Person([])) as client:
        read = {uri: json.loads(await client.read(uri)) for uri in [*uris, TOKYO_FORECAST]}
    assert read[PRICES]["prices"]["small"]["eu-west-1"] == 2628
    assert read[TOKYO_FORECAST]["place"] == "Tokyo, Japan"
    assert len(read[TOKYO_FORECAST]["days"]) == 7
    assert [row["definition"]["uriTemplate"] for row in catalog["templates"]] == [FORECAST]
