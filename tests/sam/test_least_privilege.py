"""A role allows exactly the AWS calls of its function in the flows of all examples.

The calls are recorded while the functions serve clients on this computer. The stand-ins
refuse no call, so the tests compare lists.
"""

import json

import pytest

from support.recorded_calls import IDENTITY, LAMBDA, SECRETS, SQS, after_a_deployment, record
from support.role_permissions import Grant, findings, grants
from support.transformed_template import (
    FOLDERS,
    WORKER_OF,
    arn,
    deployed,
    of_type,
    properties,
    role_of,
    statements,
)

WAYS: dict[str, dict[str, str]] = {
    "direct-invoke": {"StateSigning": "direct", "TaskDelivery": "invoke"},
    "delegated-queue": {"StateSigning": "delegated", "TaskDelivery": "queue", "AuditLog": "hash"},
}
"""Parameters that cover every choice with influence on AWS calls."""

ROLES = {role: {each for each in FOLDERS if role_of(each) == role} for role in map(role_of, FOLDERS)}
"""The functions of each role."""

LAMBDA_ITSELF = {
    ("sqs:SendMessage", arn("UndeliveredTasks")): "Lambda's dead-letter queue",
    **{
        (f"sqs:{operation}", f"{SQS}_*_tasks"): "Lambda's event source mapping"
        for operation in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
    },
}
"""Actions of Lambda itself with the role of a worker."""


ASLEEP = {
    (f"sqs:{operation}", f"{SQS}_*_tasks"): "a task sleeps if its provider fails four times in a row"
    for operation in ("SendMessage", "ChangeMessageVisibility")
}
"""Actions of a worker whose task sleeps, which no recorded flow does."""


def for_services(role: str) -> dict[tuple[str, str], str]:
    """Return the actions of AWS services with a role, and of flows that are not recorded; with reasons."""
    writes = ("logs:CreateLogStream", "logs:PutLogEvents")
    logs = {(action, arn("Logs")): "Lambda writes what a function prints" for action in writes}
    return logs | LAMBDA_ITSELF | ASLEEP if set(WORKER_OF.values()) & ROLES[role] else logs


WILDCARDS = {
    f"{LAMBDA}_*:live": "the catalog of the front door names the owners",
    f"{LAMBDA}_*_worker": "all tools with tasks share a table, and the front door serves their tasks",
    f"{LAMBDA}_*_worker:*": "a task names the version that created it, one of each deployment",
    f"{SQS}_*_tasks": "all tools with tasks share a table, and the front door serves their tasks",
    f"{SECRETS}${{AWS::StackName}}/azure-devops-??????": "Secrets Manager adds six characters to the name",
    f"{IDENTITY}*": "SES checks the identity of the sender, and in its sandbox that of the recipient",
}

every_role = pytest.mark.parametrize("role", sorted(ROLES))


@pytest.fixture(scope="module")
def calls_of_ways(tmp_path_factory):
    """Return the calls by way. After a deployment, both invoke workers of tasks of an older version."""
    older = after_a_deployment(tmp_path_factory.mktemp("template"))
    invoking = record(WAYS["direct-invoke"], older)
    found = record(WAYS["delegated-queue"])
    for function, calls in invoking.items():
        found[function] |= {call for call in calls if call.action == "lambda:InvokeFunction"}
    return {"direct-invoke": invoking, "delegated-queue": found}


@pytest.fixture(params=WAYS)
def way(request):
    return str(request.param)


@pytest.fixture
def calls(calls_of_ways, way):
    return calls_of_ways[way]


def granted(role: str, way: str) -> set[Grant]:
    return grants(statements(min(ROLES[role]), **WAYS[way]))


@every_role
def test_a_role_allows_exactly_the_calls_of_its_functions(calls, way, role):
    asked = {call for function in ROLES[role] for call in calls.get(function, set())}
    assert findings(granted(role, way), asked, for_services(role), WILDCARDS) == []


def test_every_function_with_permissions_made_calls(calls):
    assert calls.keys() == FOLDERS.keys()


def test_only_audited_functions_may_write_audit_records_and_none_may_change_them():
    of_logs = {
        grant for role in ROLES for grant in granted(role, "delegated-queue") if "Audit" in grant.resource
    }
    writes = {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert {grant.action for grant in of_logs if grant.resource == arn("AuditLogs")} == writes
    assert {grant.action for grant in of_logs if grant.resource == arn("AuditKey")} == {"kms:GenerateMac"}
    assert not any("Audit" in grant.resource for role in ROLES for grant in granted(role, "direct-invoke"))


def test_every_exception_is_still_needed():
    every = {role: {grant for way in WAYS for grant in granted(role, way)} for role in ROLES}
    for role, allowed in every.items():
        assert for_services(role).keys() <= {(grant.action, grant.resource) for grant in allowed}
    resources = {grant.resource for allowed in every.values() for grant in allowed}
    wild = {resource for resource in resources if "*" in resource or "?" in resource}
    assert WILDCARDS.keys() == wild


def test_codedeploy_may_shift_traffic_of_functions_of_the_stack_and_read_alarms():
    """The permissions are those of AWSCodeDeployRoleForLambdaLimited without hooks and revisions."""
    role = properties("DeploymentRole")
    [assume] = role["AssumeRolePolicyDocument"]["Statement"]
    assert assume["Principal"] == {"Service": "codedeploy.amazonaws.com"}
    # Names of alarms are unknown before the deployment, and DescribeAlarms without names reads all.
    alarms = "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:*"
    assert grants(role["Policies"][0]["PolicyDocument"]["Statement"]) == {
        Grant("lambda:GetAlias", f"{LAMBDA}_*"),
        Grant("lambda:UpdateAlias", f"{LAMBDA}_*"),
        Grant("lambda:GetProvisionedConcurrencyConfig", f"{LAMBDA}_*:live"),
        Grant("cloudwatch:DescribeAlarms", alarms),
    }


def test_there_are_no_further_roles_and_policies_and_only_keys_have_a_wildcard_resource():
    assert set(of_type("AWS::IAM::Role")) == {*ROLES, "DeploymentRole"}
    policies = {
        name for name, each in deployed(**WAYS["delegated-queue"]).items() if "Policy" in each["Type"]
    }
    assert policies == {
        "FrontDoorPolicy",
        "FunctionPolicy",
        "ParkedCallsPolicy",
        "StatePolicy",
        "TaskPolicy",
    }
    wild = {name for name, each in deployed().items() if '"Resource": "*"' in json.dumps(each)}
    assert wild == set(of_type("AWS::KMS::Key"))
