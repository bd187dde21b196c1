"""A role allows what its function asks of AWS in every example's flows, and nothing else.

The calls are those of the functions themselves, recorded while they serve clients on this computer. Nothing
there refuses one, so what is compared is the list.
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
"""Between them, every choice that changes what a function asks for."""

LAMBDA_ITSELF = {
    ("sqs:SendMessage", arn("UndeliveredTasks")): "Lambda's on-failure destination",
    **{
        (f"sqs:{operation}", arn("ProvisionTasks")): "Lambda's event source mapping"
        for operation in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
    },
}
"""What Lambda does with a worker's role."""


def for_services(function: str) -> dict[tuple[str, str], str]:
    """What a role is used for by AWS itself, in the function's name, with the reason."""
    group = arn(name_in(properties(function)["LoggingConfig"]["LogGroup"]))
    writes = ("logs:CreateLogStream", "logs:PutLogEvents")
    logs = {(action, group): "Lambda writes what a function prints" for action in writes}
    return logs | LAMBDA_ITSELF if function in WORKER_OF.values() else logs


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
    """All that the function's role allows, the policies beside it included."""
    beside = [
        statement
        for policy in of_type("AWS::IAM::RolePolicy", **WAYS[way]).values()
        if name_in(policy["RoleName"]) == role_of(function)
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    return grants([*statements(function, **WAYS[way]), *beside])


@every_function
def test_a_role_allows_what_its_function_asks_for_and_nothing_else(
    calls: Mapping[str, set[Call]], way: str, function: str
) -> None:
    asked = calls.get(function, set())
    assert findings(granted(function, way), asked, for_services(function), WILDCARDS) == []


def test_every_function_that_may_call_a_service_was_seen_to(calls: Mapping[str, set[Call]]) -> None:
    assert calls.keys() == FOLDERS.keys()


def test_every_exception_is_still_needed() -> None:
    every = {function: {grant for way in WAYS for grant in granted(function, way)} for function in FOLDERS}
    for function, allowed in every.items():
        assert for_services(function).keys() <= {(grant.action, grant.resource) for grant in allowed}
    wild = {grant.resource for allowed in every.values() for grant in allowed if "*" in grant.resource}
    assert WILDCARDS.keys() == wild


# That it would be noticed

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
    "an action more": (
        lambda allowed: allowed | {Grant("dynamodb:DeleteItem", arn("TaskTable"))},
        "never used",
    ),
    "a resource more": (
        lambda allowed: allowed | {Grant("dynamodb:GetItem", arn("OtherTable"))},
        "never used",
    ),
    "an action less": (
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
    "a condition that is not fulfilled": (
        swapped("kms:Sign", conditions=frozenset({("kms:MessageType", "DIGEST")})),
        "not allowed",
    ),
}


def test_a_role_that_is_right_passes() -> None:
    assert findings(ALLOWED, ASKED, {}, WILDCARDS) == []


@pytest.mark.parametrize(("mutate", "finding"), MUTATIONS.values(), ids=MUTATIONS.keys())
def test_a_role_that_is_wrong_is_found(mutate: Callable[[set[Grant]], set[Grant]], finding: str) -> None:
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
def test_a_statement_that_is_not_understood_is_refused(statement: Mapping[str, Any]) -> None:
    with pytest.raises((AssertionError, KeyError)):
        grants([statement])


# Roles and policies that no function has


def test_codedeploy_may_shift_the_traffic_of_the_functions_with_a_route_and_look_at_alarms() -> None:
    """What AWSCodeDeployRoleForLambdaLimited allows for all functions, without its hooks and revisions."""
    role = properties("DeploymentRole")
    [assume] = role["AssumeRolePolicyDocument"]["Statement"]
    assert assume["Principal"] == {"Service": "codedeploy.amazonaws.com"}
    with_routes = [FRONT_DOOR, *TOOLS]
    # An alarm's name is not known before the deployment, and DescribeAlarms without names asks for all.
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
    assert policies == {"StatePolicy", "ProvisionWorkerInvokesItself", "ProvisionWorkerReadsItsQueue"}


def test_outside_roles_only_a_keys_policy_says_any_resource_which_is_the_key() -> None:
    found = {name for name, each in deployed().items() if '"Resource": "*"' in json.dumps(each)}
    assert found == set(of_type("AWS::KMS::Key"))
