"""A role allows exactly the AWS calls of its function in the flows of all examples.

The calls are recorded while the functions serve clients on this computer. The stand-ins
refuse no call, so the tests compare lists.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from support.recorded_calls import IDENTITY, record
from support.role_permissions import Call, Grant, findings, grants
from support.transformed_template import (
    FOLDERS,
    FRONT_DOOR,
    TOOLS,
    WORKER_OF,
    arn,
    deployed,
    name_in,
    of_type,
    properties,
    role_of,
    statements,
)

WAYS: dict[str, dict[str, str]] = {
    "direct-invoke": {"StateSigning": "direct", "TaskDelivery": "invoke"},
    "delegated-queue": {"StateSigning": "delegated", "TaskDelivery": "queue"},
}
"""Parameters that cover every choice with influence on AWS calls."""

LAMBDA_ITSELF = {
    ("sqs:SendMessage", arn("UndeliveredTasks")): "Lambda's on-failure destination",
    **{
        (f"sqs:{operation}", arn("ProvisionTasks")): "Lambda's event source mapping"
        for operation in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
    },
}
"""Actions of Lambda itself with the role of a worker."""


ASLEEP = {
    (f"sqs:{operation}", arn("ProvisionTasks")): "a task sleeps if its provider fails four times in a row"
    for operation in ("SendMessage", "ChangeMessageVisibility")
}
"""Actions of a worker whose task sleeps, which no recorded flow does."""


def for_services(function: str) -> dict[tuple[str, str], str]:
    """Return the actions of AWS services with a role, and of flows that are not recorded; with reasons."""
    group = arn(name_in(properties(function)["LoggingConfig"]["LogGroup"]))
    writes = ("logs:CreateLogStream", "logs:PutLogEvents")
    logs = {(action, group): "Lambda writes what a function prints" for action in writes}
    return logs | LAMBDA_ITSELF | ASLEEP if function in WORKER_OF.values() else logs


WILDCARDS = {
    f"{arn(worker)}:*": "a task names the version that created it, of which each deployment makes another"
    for worker in WORKER_OF.values()
} | {f"{IDENTITY}*": "SES checks the identity of the sender, and in its sandbox that of the recipient"}

every_way = pytest.mark.parametrize("way", WAYS)
every_function = pytest.mark.parametrize("function", sorted(FOLDERS))


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def calls(way: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, set[Call]]:
    return record(tmp_path_factory.mktemp(way), WAYS[way])


def granted(function: str, way: str) -> set[Grant]:
    """Return all permissions of a function's role, including separate policies."""
    beside = [
        statement
        for policy in of_type("AWS::IAM::RolePolicy", **WAYS[way]).values()
        if name_in(policy["RoleName"]) == role_of(function)
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    return grants([*statements(function, **WAYS[way]), *beside])


@every_function
def test_a_role_allows_exactly_the_calls_of_its_function(
    calls: Mapping[str, set[Call]], way: str, function: str
) -> None:
    asked = calls.get(function, set())
    assert findings(granted(function, way), asked, for_services(function), WILDCARDS) == []


def test_every_function_with_permissions_made_calls(calls: Mapping[str, set[Call]]) -> None:
    assert calls.keys() == FOLDERS.keys()


def test_every_exception_is_still_needed() -> None:
    every = {function: {grant for way in WAYS for grant in granted(function, way)} for function in FOLDERS}
    for function, allowed in every.items():
        assert for_services(function).keys() <= {(grant.action, grant.resource) for grant in allowed}
    wild = {grant.resource for allowed in every.values() for grant in allowed if "*" in grant.resource}
    assert WILDCARDS.keys() == wild


# The tests detect deviations

ALLOWED = {
    Grant("kms:Sign", arn("StateKey"), frozenset({("kms:SigningAlgorithm", "ECDSA_SHA_256")})),
    Grant("dynamodb:GetItem", arn("TaskTable")),
    Grant("lambda:InvokeFunction", f"{arn('ProvisionWorkerFunction')}:*"),
}
ASKED = {
    Call(
        "kms:Sign",
        arn("StateKey"),
        frozenset({("kms:SigningAlgorithm", "ECDSA_SHA_256"), ("kms:MessageType", "RAW")}),
    ),
    Call("dynamodb:GetItem", arn("TaskTable")),
    Call("lambda:InvokeFunction", f"{arn('ProvisionWorkerFunction')}:3"),
}


def swapped(action: str, /, **changes: Any) -> Callable[[set[Grant]], set[Grant]]:
    return lambda allowed: {replace(each, **changes) if each.action == action else each for each in allowed}


MUTATIONS: dict[str, tuple[Callable[[set[Grant]], set[Grant]], str]] = {
    "an additional action": (
        lambda allowed: allowed | {Grant("dynamodb:DeleteItem", arn("TaskTable"))},
        "never used",
    ),
    "an additional resource": (
        lambda allowed: allowed | {Grant("dynamodb:GetItem", arn("OtherTable"))},
        "never used",
    ),
    "a missing action": (
        lambda allowed: {each for each in allowed if each.action != "kms:Sign"},
        "not allowed",
    ),
    "another resource": (swapped("dynamodb:GetItem", resource=arn("OtherTable")), "not allowed"),
    "every action": (swapped("dynamodb:GetItem", action="dynamodb:*"), "any action"),
    "every action of a kind": (swapped("dynamodb:GetItem", action="dynamodb:Get*"), "any action"),
    "every resource": (swapped("dynamodb:GetItem", resource="*"), "any resource"),
    "every index of a table": (swapped("dynamodb:GetItem", resource=f"{arn('TaskTable')}*"), "any resource"),
    "the function without its versions": (
        swapped("lambda:InvokeFunction", resource=arn("ProvisionWorkerFunction")),
        "not allowed",
    ),
    "a condition that does not hold": (
        swapped("kms:Sign", conditions=frozenset({("kms:MessageType", "DIGEST")})),
        "not allowed",
    ),
}


def test_a_correct_role_has_no_findings() -> None:
    assert findings(ALLOWED, ASKED, {}, WILDCARDS) == []


@pytest.mark.parametrize(("mutate", "finding"), MUTATIONS.values(), ids=MUTATIONS.keys())
def test_a_wrong_role_has_a_finding(mutate: Callable[[set[Grant]], set[Grant]], finding: str) -> None:
    found = findings(mutate(set(ALLOWED)), ASKED, {}, WILDCARDS)
    assert any(each.startswith(finding) for each in found), found


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Deny", "Action": "kms:Sign", "Resource": "*"},
        {"Effect": "Allow", "NotAction": "kms:Sign", "Resource": "*"},
        {"Effect": "Allow", "Action": "kms:Sign", "NotResource": arn("StateKey")},
        {"Effect": "Allow", "Action": "kms:Sign", "Resource": "*", "Condition": {"StringLike": {}}},
    ],
)
def test_a_statement_in_an_unknown_form_is_refused(statement: Mapping[str, Any]) -> None:
    with pytest.raises((AssertionError, KeyError)):
        grants([statement])


