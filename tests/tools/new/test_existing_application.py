import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_roundtrip_tools.growth.new_tool_and_function import plan_function, plan_tool
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.new.command import render
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.template.model import TemplateError, describe_left_out
from mcp_roundtrip_tools.template.reader import Template
from support import skips
from support.clients import Person, official
from support.documents import code_blocks, read_document
from support.interpreters import run
from support.lambda_runtime import interpreter
from support.project import edit
from support.sam_applications import http, write_application
from support.served_application import serve

PAGE = "docs/guides/existing-application.md"
[LAYER_OF_ANOTHER_STACK] = code_blocks(PAGE, "yaml")
NEW = {str(path): text for path, text in render("orders", "python3.13", "x86_64").items()}

EXISTING = """\
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Resources:
  Thumbnails:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: thumbnails/
      Handler: index.handler
      Runtime: nodejs22.x
      Events: {E: {Type: HttpApi, Properties: {Path: /thumbnails, Method: GET}}}
  Hello:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: hello/
      Handler: app.handler
      Runtime: python3.13
      Architectures:
      - x86_64
      Environment: {Variables: {API_KEY: '{{resolve:ssm:/key}}'}}
      Events: {E: {Type: HttpApi, Properties: {Path: /hello, Method: GET}}}
  Report:
    Type: AWS::Serverless::Function
    Properties: {PackageType: Image}
"""
LOCAL_RUN = "Metadata: {LocalRun: {Variables: {API_KEY: a key for tests}}}\n"
HELLO = "import os\ndef handler(event, context):\n    return os.environ['API_KEY']\n"

pytestmark = pytest.mark.anyio


def sections(text: str) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for section in re.finditer(r"^(\w+):\n((?: .*\n|\n)*)", text, re.MULTILINE):
        members = re.finditer(r"^  (\w+):.*\n(?:    .*\n|\n)*", section[2], re.MULTILINE)
        found[section[1]] = {member[1]: member[0] for member in members}
    return found


def copied() -> Mapping[str, str]:
    """Return the sections that steps 3 and 4 of the page copy from the new application's template."""
    [step] = re.findall(r"^3\. (.*?)from its `template.yaml`", read_document(PAGE), re.MULTILINE | re.DOTALL)
    names = re.findall(r"`(\w+)`", step)
    new = sections(NEW["template.yaml"])
    parts = {
        section: {name: text for name, text in members.items() if name in names}
        for section, members in new.items()
    }
    assert sorted(name for members in parts.values() for name in members) == sorted(names)
    shared = new["Globals"]["Function"].partition("\n")[2]
    parts["Resources"]["ServerFunction"] += re.sub("^(?=.)", "  ", shared, flags=re.MULTILINE)
    return {section: "".join(members.values()) for section, members in parts.items() if members}


def follow(folder: Path, existing: str = EXISTING) -> Path:
    """Write the existing application with the changes of the page; return its template."""
    parts = dict(copied())
    before, after = existing.split("Resources:\n")
    head = "".join(f"{section}:\n{text}" for section, text in parts.items() if section != "Resources")
    template = f"{before}{head}Resources:\n{after}{parts['Resources']}{LOCAL_RUN}"
    [step] = re.findall(r"^2\. Copy its folders (.*?) into", read_document(PAGE), re.MULTILINE)
    folders = tuple(re.findall(r"`(\w+/)`", step))
    sources = {"hello/app.py": HELLO} | {name: text for name, text in NEW.items() if name.startswith(folders)}
    path = write_application(folder, "", sources)
    path.write_text(template)
    return path


async def answers_a_question(app: LocalApp) -> None:
    async with official(app.url("/mcp"), person := Person([{"value": "A-1002"}])) as client:
        assert await client.call("order_status", {}) == {"text": "A-1002 is being packed."}
    assert person.asked == ["Which order?"]


async def test_the_server_is_served_beside_the_functions_that_run(tmp_path):
    with serve(follow(tmp_path), parameters={"AuthMode": "none"}, log=None) as app:
        await answers_a_question(app)
        assert http(app.url("/hello")).body == b"a key for tests"
        assert http(app.url("/thumbnails")).status == 501
        left_out = describe_left_out(app.current())
        assert [line.partition(": ")[0] for line in left_out] == ["Thumbnails.Runtime", "Report.PackageType"]
    shown = code_blocks(PAGE, "text")[0].splitlines()
    assert shown[1].strip() == left_out[0]


async def test_the_server_gets_tools_with_tasks(tmp_path):
    path = follow(tmp_path)
    write(plan_tool(tmp_path, "count_text", tasks=True))
    with serve(path, parameters={"AuthMode": "none"}, log=None) as app:
        await answers_a_question(app)
        assert http(app.url("/hello")).body == b"a key for tests"
        async with official(app.url("/mcp"), Person([{"value": "words"}])) as client:
            assert await client.call("count_text", {"text": "stop and ask"}) == {"length": 3, "unit": "words"}


