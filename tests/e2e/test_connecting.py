"""What the page about connecting shows, and what MCP Inspector's command line checks."""

import json
import re
import shlex
from functools import partial

import pytest

from support.documents import CONNECTING, LOCAL_URL, code_blocks, inspector_configuration, read_document
from support.examples import PRICES
from support.project import ROOT

pytest_plugins = ["support.inspector", "support.typescript_client"]

PAGE = read_document(CONNECTING)


@pytest.mark.parametrize(
    ("program", "output"),
    list(zip(code_blocks(CONNECTING, "python"), code_blocks(CONNECTING, "text"), strict=True)),
    ids=["the Python SDK", "FastMCP"],
)
def test_a_program_prints_the_documented_output(served, capfd, program, output):
    assert LOCAL_URL in program
    exec(program.replace(LOCAL_URL, served.url), {})
    assert capfd.readouterr().out == output


def test_the_typescript_program_prints_the_documented_output(served, run_module):
    [program], [output] = code_blocks(CONNECTING, "js"), code_blocks(CONNECTING, "console")
    assert LOCAL_URL in program
    assert run_module(program.replace(LOCAL_URL, served.url)) == output


def test_every_documented_configuration_is_json_with_the_url_of_the_examples():
    for shown in code_blocks(CONNECTING, "jsonc"):
        [servers] = json.loads(shown).values()
        assert servers["examples"]["url"] == LOCAL_URL


def test_the_documented_commands_of_the_inspector_work(served, inspector):
    [shown] = code_blocks(CONNECTING, "sh")
    for command in shown.splitlines():
        assert command.startswith("npx @modelcontextprotocol/inspector@")
        _, arguments = command.split("--server examples ")
        assert inspector(inspector_configuration(served.url), *shlex.split(arguments)).status == 0


def test_the_documented_version_of_the_inspector_is_the_tested_one():
    [pinned] = re.findall(r"@modelcontextprotocol/inspector@([\d.]+)", (ROOT / "Makefile").read_text("utf-8"))
    assert {*re.findall(r"inspector@([\d.]+)", PAGE)} == {pinned}


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
