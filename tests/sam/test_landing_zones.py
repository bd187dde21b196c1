import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.baselines import BLOCKS, OPTIONS
from support.sam_build import SAM
from support.transformed_template import (
    FOLDERS,
    LANDING_ZONE,
    LANDING_ZONES_PAGE,
    deployed,
    documented_block,
    landing_zone,
    of_type,
    properties,
    statements,
)

every_function = pytest.mark.parametrize("function", sorted(FOLDERS))
TEXT = LANDING_ZONES_PAGE.read_text("utf-8")
DOCUMENTED = landing_zone()
PARAMETERS = DOCUMENTED["Resources"]["Platform"]["Properties"]["Parameters"]


def test_every_role_has_the_boundary_and_the_path_and_every_policy_the_path():
    for role in of_type("AWS::IAM::Role"):
        given = properties(role, LANDING_ZONE)
        assert given["PermissionsBoundary"] == PARAMETERS["PermissionsBoundaryArn"], role
        assert given["Path"] == PARAMETERS["RolePath"], role
        assert "PermissionsBoundary" not in properties(role)
        assert properties(role).get("Path", "/") == "/"
    for policy in of_type("AWS::IAM::ManagedPolicy"):
        assert properties(policy, LANDING_ZONE)["Path"] == PARAMETERS["RolePath"], policy


@every_function
def test_every_function_is_in_the_vpc_and_uses_the_data_key_only_through_services(function):
    network = properties(function, LANDING_ZONE)["VpcConfig"]
    assert network == DOCUMENTED["Globals"]["Function"]["VpcConfig"]
    assert network.keys() == documented_block("VPC")["VpcConfig"].keys()
    assert "VpcConfig" not in properties(function)
    assert "ec2:" not in json.dumps(statements(function))
    assert "ec2:CreateNetworkInterface" in json.dumps(statements(function, LANDING_ZONE))
    key = PARAMETERS["DataKeyArn"]
    [statement] = [s for s in statements(function, LANDING_ZONE) if s["Resource"] == key]
    assert set(statement["Action"]) == {"kms:Decrypt", "kms:GenerateDataKey"}
    assert "kms:ViaService" in statement["Condition"]["StringEquals"]
    assert key not in json.dumps(statements(function))


DATA = {
    "AWS::DynamoDB::Table": lambda each: each.get("SSESpecification", {}).get("KMSMasterKeyId"),
    "AWS::Logs::LogGroup": lambda each: each.get("KmsKeyId"),
    "AWS::SQS::Queue": lambda each: each.get("KmsMasterKeyId"),
}
"""The key of each type of resource that stores data."""


@pytest.mark.parametrize("kind", DATA)
def test_everything_that_stores_data_uses_the_data_key(kind):
    given, defaults = of_type(kind, LANDING_ZONE), of_type(kind)
    assert {DATA[kind](each) for each in given.values()} == {PARAMETERS["DataKeyArn"]}
    assert {DATA[kind](each) for each in defaults.values()} == {None}


def test_tables_can_be_protected_against_deletion():
    for blocks in ((), (LANDING_ZONE,)):
        tables = of_type("AWS::DynamoDB::Table", *blocks)
        assert {each.get("DeletionProtectionEnabled", False) for each in tables.values()} == {bool(blocks)}


def granted() -> set[tuple[str, str]]:
    """Return the actions of all roles with their resources, with every option."""
    managed = of_type("AWS::IAM::ManagedPolicy", *BLOCKS, **OPTIONS)
    policies = [each["PolicyDocument"] for each in managed.values()]
    for role in of_type("AWS::IAM::Role", *BLOCKS, **OPTIONS).values():
        policies += [each["PolicyDocument"] for each in role.get("Policies", [])]
    return {
        (action, resource)
        for policy in policies
        for statement in policy["Statement"]
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def test_the_page_lists_every_action_that_a_boundary_must_allow():
    section = TEXT.partition("## Permissions boundary")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z0-9]+:[A-Za-z0-9]+)`", section)) == {action for action, _ in granted()}


def test_the_code_of_a_function_cannot_manage_network_interfaces():
    policy = properties("FunctionPolicy", LANDING_ZONE)["PolicyDocument"]
    found = [each for each in policy["Statement"] if "ec2:" in json.dumps(each)]
    # Requests of the code have the key, and those of Lambda do not.
    assert [each["Condition"] for each in found] == [{"Null": {"lambda:SourceFunctionArn": "true"}}] * 2


WILDCARDS = {
    "*": {  # these take no resource
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    },
    "ec2:${AWS::Region}:*:*/*": {  # subnets that another account shares
        "ec2:AssignPrivateIpAddresses",
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:UnassignPrivateIpAddresses",
    },
    "cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*": {"cloudwatch:DescribeAlarms"},
    "ses:${AWS::Region}:${AWS::AccountId}:identity/*": {"ses:SendEmail"},
}
"""The wildcards that are not limited to resources of the stack."""


def test_wildcards_are_limited_to_the_stack_or_unavoidable():
    found: dict[str, set[str]] = {}
    for action, resource in granted():
        assert "*" not in action
        if "*" in resource and "${AWS::StackName}_" not in resource:
            found.setdefault(resource.removeprefix("arn:${AWS::Partition}:"), set()).add(action)
    assert found == WILDCARDS


WAYS = [OPTIONS, {**OPTIONS, "AuthMode": "lambda", "LambdaAuthorizerArn": "arn:aws:lambda:authorizer"}]


def taggable(resource_type: str) -> bool:
    """Return whether CloudFormation passes the tags of a stack on to resources of this type."""
    [schemas] = Path(SAM).parents[1].glob("lib/python*/site-packages/cfnlint/data/schemas")
    digest = json.loads((schemas / "providers/us-east-1.json").read_text("utf-8"))[resource_type]
    schema = json.loads((schemas / f"resources/{digest}.json").read_text("utf-8"))
    return bool(schema.get("tagging", {}).get("taggable"))


def test_the_page_lists_every_type_that_takes_no_tags():
    types = {each["Type"] for way in WAYS for each in deployed(*BLOCKS, **way).values()}
    section = TEXT.partition("## Tags")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`(AWS::\w+::\w+)`", section))
    assert documented == {each for each in types if not taggable(each)}


def test_no_resource_sets_tags_of_its_own_over_those_of_the_stack():
    """SAM adds one tag to functions and nested stacks, which has a name of its own."""
    for name, each in deployed(*BLOCKS, **OPTIONS).items():
        tags = each["Properties"].get("Tags", [])
        names = set(tags) if isinstance(tags, dict) else {tag["Key"] for tag in tags}
        assert names <= {"lambda:createdBy"}, name