def test_a_function_of_its_own_needs_globals(tmp_path):
    follow(tmp_path)
    with pytest.raises(TemplateError, match="MCP_SETTINGS in Globals"):
        plan_function(tmp_path, "translate")


async def test_the_layer_of_another_stack_is_no_obstacle(tmp_path):
    path = follow(tmp_path)
    text, count = re.subn(r"^  RoundtripLayer:.*\n(?:    .*\n)+", "", path.read_text(), flags=re.MULTILINE)
    assert count == 1
    path.write_text(re.sub("^Parameters:\n", LAYER_OF_ANOTHER_STACK, text, flags=re.MULTILINE))
    arn = "arn:aws:lambda:eu-west-1:123456789012:layer:RoundtripLayer0a1b:7"
    for given in ({}, {"RoundtripLayer": arn}):
        with serve(path, parameters={"AuthMode": "none", **given}, log=None) as app:
            await answers_a_question(app)
            assert "can import" in describe_left_out(app.current())[-1]


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = "make --dry-run --file layer/Makefile build-RoundtripLayer ARTIFACTS_DIR=/nowhere"
    return run(*command.split(), cwd=folder)


RUNTIMES = "CompatibleRuntimes: [python3.13]"
MACHINES = "CompatibleArchitectures: [x86_64]"
RUNTIME_ERROR = "`CompatibleRuntimes: [python3.12]` or a later one"
MACHINE_ERROR = "`CompatibleArchitectures: [arm64]` or x86_64"
TARGETS = {
    "": ("3.13", "x86_64"),
    "CompatibleRuntimes: [ python3.12 ]  # not python3.13": ("3.12", "x86_64"),
    "CompatibleRuntimes:\n        - python3.12": ("3.12", "x86_64"),
    "CompatibleArchitectures: [arm64]": ("3.13", "aarch64"),
    "CompatibleArchitectures:\n      - 'arm64'\n      - x86_64": ("3.13", "aarch64"),
}
"""Lines of the layer -> the target of its build."""

NO_TARGETS = {
    "CompatibleRuntimes: [python3.11]": RUNTIME_ERROR,
    "CompatibleRuntimes: [!Ref Chosen]": RUNTIME_ERROR,
    "CompatibleArchitectures: [!Ref Chosen]": MACHINE_ERROR,
    "CompatibleArchitectures:\n      - !Ref Chosen": MACHINE_ERROR,
}
"""Lines of the layer -> why it has no target: there are no wheels for it, or it must be looked up."""


def with_target(folder: Path, written: str) -> Path:
    """Follow the page, and write a line of RoundtripLayer differently; return the template."""
    path = follow(folder)
    for line in (RUNTIMES, MACHINES):
        if line.partition(":")[0] == written.partition(":")[0]:
            edit(path, line, written)
    return path


@pytest.mark.parametrize(("written", "target"), TARGETS.items())
def test_the_layer_is_built_for_its_own_target(written, target, tmp_path):
    path = with_target(tmp_path, written)
    others = EXISTING.partition("Resources:")[2]
    edit(path, others, others.replace("python3.13", "python3.10"))
    version, machine = target
    if interpreter(f"python{version}") is None:
        skips.skip(skips.RUNTIME, f"python{version}")
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"--python-version {version} " in done.stdout
    assert set(re.findall(r"--platform manylinux\w*?_(x86_64|aarch64)\b", done.stdout)) == {machine}


@pytest.mark.parametrize(("written", "reason"), NO_TARGETS.items())
def test_a_target_without_wheels_or_that_is_not_written_out_stops_the_build(written, reason, tmp_path):
    with_target(tmp_path, written)
    done = build(tmp_path)
    assert done.returncode != 0
    assert reason in done.stderr


def test_other_functions_may_have_another_target_in_globals(tmp_path):
    path = follow(tmp_path)
    others = "Globals: {Function: {Runtime: python3.10, Architectures: [arm64]}}\nResources:\n"
    edit(path, "Resources:\n", others)
    assert Template(path, {"AuthMode": "none"}).application().functions


@pytest.mark.parametrize(
    ("written", "member"),
    [("CompatibleRuntimes: [python3.12]", "Runtime"), ("CompatibleArchitectures: [arm64]", "Architectures")],
)
def test_a_server_with_another_target_than_its_layer_is_refused(written, member, tmp_path):
    path = with_target(tmp_path, written)
    with pytest.raises(TemplateError, match=f"ServerFunction.{member}: .*RoundtripLayer"):
        Template(path, {"AuthMode": "none"}).application()
