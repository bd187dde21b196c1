import json
import re
import shlex

import pytest

from support.documents import CONNECTING, LOCAL_URL, code_blocks, inspector_configuration, read_document
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
