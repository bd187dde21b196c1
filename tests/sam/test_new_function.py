"""sam and CloudFormation with functions that `make new-function` added, and a tool of `make new-tool`."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.growth.change import write
from mcp_roundtrip_tools.growth.entries import logical_id_prefix
from mcp_roundtrip_tools.growth.new_function import plan_function
from mcp_roundtrip_tools.growth.new_tool import plan_tool
from support.cloudformation import evaluate_stack
from support.project import ROOT, TASK_TOOL, TOOL, copy_project
from support.sam_build import SAM, run
from support.transformed_template import load_template, settings, transformed_file

CHECKS = ("sam/test_template.py", "sam/test_edge.py", "tools/catalog/test_catalog.py")
"""Tests of a project that compare its tools. Each other test is of the package, lints, or takes long.

sam/test_least_privilege.py takes half a minute; it records the calls of added tools, too.
"""

SLOW = "lint_clean"

PLAIN, TASK = logical_id_prefix(TOOL), logical_id_prefix(TASK_TOOL)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = copy_project(tmp_path_factory.mktemp("project"))
    for folder in ("benchmarks", "docs"):
        shutil.copytree(ROOT / folder, project / folder, dirs_exist_ok=True)
    write(plan_function(project, TOOL))
    write(plan_function(project, TASK_TOOL, tasks=True))
    write(plan_tool(project, f"{TOOL}_2", TOOL))
    return project


@pytest.fixture(scope="module")
def deployed(project: Path) -> dict[str, Any]:
    template = load_template(transformed_file(project / "template.yaml", AuthMode="none"))
    return evaluate_stack(template, project, {"AuthMode": "none"}).resources


def of(prefix: str, deployed: dict[str, Any]) -> dict[str, Any]:
    """Return the resources of a tool by the rest of their logical ids, without the digest of a version."""
    return {
        re.sub(r"(Version)[0-9a-f]{10}$", r"\1", name.removeprefix(prefix)): each
        for name, each in deployed.items()
        if name.startswith(prefix)
    }


def test_the_tests_of_the_project_pass_without_another_change(project: Path) -> None:
    tests = [f"tests/{each}" for each in CHECKS]
    options = ("-p", "no:cacheprovider", "-k", f"not ({SLOW})")
    done = run(sys.executable, "-m", "pytest", *options, *tests, cwd=project, SAM=str(SAM))
    assert done.returncode == 0, done.stdout


def test_a_plain_function_has_the_resources_of_an_example_and_no_settings_of_its_own(
    deployed: dict[str, Any],
) -> None:
    own, example = of(PLAIN, deployed), of("Weather", deployed)
    assert own.keys() == example.keys()
    assert own["Role"]["Properties"].keys() == example["Role"]["Properties"].keys()
    front_door = deployed["FrontDoorFunction"]["Properties"]["Environment"]
    assert own["Function"]["Properties"]["Environment"] == front_door
    policies = ["${FunctionPolicy}", "${StatePolicy}", "${ParkedCallsPolicy}"]
    assert own["Role"]["Properties"]["ManagedPolicyArns"] == policies
    assert "Policies" not in own["Role"]["Properties"]


def test_a_function_with_tasks_has_the_resources_of_the_example(deployed: dict[str, Any]) -> None:
    own, example = of(TASK, deployed), of("Provision", deployed)
    assert own.keys() == example.keys()
    for name in ("TasksQueue", "WorkerFunction"):
        assert own[name]["Properties"].keys() == example[name]["Properties"].keys()


def test_the_front_door_finds_and_may_invoke_every_function_with_the_prefix(deployed: dict[str, Any]) -> None:
    variables = deployed["FrontDoorFunction"]["Properties"]["Environment"]["Variables"]
    owners = settings(variables["MCP_SETTINGS"])["MCP_OWNERS"]
    prefix, _, suffix = owners.rpartition(":function:")[2].partition("*")
    for tool, prefix_of_ids in ((TOOL, PLAIN), (TASK_TOOL, TASK)):
        name = of(prefix_of_ids, deployed)["Function"]["Properties"]["FunctionName"]
        alias = of(prefix_of_ids, deployed)["FunctionAliaslive"]["Properties"]["Name"]
        assert name + ":" + alias == f"{prefix}{tool}{suffix}"
