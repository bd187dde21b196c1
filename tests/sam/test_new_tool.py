"""sam and CloudFormation with a tool that `make new-tool` added."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_roundtrip_local.new_tool.plan import plan_files, write
from mcp_roundtrip_local.new_tool.template_entry import find_copyable_tool, logical_id_prefix
from mcp_roundtrip_local.template.yaml_reader import load
from support import cloudformation
from support.project import ROOT, TOOL, copy_project
from support.sam_build import SAM, run
from support.transformed_template import transformed_file

BASE = logical_id_prefix(TOOL)
MODEL = find_copyable_tool(load(ROOT / "template.yaml"))
"""The tool with the copied entry."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = copy_project(tmp_path_factory.mktemp("project"))
    write(plan_files(project, TOOL))
    return project


@pytest.fixture(scope="module")
def transformed(project: Path) -> str:
    return transformed_file(project / "template.yaml", AuthMode="none")


@pytest.fixture(scope="module")
def deployed(transformed: str) -> dict[str, Any]:
    template = yaml.safe_load(transformed)
    return cloudformation.resources(template, cloudformation.parameters_of(template, AuthMode="none"))


def test_the_source_is_lint_clean(project: Path) -> None:
    done = run(SAM, "validate", "--lint", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_new_resources_equal_those_of_the_copied_tool_except_for_names(deployed: dict[str, Any]) -> None:
    # The logical id of a version ends with a digest of the function's properties.
    stack = re.sub(r"(FunctionVersion)[0-9a-f]+", r"\1", json.dumps(deployed))
    resources: dict[str, Any] = json.loads(stack)

    def of(tool: str) -> dict[str, Any]:
        return {name: each for name, each in resources.items() if name.startswith(tool)}

    renamed = json.dumps(of(BASE)).replace(BASE, logical_id_prefix(MODEL)).replace(TOOL, MODEL)
    assert json.loads(renamed) == of(logical_id_prefix(MODEL))
    assert f"{logical_id_prefix(MODEL)}FunctionMcpPermission" in of(logical_id_prefix(MODEL))


def test_the_new_tool_has_no_settings_or_permissions_of_its_own(project: Path) -> None:
    resources = load(project / "template.yaml")["Resources"]
    function, role = resources[f"{BASE}Function"]["Properties"], resources[f"{BASE}Role"]["Properties"]
    own = {name for name in function["Environment"]["Variables"] if not name.startswith("MCP_")}
    assert own == {"POWERTOOLS_SERVICE_NAME"}
    assert not {"MemorySize", "Timeout", "Policies", "Layers"} & function.keys()
    assert [policy["PolicyName"] for policy in role["Policies"]] == ["Logs"]


def test_the_front_door_may_invoke_the_new_tool_and_has_its_address(deployed: dict[str, Any]) -> None:
    variables = deployed["FrontDoorFunction"]["Properties"]["Environment"]["Variables"]
    owner = json.loads(variables["MCP_OWNERS"])[TOOL]
    assert f"${{{BASE}Function.Arn}}" in owner
    statements = [
        statement
        for policy in deployed["FrontDoorRole"]["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    assert owner in [resource for each in statements for resource in each["Resource"]]
