"""The meaning of template.yaml and its nested templates.

test_authorization.py covers every AuthMode, test_state_keys.py the keys, test_settings.py MCP_SETTINGS,
test_production.py and test_alarms.py operation in production, and test_least_privilege.py the permissions
of roles.
"""

import json
import re

import pytest

from mcp_roundtrip.deployment.settings import ADOT_WRAPPER, DEFAULTS
from mcp_roundtrip.tasks.transitions import MAX_ATTEMPTS
from support.project import ROOT
from support.transformed_template import (
    AUTH_MODES,
    DOMAIN,
    FOLDERS,
    FRONT_DOOR,
    TOOLS,
    WORKER_OF,
    alias,
    arn,
    deployed,
    documented_block,
    of_type,
    properties,
    role_of,
    routes_of,
    stack,
    statements,
    variables,
)

WORKERS = sorted(WORKER_OF.values())
QUEUE_OF = {worker: worker.replace("WorkerFunction", "TasksQueue") for worker in WORKERS}
LAMBDA = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:"

every_function = pytest.mark.parametrize("function", sorted(FOLDERS))
every_tool = pytest.mark.parametrize("tool", TOOLS)
every_tool_with_tasks = pytest.mark.parametrize(("tool", "worker"), WORKER_OF.items())
every_worker = pytest.mark.parametrize("worker", WORKERS)


def test_every_folder_of_functions_is_one_function_with_an_optional_worker():
    folders = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
    assert sorted(FOLDERS[function] for function in [FRONT_DOOR, *TOOLS]) == folders
    assert all(FOLDERS[tool] == FOLDERS[worker] for tool, worker in WORKER_OF.items())


@every_function
def test_a_function_is_named_by_the_stack_and_its_folder_and_only_lambda_assumes_its_role(function):
    """Patterns of names stand in policies and in MCP_OWNERS; names of stacks contain no underscore."""
    declared, suffix = properties(function), "_worker" if function in WORKERS else ""
    assert declared["FunctionName"] == f"${{AWS::StackName}}_{FOLDERS[function]}{suffix}"
    assert declared["Timeout"] == 900 if function in WORKERS else declared["Timeout"] < 30  # the API's
    [assume] = properties(role_of(function))["AssumeRolePolicyDocument"]["Statement"]
    assert assume == {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }


def test_a_folder_has_a_worker_if_one_of_its_tools_has_tasks():
    catalog = json.loads((ROOT / "functions/front_door/catalog.json").read_text("utf-8"))
    owners = {row["owner"] for row in catalog["tools"] if "task" in row}
    assert {FOLDERS[tool] for tool in WORKER_OF} == owners


def test_the_front_door_knows_the_name_of_its_card():
    assert variables(FRONT_DOOR, ServerCard="com.example/tools")["MCP_SERVER_CARD"] == "com.example/tools"
    assert variables(FRONT_DOOR)["MCP_SERVER_CARD"] == ""


def audience_of_authorizer(**given: str) -> list[str]:
    needed = AUTH_MODES["jwt"]
    authorizer = properties("JwtAuthorizer", AuthMode="jwt", **{**needed, **given})["JwtConfiguration"]
    assert authorizer["Issuer"] == needed["TokenIssuer"]
    audience: list[str] = authorizer["Audience"]
    return audience


INTEGRATION_OF = {"EndpointIntegration": FRONT_DOOR, "ApprovalIntegration": "ApprovalFunction"}


def test_every_route_leads_to_the_front_door_except_the_approval_page():
    targets = {key: route["Target"] for key, route in routes_of("bearer").items()}
    assert targets.pop("ANY /approvals/{reference}") == "integrations/${ApprovalIntegration}"
    assert set(targets.values()) == {"integrations/${EndpointIntegration}"}
    assert {name: "Body" in api for name, api in of_type("AWS::ApiGatewayV2::Api").items()} == {"Api": False}
    integrations = of_type("AWS::ApiGatewayV2::Integration")
    assert integrations.keys() == INTEGRATION_OF.keys()
    for name, function in INTEGRATION_OF.items():
        assert integrations[name]["IntegrationUri"] == alias(function)
        assert integrations[name]["PayloadFormatVersion"] == "2.0"


def test_the_api_restores_the_challenge_that_it_renames():
    restored = [
        {"Destination": "overwrite:header.www-authenticate", "Source": "$response.header.x-mcp-challenge"}
    ]
    parameters = properties("EndpointIntegration")["ResponseParameters"]
    assert parameters == {status: {"ResponseParameters": restored} for status in ("401", "403")}


