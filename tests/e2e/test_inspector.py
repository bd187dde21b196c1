"""MCP Inspector's command line with template.yaml over HTTP: what it checks, and its options.

tests/clients/test_real_clients.py has its calls.
"""

from functools import partial

import pytest

from support.documents import inspector_configuration
from support.examples import PRICES

pytest_plugins = ["support.inspector"]


@pytest.fixture
def run(inspector, served):
    return partial(inspector, inspector_configuration(served.url))


def test_the_inspector_uses_the_protocol_version_of_this_server(run):
    assert run("--method", "initialize").result["protocolVersion"] == "2026-07-28"


def test_the_schemas_of_tools_are_portable(run):
    assert run("--method", "tools/list", "--strict").status == 0


def test_the_inspector_works_without_a_configured_protocol_version(inspector, served):
    """By default it opens with `initialize`."""
    configuration = inspector_configuration(served.url)
    del configuration["mcpServers"]["examples"]["protocolEra"]
    run = partial(inspector, configuration)
    assert run("--method", "initialize").result["protocolVersion"] == "2025-11-25"
    assert run("--method", "resources/read", "--uri", PRICES).status == 0
    given = ("--prompt-name", "triage", "--prompt-args", "workItemId=4522")
    assert run("--method", "prompts/get", *given).status == 0


def test_it_verifies_the_digests_of_skills(run, catalog):
    [listed] = catalog["skills"]
    verified = run("--method", "skills/list", "--verify", "--require-digests")
    assert (verified.status, verified.result["outcome"]) == (0, "verified")
    assert {each["uri"]: each["status"] for each in verified.result["files"]} == {
        each["uri"]: "verified" for each in listed["definition"]["resources"]
    }


def test_it_reads_the_directory_of_a_skill(run):
    uri = "skill://weather-reports"
    read = run("--method", "resources/directory/read", "--uri", uri)
    assert [each["name"] for each in read.result["resources"]] == ["SKILL.md", "references"]
