"""How far an application of two hundred tools is from the limits of AWS.

Sources: the pages of quotas in the guides of CloudFormation, Lambda, IAM and API Gateway.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_roundtrip_tools.new_tool.plan import MAX_NAME
from mcp_roundtrip_tools.template.yaml_reader import load
from support import cloudformation
from support.many_tools import (
    NAMES,
    PLAIN_IN_A_STACK,
    WITH_TASKS_IN_A_STACK,
    ManyTools,
    tools_in_stacks,
    two_hundred_tools,
)
from support.project import ROOT
from support.sam_build import SAM, run
from support.transformed_template import DOMAIN, deployed, parameters, transformed, transformed_file

MAX_RESOURCES = 500
MAX_RESOURCES_OF_AN_OPERATION = 2_500
MAX_PARAMETERS = 200
MAX_TEMPLATE = 1_000_000
MAX_FUNCTION_NAME = 64
MAX_ENVIRONMENT = 4_096
MAX_INLINE_POLICIES = 10_240
MAX_MANAGED_POLICY = 6_144
MAX_MANAGED_POLICIES_OF_A_ROLE = 10
MAX_ROUTES = 300
MAX_RESPONSE = 6 * 1024 * 1024
"""Bytes of a response of Lambda."""

STACK_NAME = "s" * 25
"""The longest name of a stack whose tools may have the longest names."""

GRADUAL = "Linear10PercentEvery1Minute"

ARN = "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:" + "x" * 100
"""Stands for every name and ARN that is only known when the stack exists."""

GENERATED = {"AuditLogs": f"{STACK_NAME}-AuditLogs-{'x' * 12}", "Settings": "9" * 9}
"""What CloudFormation puts in place of a reference: a generated name, and the number of a version."""

KEY = "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"

LONGEST = {
    **DOMAIN,
    "AuditLog": "principal",
    "Traces": "arn:aws-us-gov:lambda:us-gov-west-1:901920570463:layer:aws-otel-python-arm64-ver-1-32-0:1",
    "TracesEndpoint": "https://collector.example.com/v1/traces",
    "AuthMode": "bearer",
    "AllowedOrigins": ",".join(f"https://application-{number}.example.com" for number in range(10)),
    "EndpointUri": "https://tools.example.com/" + "p" * 200,
    "ScopePrefix": "api://11111111-2222-3333-4444-555555555555/",
    "StateSigning": "delegated",
    "TokenAlgorithms": "RS256,RS384,RS512,PS256,PS384,PS512,ES256,ES384,ES512,EdDSA",
    "TokenAudience": ",".join(["api://11111111-2222-3333-4444-555555555555"] * 4),
    "TokenIssuer": "https://login.example.com/11111111-2222-3333-4444-555555555555/v2.0",
    "TokenJwksUri": "https://login.example.com/11111111-2222-3333-4444-555555555555/discovery/v2.0/keys",
    "TrustedStateEncryptionKeyArns": ",".join([KEY] * 4),
    "TrustedStateKeyArns": ",".join([KEY] * 4),
}
"""Long values of the parameters that functions get as variables."""


@pytest.fixture(scope="module")
def application() -> ManyTools:
    return two_hundred_tools()


@pytest.fixture(scope="module")
def written(application: ManyTools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("application")
    write(application, folder)
    return folder


def write(application: ManyTools, folder: Path) -> list[Path]:
    """Write the templates; return their paths."""
    for path, text in application.templates.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return [folder / path for path in application.templates]


@pytest.fixture(scope="module")
def templates(application: ManyTools, written: Path) -> dict[Path, str]:
    """Return the transformed templates, in which each deployment is gradual."""
    given = {"AuthMode": "none", "Deployment": GRADUAL}
    return {path: transformed_file(written / path, **given) for path in application.templates}


@pytest.fixture(scope="module")
def resources(templates: Mapping[Path, str]) -> dict[Path, dict[str, Any]]:
    return {path: yaml.load(text, yaml.CSafeLoader)["Resources"] for path, text in templates.items()}


def evaluated_size(value: Any) -> int:
    """Return the characters of a value without white space, with long names in place of references."""
    text = json.dumps(value, separators=(",", ":"))
    return len(re.sub(r"\$\{([^}]*)\}", lambda found: GENERATED.get(found[1], ARN), text))


# -- CloudFormation -------------------------------------------------------------------------------------


def test_nested_stacks_are_lint_clean(tmp_path: Path) -> None:
    # One tool of each kind: 200 of them take cfn-lint a quarter of a minute, and differ in their names only.
    paths = write(tools_in_stacks({"first": (1, False), "second": (1, True)}), tmp_path)
    done = run(SAM.with_name("cfn-lint"), "--regions", "eu-west-1", "--", *paths)
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_hundred_tools_are_in_three_nested_stacks(application: ManyTools) -> None:
    assert [len(tools) for tools in application.tools.values()] == [99, 45, 56]
    assert sorted(name for tools in application.tools.values() for name in tools) == sorted(NAMES)


def test_no_template_has_too_many_resources(resources: Mapping[Path, dict[str, Any]]) -> None:
    assert {path: len(each) for path, each in resources.items() if len(each) > MAX_RESOURCES} == {}
    assert sum(map(len, resources.values())) <= MAX_RESOURCES_OF_AN_OPERATION


def test_a_nested_stack_cannot_hold_more_tools(
    application: ManyTools, resources: Mapping[Path, dict[str, Any]]
) -> None:
    plain, with_tasks, _ = (len(resources[path]) for path in application.nested)
    assert plain + plain // PLAIN_IN_A_STACK > MAX_RESOURCES
    assert with_tasks + with_tasks // WITH_TASKS_IN_A_STACK > MAX_RESOURCES


def test_template_yaml_has_room_for_seventy_tools(resources: Mapping[Path, dict[str, Any]]) -> None:
    plain_tool = 5
    assert len(resources[Path("template.yaml")]) + 70 * plain_tool <= MAX_RESOURCES


def test_no_template_is_too_large(application: ManyTools, templates: Mapping[Path, str]) -> None:
    for text in (*application.templates.values(), *templates.values()):
        # CloudFormation gets the template that `sam deploy` writes to S3, and transforms it.
        assert len(text.encode()) <= MAX_TEMPLATE


def test_no_template_has_too_many_parameters(application: ManyTools, written: Path) -> None:
    for path in application.templates:
        assert 0 < len(load(written / path)["Parameters"]) <= MAX_PARAMETERS


# -- Lambda ---------------------------------------------------------------------------------------------


def test_the_longest_name_of_a_function_fits(application: ManyTools) -> None:
    assert {len(name) for name in NAMES} == {MAX_NAME}
    assert len(f"{STACK_NAME}_{NAMES[0]}_worker") <= MAX_FUNCTION_NAME


@pytest.mark.parametrize("given", [{"AuthMode": "none"}, LONGEST], ids=["defaults", "longest"])
def test_the_environment_of_every_function_fits(given: dict[str, str]) -> None:
    stack = cloudformation.resources(transformed(), parameters(**given))
    for name, each in stack.items():
        if each["Type"] == "AWS::Lambda::Function":
            variables = each["Properties"]["Environment"]["Variables"]
            assert evaluated_size(variables) <= MAX_ENVIRONMENT, name


def test_the_environment_of_the_front_door_does_not_grow_with_tools(
    resources: Mapping[Path, dict[str, Any]],
) -> None:
    front_door = resources[Path("template.yaml")]["FrontDoorFunction"]["Properties"]
    assert (
        front_door["Environment"]
        == transformed()["Resources"]["FrontDoorFunction"]["Properties"]["Environment"]
    )


def test_the_lists_of_two_hundred_tools_fit_into_a_response() -> None:
    catalog = json.loads((ROOT / "functions/front_door/catalog.json").read_text())
    largest = max(len(json.dumps(row)) for row in catalog["tools"])
    assert len(NAMES) * largest <= MAX_RESPONSE / 4


# -- IAM ------------------------------------------------------------------------------------------------


def test_every_policy_fits_and_none_grows_with_tools(resources: Mapping[Path, dict[str, Any]]) -> None:
    now = deployed()
    for name, each in now.items():
        properties = each.get("Properties", {})
        if each["Type"] == "AWS::IAM::Role":
            inline = [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
            assert sum(map(evaluated_size, inline)) <= MAX_INLINE_POLICIES, name
            assert len(properties.get("ManagedPolicyArns", [])) <= MAX_MANAGED_POLICIES_OF_A_ROLE
        if each["Type"] == "AWS::IAM::ManagedPolicy":
            assert evaluated_size(properties["PolicyDocument"]) <= MAX_MANAGED_POLICY, name
    kinds = ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy")
    policies = {name for name, each in resources[Path("template.yaml")].items() if each["Type"] in kinds}
    assert policies == {name for name, each in transformed()["Resources"].items() if each["Type"] in kinds}


# -- API Gateway ----------------------------------------------------------------------------------------


def test_routes_do_not_grow_with_tools(resources: Mapping[Path, dict[str, Any]]) -> None:
    def routes(of: Mapping[str, Any]) -> list[str]:
        return [name for name, each in of.items() if each["Type"] == "AWS::ApiGatewayV2::Route"]

    assert routes(resources[Path("template.yaml")]) == routes(transformed()["Resources"])
    assert len(routes(transformed()["Resources"])) <= MAX_ROUTES