def test_nothing_but_the_api_may_invoke_a_function():
    by_the_api = {
        "EndpointPermission": (FRONT_DOOR, "*"),
        "ApprovalPermission": ("ApprovalFunction", "*/*/approvals/*"),
    }
    permissions = of_type("AWS::Lambda::Permission")
    assert permissions.keys() == by_the_api.keys()
    for name, (function, path) in by_the_api.items():
        assert permissions[name]["FunctionName"] == alias(function)
        assert permissions[name]["Principal"] == "apigateway.amazonaws.com"
        assert permissions[name]["SourceArn"].endswith(f":${{Api}}/{path}")
    with_authorizer = of_type("AWS::Lambda::Permission", AuthMode="lambda", **AUTH_MODES["lambda"])
    assert set(with_authorizer) == by_the_api.keys() | {"LambdaAuthorizerPermission"}
    assert of_type("AWS::Lambda::Url") == {}


# Roles (test_least_privilege.py covers their actions)


def test_only_a_tool_and_its_worker_share_a_role():
    roles = {function: role_of(function) for function in of_type("AWS::Lambda::Function")}
    for tool, worker in WORKER_OF.items():
        assert roles.pop(worker) == roles[tool]
    assert sorted([*roles.values(), "DeploymentRole"]) == sorted(of_type("AWS::IAM::Role"))


# Environment variables (test_settings.py covers MCP_SETTINGS)

SHARED = {
    "MCP_SETTINGS",
    "POWERTOOLS_LOG_LEVEL",
    "POWERTOOLS_METRICS_NAMESPACE",
    "PYDANTIC_DISABLE_PLUGINS",
    "SETTINGS_VERSION",
}

OWN = {
    "ApprovalFunction": {"APPROVALS_URL", "APPROVAL_SENDER", "APPROVAL_TABLE", "APPROVERS"},
    "ProvisionFunction": {"DATABASES_API_URL"},
    "SummarizeFunction": {"MCP_TASK_TABLE"},
    "WeatherFunction": set[str](),
    "WorkItemsFunction": {"AZURE_DEVOPS_SECRET", "AZURE_DEVOPS_URL"},
}
"""Of each example. Functions that `make new-function` adds may have others."""


def environment(function: str) -> dict[str, str]:
    found: dict[str, str] = properties(function)["Environment"]["Variables"]
    return found


@every_tool
def test_a_tool_has_the_variables_of_every_function_and_those_of_its_tasks(tool):
    tasks = {"MCP_TASK_WORKER", "MCP_TASK_QUEUE"} if tool in WORKER_OF else set()
    expected = SHARED | tasks | OWN.get(tool, set())
    assert set(environment(tool)) & expected == expected
    assert tool not in OWN or set(environment(tool)) == expected


@every_tool_with_tasks
def test_a_tool_dispatches_tasks_to_the_version_of_its_worker_or_to_the_queue(tool, worker):
    version = re.compile(rf"\$\{{{worker}Version[0-9a-f]+\}}")
    own, of_worker = environment(tool), environment(worker)
    assert version.fullmatch(own["MCP_TASK_WORKER"])
    assert own["MCP_TASK_QUEUE"] == of_worker["MCP_TASK_QUEUE"] == f"${{{QUEUE_OF[worker]}}}"
    assert set(own) - set(of_worker) == {"MCP_TASK_WORKER"}
    for delivery in ("invoke", "queue"):
        assert variables(tool, TaskDelivery=delivery)["MCP_TASK_DELIVERY"] == delivery
        assert variables(FRONT_DOOR, TaskDelivery=delivery)["MCP_TASK_DELIVERY"] == delivery
    assert {variables(each)["MCP_TASK_TABLE"] for each in (tool, worker, FRONT_DOOR)} == {"${TaskTable}"}


@every_function
def test_a_function_that_may_not_use_the_table_does_not_have_it_as_a_setting(function):
    """All functions share it. With it, a tool reads the table for clients that cannot be asked."""
    may_use = any(each["Resource"] == arn("TaskTable") for each in statements(function))
    assert bool(variables(function)["MCP_TASK_TABLE"]) is may_use


def test_the_front_door_has_a_pattern_that_the_name_of_every_tool_matches():
    assert set(environment(FRONT_DOOR)) == SHARED
    pattern = variables(FRONT_DOOR)["MCP_OWNERS"]
    for tool in TOOLS:
        name = properties(tool)["FunctionName"]
        assert pattern.replace("*", FOLDERS[tool]) == f"{LAMBDA}{name}:live"
    assert pattern in [resource for s in statements(FRONT_DOOR) for resource in s["Resource"]]