# Roles and policies of other resources


def test_codedeploy_may_shift_traffic_of_functions_with_a_route_and_read_alarms() -> None:
    """The permissions are those of AWSCodeDeployRoleForLambdaLimited without hooks and revisions."""
    role = properties("DeploymentRole")
    [assume] = role["AssumeRolePolicyDocument"]["Statement"]
    assert assume["Principal"] == {"Service": "codedeploy.amazonaws.com"}
    with_routes = [FRONT_DOOR, *TOOLS]
    # Names of alarms are unknown before the deployment, and DescribeAlarms without names reads all.
    alarms = "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*"
    assert grants(role["Policies"][0]["PolicyDocument"]["Statement"]) == {
        *(
            Grant(f"lambda:{each}Alias", arn(function))
            for function in with_routes
            for each in ("Get", "Update")
        ),
        *(
            Grant("lambda:GetProvisionedConcurrencyConfig", f"{arn(function)}:live")
            for function in with_routes
        ),
        Grant("cloudwatch:DescribeAlarms", alarms),
    }


def test_there_are_no_further_roles_and_policies() -> None:
    roles = {role_of(function) for function in FOLDERS}
    assert set(of_type("AWS::IAM::Role")) == roles | {"DeploymentRole"}
    policies = {
        name for name, each in deployed(**WAYS["delegated-queue"]).items() if "Policy" in each["Type"]
    }
    assert policies == {
        *("StatePolicy", "ParkedCallsPolicy"),
        *("ProvisionWorkerInvokesItself", "ProvisionWorkerReadsItsQueue"),
    }


def test_outside_roles_only_key_policies_have_a_wildcard_resource() -> None:
    found = {name for name, each in deployed().items() if '"Resource": "*"' in json.dumps(each)}
    assert found == set(of_type("AWS::KMS::Key"))
