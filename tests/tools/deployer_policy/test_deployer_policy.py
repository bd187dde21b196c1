"""The policies of the deployer, generated from the transformed template into the pipeline's."""

import json
from functools import cache
from typing import Any

import pytest

from mcp_roundtrip_tools.deployer_policy.__main__ import (
    MAX_POLICY,
    insert,
    policies,
    render,
    size,
    statements,
    types_of,
)
from mcp_roundtrip_tools.deployer_policy.permissions import PERMISSIONS, RESOURCES, Needed
from mcp_roundtrip_tools.template.yaml_reader import load, parse
from support.project import ROOT
from support.transformed_template import transformed_file

PIPELINE = ROOT / "platform/pipeline/template.yaml"


REASONS = {
    "mapping": "ids of event source mappings are random; the tags of one say nothing about its function",
    "keys": "ids are random; the condition allows keys that sign or derive, none that encrypts data",
    "api": "ids of APIs are random",
    "api_tags": "ARNs of tags contain those ids",
    "domain": "the name of the domain is a parameter of the application",
    "settings_versions": "ids of AppConfig applications are random",
    "deployment_configurations": "AWS's configurations have the account in their ARN; they are only read",
    "changes": "ids of changes are random; they are only read",
    "api_gateway_role": "API Gateway chooses the name; the condition allows only its own role",
}
WILDCARDS = {
    "*": "no resources: listing, creating what has a random id, and network interfaces",
    **{RESOURCES[name]: reason for name, reason in REASONS.items()},
}
"""Resources with a wildcard outside a name that begins with the stack's, with the reason."""


@cache
def types() -> frozenset[str]:
    """Return the types of template.yaml and its nested templates, as `make deployer-policy` reads them."""
    application = parse(transformed_file(ROOT / "template.yaml", AuthMode="none"))
    return frozenset(types_of([application, *map(load, sorted((ROOT / "platform").glob("*.yaml")))]))


@cache
def needed() -> tuple[Needed, ...]:
    return tuple(statements(types()))


@cache
def pipeline() -> dict[str, Any]:
    template: dict[str, Any] = load(PIPELINE)
    return template


def test_the_policies_are_those_that_the_template_needs():
    document = PIPELINE.read_text("utf-8")
    assert insert(document, render(needed())) == document, "run make deployer-policy"


def test_every_type_of_the_table_is_in_the_template():
    assert PERMISSIONS.keys() == types()


def test_a_type_without_an_entry_is_named():
    with pytest.raises(SystemExit, match="AWS::SNS::Topic"):
        statements([*types(), "AWS::SNS::Topic"])


def test_no_action_has_a_wildcard():
    assert [action for each in needed() for action in each.actions if "*" in action] == []


def test_a_wildcard_outside_names_of_the_stack_has_a_reason():
    resources = {resource for each in needed() for resource in each.resources}
    own = {each for each in resources if "${ApplicationStack}" in each or "${ArtefactBucket.Arn}" in each}
    assert {each for each in resources - own if "*" in each} == WILDCARDS.keys()


def test_what_changes_any_resource_of_a_service_is_limited_by_a_condition():
    reads = ("Describe", "Get", "List")
    open_writes = {
        action
        for each in needed()
        if "*" in each.resources and each.conditions is None
        for action in each.actions
        if not action.partition(":")[2].startswith(reads)
    }
    # Access logs of an API have no other resources; an AppConfig application has a random id.
    assert open_writes == {
        "appconfig:CreateApplication",
        *(f"logs:{each}LogDelivery" for each in ("Create", "Delete", "Update")),
        "logs:PutResourcePolicy",
    }


def test_roles_are_only_passed_to_the_services_that_the_template_uses():
    [passing] = [each for each in needed() if "iam:PassRole" in each.actions]
    assert passing.conditions == {
        "StringEquals": {"iam:PassedToService": ["lambda.amazonaws.com", "codedeploy.amazonaws.com"]}
    }
    assert all("${ApplicationStack}" in each for each in passing.resources)


def test_with_a_boundary_no_role_is_created_or_gets_permissions_without_it():
    creating = [each for each in needed() if "iam:CreateRole" in each.actions]
    assert {each.only_if: each.conditions for each in creating} == {
        "HasPermissionsBoundary": {
            "StringEquals": {"iam:PermissionsBoundary": ["${PermissionsBoundaryArn}"]}
        },
        "HasNoPermissionsBoundary": None,
    }
    removing = [each for each in needed() if "iam:DeleteRolePermissionsBoundary" in each.actions]
    assert [each.only_if for each in removing] == ["HasNoPermissionsBoundary"]
    for action in ("iam:PutRolePolicy", "iam:AttachRolePolicy"):
        found = {each.only_if: each.conditions or {} for each in needed() if action in each.actions}
        assert found.keys() == {"HasPermissionsBoundary", "HasNoPermissionsBoundary"}
        bounded = found["HasPermissionsBoundary"]
        assert bounded["StringEquals"] == {"iam:PermissionsBoundary": ["${PermissionsBoundaryArn}"]}


def test_the_key_of_the_data_is_only_used_through_dynamodb():
    of_key = [each for each in needed() if each.resources == ("${DataKeyArn}",)]
    unlimited = {action for each in of_key if each.conditions is None for action in each.actions}
    assert unlimited == {"kms:DescribeKey"}


def test_the_deployer_cannot_change_its_own_permissions():
    # The names of a pipeline stack `mcp-pipeline` and of a boundary `mcp-boundary` begin as those of an
    # application `mcp`.
    resources = pipeline()["Resources"]
    policy = resources["OwnRolesPolicy"]["Properties"]
    [deny] = policy["PolicyDocument"]["Statement"]
    own = {
        name
        for name, each in resources.items()
        if each["Type"] in ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy")
    }
    *denied, boundary = deny["Resource"]
    named = {each.get("Ref") or each["Fn::GetAtt"][0] for each in denied}
    assert (deny["Effect"], deny["Action"], named) == ("Deny", "iam:*", own)
    given, without = {"Ref": "PermissionsBoundaryArn"}, {"Ref": "AWS::NoValue"}
    assert boundary == {"Fn::If": ["HasPermissionsBoundary", given, without]}
    assert policy["Roles"] == [{"Ref": "ExecutionRole"}]


def test_every_policy_stays_below_the_limit_with_the_longest_names():
    divided = policies(needed())
    assert [size(each) for each in divided if size(each) > MAX_POLICY] == []
    attached = pipeline()["Resources"]["ExecutionRole"]["Properties"]["ManagedPolicyArns"]
    assert attached == [{"Ref": f"DeployerPolicy{number}"} for number in range(1, len(divided) + 1)]


def test_the_computed_size_is_not_less_than_that_of_the_document():
    for number, statements_of in enumerate(policies(needed()), 1):
        document = pipeline()["Resources"][f"DeployerPolicy{number}"]["Properties"]["PolicyDocument"]
        assert size(statements_of) >= len("".join(json.dumps(_substituted(document)).split()))


def _substituted(value: Any) -> Any:
    """Return a document with the texts of Fn::Sub, and with all statements of Fn::If."""
    match value:
        case {"Fn::Sub": text}:
            return text
        case {"Fn::If": [_, statement, _]}:
            return _substituted(statement)
        case dict():
            return {name: _substituted(each) for name, each in value.items()}
        case list():
            return [_substituted(each) for each in value]
    return value


def test_only_the_environment_of_the_repository_may_assume_the_role():
    [trust] = pipeline()["Resources"]["DeployRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert trust["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": {
                "Fn::Sub": "repo:${GitHubRepository}:environment:${GitHubEnvironment}"
            },
        }
    }
