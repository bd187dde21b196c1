"""MCP Inspector's command line with template.yaml over HTTP: lists, calls, prompts and resources.

It answers requests for roots. Without a user it cannot fill in a form.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_roundtrip_tools.catalog.catalog import catalog_lists, load_function_servers
from support.client_requests import code_in
from support.documents import inspector_configuration
from support.examples import (
    HYDERABAD,
    PRICES,
    TOKYO_FORECAST,
)
from support.page_user import answer_page, link_in
from support.project import FUNCTIONS

if TYPE_CHECKING:
    from support.inspector import Inspect

pytest_plugins = ["support.inspector"]

SINDH = "Hyderabad, Sindh, Pakistan"
CATALOG = catalog_lists(load_function_servers(FUNCTIONS))


@pytest.fixture
def run(inspector_process, served):
    """Return a function that runs a command with the documented configuration."""
    return partial(inspector_process, inspector_configuration(served.url))


def call(run: Inspect, tool: str, arguments: Any) -> Any:
    return run("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))


LISTS = [
    ("tools/list", "tools", "tools", "name"),
    ("prompts/list", "prompts", "prompts", "name"),
    ("resources/list", "resources", "resources", "uri"),
    ("resources/templates/list", "templates", "resourceTemplates", "uriTemplate"),
]


def without_channels(definition: Any) -> Any:
    """Return a definition without the members that depend on how the client can be asked."""
    if "inputSchema" not in definition:
        return definition
    schema = dict(definition["inputSchema"])
    schema["properties"] = {
        key: each
        for key, each in schema["properties"].items()
        if key not in ("input_responses", "continuation_code")
    }
    return {**definition, "inputSchema": schema, "outputSchema": None}


@pytest.mark.parametrize(("method", "kind", "member", "key"), LISTS)
def test_all_features_of_the_functions_are_listed(run, method, kind, member, key):
    listed = run("--method", method)
    assert listed.status == 0
    definitions = {row["definition"][key]: without_channels(row["definition"]) for row in CATALOG[kind]}
    skills = {row["definition"]["uri"] for row in CATALOG["skills"]} if kind == "resources" else set()
    found = {each[key]: without_channels(each) for each in listed.result[member]}
    assert found.keys() == definitions.keys() | skills
    assert {**found, **definitions} == found


def test_the_inspector_uses_the_protocol_version_of_this_server(run):
    assert run("--method", "initialize").result["protocolVersion"] == "2026-07-28"


def test_the_schemas_of_tools_are_portable(run):
    assert run("--method", "tools/list", "--strict").status == 0


def test_the_answer_on_the_page_is_in_the_result_of_the_next_command(run):
    said, again = (call(run, "get_weather", HYDERABAD).result["content"][0]["text"] for _ in range(2))
    assert link_in(again) != link_in(said), "without the code, it is another call"
    answer_page(link_in(said), SINDH)
    answered = call(run, "get_weather", {**HYDERABAD, "continuation_code": code_in(said)})
    assert answered.result["structuredContent"]["place"] == SINDH


def test_a_prompt_is_returned(run):
    got = run(
        "--method", "prompts/get", "--prompt-name", "triage", "--prompt-args", "workItemId=4522"
    )  # fmt: skip
    [message] = got.result["messages"]
    assert message["content"]["text"].startswith("Triage Bug #4522")


@pytest.mark.parametrize("uri", [row["definition"]["uri"] for row in CATALOG["resources"]] + [TOKYO_FORECAST])
def test_a_resource_is_read(run, uri):
    [held] = run("--method", "resources/read", "--uri", uri).result["contents"]
    assert held["uri"] == uri
    assert json.loads(held["text"])


def test_a_missing_resource_is_an_error(run):
    missing = run("--method", "resources/read", "--uri", "weather://nowhere")
    assert missing.status != 0
    assert missing.result is None


def test_the_inspector_works_without_a_configured_protocol_version(inspector_process, served):
    """By default it opens with `initialize`."""
    configuration = inspector_configuration(served.url)
    del configuration["mcpServers"]["examples"]["protocolEra"]
    run = partial(inspector_process, configuration)
    assert run("--method", "initialize").result["protocolVersion"] == "2025-11-25"
    listed = run("--method", "tools/list").result["tools"]
    assert {tool["name"] for tool in listed} == {row["definition"]["name"] for row in CATALOG["tools"]}
    assert call(run, "get_weather", {"location": "Tokyo"}).status == 0
    assert run("--method", "resources/read", "--uri", PRICES).status == 0
    given = ("--prompt-name", "triage", "--prompt-args", "workItemId=4522")
    assert run("--method", "prompts/get", *given).status == 0


def test_it_verifies_the_digests_of_skills(run):
    [listed] = CATALOG["skills"]
    verified = run("--method", "skills/list", "--verify", "--require-digests")
    assert (verified.status, verified.result["outcome"]) == (0, "verified")
    assert {each["uri"]: each["status"] for each in verified.result["files"]} == {
        each["uri"]: "verified" for each in listed["definition"]["resources"]
    }


def test_it_reads_the_directory_of_a_skill(run):
    uri = "skill://weather-reports"
    read = run("--method", "resources/directory/read", "--uri", uri)
    assert [each["name"] for each in read.result["resources"]] == ["SKILL.md", "references"]
