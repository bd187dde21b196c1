"""The resources of new functions, workers and the front door in template.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.growth.entries import (
    TemplateText,
    add_front_door,
    add_function,
    add_worker,
    find_conflict,
    logical_id_prefix,
)
from mcp_roundtrip_tools.growth.functions import ToolFunction
from mcp_roundtrip_tools.new.__main__ import render
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import parse
from support.project import ROOT, TOOL

TEXT = (ROOT / "template.yaml").read_text("utf-8")
DOCUMENT = parse(TEXT)
NEW = render("orders", "python3.13", "arm64")[Path("template.yaml")]
SERVER = ToolFunction("ServerFunction", "server", Path("functions/server/app.py"))

MAX_LINES = {False: 30, True: 85}
"""How long the entry of a function may be, by whether it has tasks."""


def with_function(text: str, name: str, *, tasks: bool = False, with_makefile: bool = True) -> str:
    template = TemplateText(text)
    add_function(template, name, with_makefile=with_makefile)
    if tasks:
        add_worker(template, ToolFunction(f"{logical_id_prefix(name)}Function", name, Path()))
    return template.text


def resources(text: str, name: str = "") -> dict[str, Any]:
    """Return the resources of a function, by the rest of their logical ids."""
    prefix = logical_id_prefix(name) if name else ""
    found: dict[str, Any] = parse(text)["Resources"]
    return {each.removeprefix(prefix): found[each] for each in found if each.startswith(prefix)}


# -- a function -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [False, True])
def test_a_short_entry_is_added_at_the_end_of_the_resources(tasks: bool) -> None:
    after = with_function(TEXT, TOOL, tasks=tasks)
    assert len(after.splitlines()) - len(TEXT.splitlines()) <= MAX_LINES[tasks]
    assert max(map(len, after.splitlines())) <= 110
    entry = after.removeprefix(TEXT[: TEXT.index("\n\nOutputs:") + 1])
    assert entry.endswith(TEXT[TEXT.index("\nOutputs:") :])
    assert after.replace(entry.removesuffix(TEXT[TEXT.index("\nOutputs:") :]), "", 1) == TEXT


def test_a_function_has_the_resources_of_an_example() -> None:
    own, example = resources(with_function(TEXT, TOOL), TOOL), resources(TEXT, "weather")
    assert own.keys() == example.keys() == {"Function", "Role"}
    assert own["Role"] == example["Role"]
    properties = example["Function"]["Properties"].keys() - {"Environment"}  # the example's own variables
    assert own["Function"]["Properties"].keys() == properties
    assert own["Function"]["Metadata"] == example["Function"]["Metadata"]


def test_a_function_with_tasks_has_the_resources_of_the_example() -> None:
    own, example = resources(with_function(TEXT, TOOL, tasks=True), TOOL), resources(TEXT, "provision")
    assert own.keys() == example.keys()
    assert own["Role"] == example["Role"]
    for suffix, resource in own.items():
        model = example[suffix]
        assert {**resource, "Properties": 0} == {**model, "Properties": 0}
        assert resource["Properties"].keys() == model["Properties"].keys()


def test_an_application_without_a_makefile_of_functions_leaves_them_to_sam() -> None:
    text = with_function(NEW, "translate", with_makefile=False)
    assert "Metadata" not in resources(text, "translate")["Function"]


def test_a_role_has_the_path_and_the_boundary_of_the_others() -> None:
    rules = (
        "      Path: /tools/\n      PermissionsBoundary: !Sub arn:aws:iam::${AWS::AccountId}:policy/limits\n"
    )
    role = "  ServerRole:\n    Type: AWS::IAM::Role\n    Properties:\n"
    template = TemplateText(NEW.replace(role, role + rules))
    add_function(template, "translate", with_makefile=False)
    add_front_door(template, "ServerFunction", with_makefile=False)
    for role in ("Translate", "FrontDoor"):
        properties = resources(template.text)[f"{role}Role"]["Properties"]
        assert properties["Path"] == "/tools/"
        assert "PermissionsBoundary" in properties


def test_a_template_without_a_platform_is_refused() -> None:
    with pytest.raises(TemplateError, match="Platform"):
        with_function("Resources:\n  A: {}\n", TOOL)


# -- a worker -------------------------------------------------------------------------------------------


def test_a_worker_has_the_variables_and_properties_of_its_function() -> None:
    text = NEW.replace(
        "      CodeUri: functions/server/\n",
        "      CodeUri: functions/server/\n      MemorySize: 2048\n      Timeout: 10\n      Environment:\n"
        "        Variables:\n          ORDERS_URL: !Sub https://${AWS::StackName}.example\n",
    )
    template = TemplateText(text)
    add_worker(template, SERVER)
    own = resources(template.text, "server")
    worker = own["WorkerFunction"]["Properties"]
    assert worker["MemorySize"] == 2048
    assert worker["Timeout"] == 900
    assert worker["Handler"] == "app.worker"
    orders = {"Fn::Sub": "https://${AWS::StackName}.example"}
    assert worker["Environment"]["Variables"].keys() == {"ORDERS_URL", "MCP_TASK_QUEUE"}
    assert worker["Environment"]["Variables"]["ORDERS_URL"] == orders
    variables = own["Function"]["Properties"]["Environment"]["Variables"]
    assert variables.keys() == {"ORDERS_URL", "MCP_TASK_QUEUE", "MCP_TASK_WORKER"}
    policies = [each["Fn::GetAtt"][1] for each in own["Role"]["Properties"]["ManagedPolicyArns"]]
    assert policies[-1] == "Outputs.TaskPolicy"
    assert len({*policies}) == len(policies) == 4


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("FunctionName: !Sub ${AWS::StackName}_server", "FunctionName: server", "FunctionName"),
        ("Role: !GetAtt ServerRole.Arn", "Role: arn:aws:iam::1:role/x", "Role"),
        ("Outputs:\n", "  ServerTasks: {Type: T}\nOutputs:\n", "ServerTasks"),
    ],
)
def test_a_function_that_cannot_have_a_worker_is_refused(before: str, after: str, message: str) -> None:
    assert NEW.count(before) == 1
    with pytest.raises(TemplateError, match=message):
        add_worker(TemplateText(NEW.replace(before, after)), SERVER)


# -- the front door -------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_makefile", [False, True])
def test_the_front_door_is_that_of_this_application_and_answers_at_the_endpoint(with_makefile: bool) -> None:
    template = TemplateText(NEW)
    add_front_door(template, "ServerFunction", with_makefile=with_makefile)
    assert resources(template.text)["Endpoint"] == resources(TEXT)["Endpoint"]
    removed = [line for line in NEW.splitlines() if line not in template.text.splitlines()]
    assert removed == ["        Function: !Ref ServerFunction.Alias"]
    if with_makefile:
        assert resources(template.text, "front_door") == resources(TEXT, "front_door")


def test_an_endpoint_that_does_not_exist_is_named() -> None:
    with pytest.raises(TemplateError, match=r"Endpoint\.Properties\.Parameters\.Function"):
        add_front_door(
            TemplateText(NEW.replace("  Endpoint:", "  Routes:")), "ServerFunction", with_makefile=False
        )


# -- names ----------------------------------------------------------------------------------------------


def test_a_name_whose_resources_exist_is_refused_in_each_spelling() -> None:
    for name in ("weather", "provision", "front_door"):
        assert find_conflict(DOCUMENT, name) == f"{logical_id_prefix(name)}Function"
    document = parse(with_function(TEXT, f"{TOOL}_2"))
    assert find_conflict(document, f"{TOOL}2") == f"{logical_id_prefix(TOOL)}2Function"


@pytest.mark.parametrize("name", [TOOL.partition("_")[0], f"{TOOL}_2", "api", "task", "live"])
def test_other_names_are_accepted(name: str) -> None:
    assert find_conflict(parse(with_function(TEXT, TOOL, tasks=True)), name) is None
