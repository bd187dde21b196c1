"""How far an application of many functions is from the limits of AWS.

Sources: the pages of quotas in the guides of CloudFormation, Lambda, IAM and API Gateway.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_roundtrip_tools.catalog.edge_routes import logical_id_prefix
from mcp_roundtrip_tools.growth.entries import TemplateText, ToolFunction, add_function, add_worker
from mcp_roundtrip_tools.growth.written_files import MAX_NAME
from mcp_roundtrip_tools.template.yaml_reader import parse
from support.project import ROOT
from support.transformed_template import deployed, documented_block, transformed_file, with_blocks

MAX_RESOURCES = 500
MAX_TEMPLATE = 1_000_000
MAX_FUNCTION_NAME = 64
MAX_INLINE_POLICIES = 10_240
MAX_MANAGED_POLICY = 6_144
MAX_MANAGED_POLICIES_OF_A_ROLE = 10
MAX_RESPONSE = 6 * 1024 * 1024
"""Bytes of a response of Lambda."""

STACK_NAME = "s" * 25
"""The longest name of a stack whose functions may have the longest names."""

GRADUAL = "Gradual deployment"

ARN = "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:" + "x" * 100
"""Stands for every name and ARN that is only known when the stack exists."""


FUNCTIONS, FUNCTIONS_WITH_TASKS = 90, 45
"""How many functions more the template has room for, without tasks or with them, at a gradual deployment."""

TOOLS = 5_000
"""How many tools, as long as the longest example, fit into a list of all functions."""


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Return the transformed template with one more function, without tasks and with them."""
    folder, text = tmp_path_factory.mktemp("grown"), (ROOT / "template.yaml").read_text("utf-8")
    found = {}
    name = "x" * MAX_NAME
    for tasks in (False, True):
        written = TemplateText(text)
        add_function(written, name, with_makefile=True)
        if tasks:
            add_worker(written, ToolFunction(f"{logical_id_prefix(name)}Function", Path()))
        path, template = folder / f"{tasks}.yaml", parse(written.text)
        template["Globals"]["Function"] |= documented_block(GRADUAL)
        path.write_text(yaml.safe_dump(template))
        found[tasks] = parse(transformed_file(path, AuthMode="none"))
    return found


@pytest.fixture(scope="module")
def gradual():
    template: dict[str, Any] = parse(with_blocks(GRADUAL))
    return template


def evaluated_size(value: Any) -> int:
    """Return the characters of a value without white space, with long names in place of references."""
    text = json.dumps(value, separators=(",", ":"))
    return len(re.sub(r"\$\{[^}]*\}", ARN, text))


@pytest.mark.parametrize(("tasks", "functions"), [(False, FUNCTIONS), (True, FUNCTIONS_WITH_TASKS)])
def test_the_template_has_room_for_so_many_functions(tasks, functions, grown, gradual):
    now, one_more = len(gradual["Resources"]), len(grown[tasks]["Resources"])
    assert one_more > now
    assert now + functions * (one_more - now) <= MAX_RESOURCES
    size, larger = (len(json.dumps(each)) for each in (gradual, grown[tasks]))
    assert size + functions * (larger - size) <= MAX_TEMPLATE


def test_the_longest_name_of_a_function_fits():
    assert len(f"{STACK_NAME}_{'x' * MAX_NAME}_worker") == MAX_FUNCTION_NAME - 1


def test_the_lists_of_so_many_tools_fit_into_a_response():
    catalog = json.loads((ROOT / "functions/front_door/catalog.json").read_text())
    largest = max(len(json.dumps(row)) for row in catalog["tools"])
    assert TOOLS * largest <= MAX_RESPONSE


def test_every_policy_fits():
    for name, each in deployed().items():
        properties = each.get("Properties", {})
        if each["Type"] == "AWS::IAM::Role":
            inline = [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
            assert sum(map(evaluated_size, inline)) <= MAX_INLINE_POLICIES, name
            assert len(properties.get("ManagedPolicyArns", [])) <= MAX_MANAGED_POLICIES_OF_A_ROLE
        if each["Type"] == "AWS::IAM::ManagedPolicy":
            assert evaluated_size(properties["PolicyDocument"]) <= MAX_MANAGED_POLICY, name


@pytest.mark.parametrize("tasks", [False, True])
def test_a_function_changes_no_policy_no_route_and_no_variable_of_the_front_door(tasks, grown, gradual):
    shared = ("AWS::IAM::ManagedPolicy", "AWS::ApiGatewayV2::Route")
    kinds = (*shared, "AWS::IAM::Role")
    before, after = gradual["Resources"], grown[tasks]["Resources"]
    assert {name: after[name] for name, each in before.items() if each["Type"] in kinds} == {
        name: each for name, each in before.items() if each["Type"] in kinds
    }
    assert not any(after[name]["Type"] in shared for name in after.keys() - before.keys())
    environments = [each["FrontDoorFunction"]["Properties"]["Environment"] for each in (before, after)]
    assert environments[0] == environments[1]