@every_function
def test_the_block_for_traces_adds_the_layer_and_its_script_to_every_function(function):
    layer = documented_block("Traces")["Layers"][1]
    assert properties(function, "Traces")["Layers"] == [*properties(function)["Layers"], layer]
    assert properties(function, "Traces")["TracingConfig"] == {"Mode": "Active"}
    assert variables(function, "Traces")["AWS_LAMBDA_EXEC_WRAPPER"] == ADOT_WRAPPER
    for x_ray in ("enabled", "disabled"):
        actions = {action for each in statements(function, XRay=x_ray) for action in each["Action"]}
        assert ("xray:PutTraceSegments" in actions) is (x_ray == "enabled")


EDGE = {"EndpointUri": "https://edge.example/mcp"}


@pytest.mark.parametrize(
    ("given", "audience", "api"),
    [
        ({}, "${Api.ApiEndpoint}/mcp", "${Api.ApiEndpoint}"),
        (DOMAIN, "https://tools.example/mcp", "https://tools.example"),
        (EDGE, "https://edge.example/mcp", "${Api.ApiEndpoint}"),
        ({**EDGE, **DOMAIN}, "https://edge.example/mcp", "https://tools.example"),
    ],
)
def test_all_functions_share_one_issuer_and_the_front_doors_address_as_audience(given, audience, api):
    environments = [variables(function, **given) for function in FOLDERS]
    assert {v["MCP_AUDIENCE"] for v in environments} == {audience}
    assert audience_of_authorizer(**given) == [audience]
    assert audience_of_authorizer(**given, TokenAudience="mcp, client") == ["mcp", "client"]
    assert variables("ApprovalFunction", **given)["APPROVALS_URL"] == f"{api}/approvals"
    assert {v["MCP_ISSUER"] for v in environments} == {"${AWS::StackName}"}
    assert stack(**given).outputs["McpUrl"] == audience


@every_tool_with_tasks
def test_a_worker_is_its_tools_code_with_another_handler_and_more_time(tool, worker):
    assert FOLDERS[tool] == FOLDERS[worker]
    assert (properties(tool)["Handler"], properties(worker)["Handler"]) == ("app.handler", "app.worker")
    assert properties(worker)["Layers"] == properties(tool)["Layers"]


@every_worker
def test_a_worker_may_dispatch_the_next_and_undelivered_invocations_are_stored_for_14_days(worker):
    allowed = {name for name, f in of_type("AWS::Lambda::Function").items() if "RecursiveLoop" in f}
    assert allowed == set(WORKERS)
    assert properties(worker)["RecursiveLoop"] == "Allow"
    # Without an EventInvokeConfig, Lambda retries twice, for up to six hours.
    assert of_type("AWS::Lambda::EventInvokeConfig") == {}
    assert properties(worker)["DeadLetterConfig"] == {"TargetArn": arn("UndeliveredTasks")}
    assert properties("UndeliveredTasks")["MessageRetentionPeriod"] == 14 * 24 * 3600


@every_worker
@pytest.mark.parametrize("delivery", ["invoke", "queue"])
def test_a_queue_delivers_one_task_per_invocation_and_redelivers_after_a_lost_worker(worker, delivery):
    queue = properties(QUEUE_OF[worker], TaskDelivery=delivery)
    assert properties(worker)["Timeout"] <= queue["VisibilityTimeout"]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == arn("UndeliveredTasks")
    tried_for_s = queue["RedrivePolicy"]["maxReceiveCount"] * DEFAULTS["task_lease_s"]
    assert tried_for_s > max(MAX_ATTEMPTS * DEFAULTS["task_lease_s"], 3 * 3600)
    assert queue["QueueName"] == f"${{AWS::StackName}}_{FOLDERS[worker]}_tasks"
    mapping = properties(f"{worker}Tasks", TaskDelivery=delivery)
    assert mapping == {
        "EventSourceArn": arn(QUEUE_OF[worker]),
        "FunctionName": f"${{{worker}Aliaslive}}",
        "BatchSize": 1,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": 20},
    }


def test_the_table_has_the_keys_of_the_store_expires_items_and_outlives_the_stack():
    table = properties("TaskTable")
    keys = {key["AttributeName"]: key["KeyType"] for key in table["KeySchema"]}
    assert keys == {"pk": "HASH", "sk": "RANGE"}
    assert {each["AttributeType"] for each in table["AttributeDefinitions"]} == {"S"}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "exp", "Enabled": True}
    retained = deployed()["TaskTable"]
    assert (retained["DeletionPolicy"], retained["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
