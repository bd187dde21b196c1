"""How far an application of many functions is from the limits of AWS.

Sources: the pages of quotas in the guides of CloudFormation, Lambda, IAM and API Gateway.
"""

import json
import re
from typing import Any

import pytest

from mcp_roundtrip_tools.new_tool.plan import MAX_NAME
from mcp_roundtrip_tools.new_tool.template_entry import append_entry, render_entry
from mcp_roundtrip_tools.template.yaml_reader import load
from support import cloudformation
from support.project import ROOT
from support.transformed_template import (
    DOMAIN,
    deployed,
    load_template,
    parameters,
    transform,
    transformed,
    transformed_file,
)

MAX_RESOURCES = 500
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
"""The longest name of a stack whose functions may have the longest names."""

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


FUNCTIONS, FUNCTIONS_WITH_TASKS = 80, 36
"""How many functions more the template has room for, without tasks or with them, at a gradual deployment."""

TOOLS = 5_000
"""How many tools, as long as the longest example, fit into a list of all functions."""


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, dict[str, Any]]:
    """Return the transformed template with one more function, without tasks and with them."""
    folder, text = tmp_path_factory.mktemp("grown"), (ROOT / "template.yaml").read_text("utf-8")
    found = {}
    for tasks in (False, True):
        path = folder / f"{tasks}.yaml"
        path.write_text(append_entry(text, render_entry("x" * MAX_NAME, tasks=tasks)))
        found[tasks] = load_template(transformed_file(path, AuthMode="none", Deployment=GRADUAL))
    return found


@pytest.fixture(scope="module")
def gradual() -> dict[str, Any]:
    template: dict[str, Any] = load_template(transform(Deployment=GRADUAL))
    return template


def evaluated_size(value: Any) -> int:
    """Return the characters of a value without white space, with long names in place of references."""
    text = json.dumps(value, separators=(",", ":"))
    return len(re.sub(r"\$\{([^}]*)\}", lambda found: GENERATED.get(found[1], ARN), text))


# -- CloudFormation -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tasks", "functions"), [(False, FUNCTIONS), (True, FUNCTIONS_WITH_TASKS)])
def test_the_template_has_room_for_so_many_functions(
    tasks: bool, functions: int, grown: dict[bool, dict[str, Any]], gradual: dict[str, Any]
) -> None:
    now, one_more = len(gradual["Resources"]), len(grown[tasks]["Resources"])
    assert now + functions * (one_more - now) <= MAX_RESOURCES


def test_the_template_with_so_many_functions_is_not_too_large(
    grown: dict[bool, dict[str, Any]], gradual: dict[str, Any]
) -> None:
    now, one_more = (len(json.dumps(each)) for each in (gradual, grown[False]))
    assert now + FUNCTIONS * (one_more - now) <= MAX_TEMPLATE


def test_the_template_has_not_too_many_parameters() -> None:
    assert 0 < len(load(ROOT / "template.yaml")["Parameters"]) <= MAX_PARAMETERS


# -- Lambda ---------------------------------------------------------------------------------------------


def test_the_longest_name_of_a_function_fits() -> None:
    assert len(f"{STACK_NAME}_{'x' * MAX_NAME}_worker") == MAX_FUNCTION_NAME - 1


@pytest.mark.parametrize("given", [{"AuthMode": "none"}, LONGEST], ids=["defaults", "longest"])
def test_the_environment_of_every_function_fits(given: dict[str, str]) -> None:
    stack = cloudformation.resources(transformed(), parameters(**given))
    for name, each in stack.items():
        if each["Type"] == "AWS::Lambda::Function":
            variables = each["Properties"]["Environment"]["Variables"]
            assert evaluated_size(variables) <= MAX_ENVIRONMENT, name


def test_the_environment_of_the_front_door_does_not_grow_with_functions(
    grown: dict[bool, dict[str, Any]],
) -> None:
    front_door = grown[True]["Resources"]["FrontDoorFunction"]["Properties"]
    assert (
        front_door["Environment"]
        == transformed()["Resources"]["FrontDoorFunction"]["Properties"]["Environment"]
    )


def test_the_lists_of_so_many_tools_fit_into_a_response() -> None:
    catalog = json.loads((ROOT / "functions/front_door/catalog.json").read_text())
    largest = max(len(json.dumps(row)) for row in catalog["tools"])
    assert TOOLS * largest <= MAX_RESPONSE


# -- IAM ------------------------------------------------------------------------------------------------


def test_every_policy_fits() -> None:
    for name, each in deployed().items():
        properties = each.get("Properties", {})
        if each["Type"] == "AWS::IAM::Role":
            inline = [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
            assert sum(map(evaluated_size, inline)) <= MAX_INLINE_POLICIES, name
            assert len(properties.get("ManagedPolicyArns", [])) <= MAX_MANAGED_POLICIES_OF_A_ROLE
        if each["Type"] == "AWS::IAM::ManagedPolicy":
            assert evaluated_size(properties["PolicyDocument"]) <= MAX_MANAGED_POLICY, name


@pytest.mark.parametrize("tasks", [False, True])
def test_a_function_changes_no_policy_and_no_route_of_the_template(
    tasks: bool, grown: dict[bool, dict[str, Any]], gradual: dict[str, Any]
) -> None:
    shared = ("AWS::IAM::ManagedPolicy", "AWS::ApiGatewayV2::Route")
    kinds = (*shared, "AWS::IAM::Role")
    before, after = gradual["Resources"], grown[tasks]["Resources"]
    assert {name: after[name] for name, each in before.items() if each["Type"] in kinds} == {
        name: each for name, each in before.items() if each["Type"] in kinds
    }
    assert not any(after[name]["Type"] in shared for name in after.keys() - before.keys())


# -- API Gateway ----------------------------------------------------------------------------------------


def test_routes_fit() -> None:
    routes = [each for each in deployed().values() if each["Type"] == "AWS::ApiGatewayV2::Route"]
    assert 0 < len(routes) <= MAX_ROUTES
