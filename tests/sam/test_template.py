"""The meaning of template.yaml and its nested templates for every AuthMode.

test_state_keys.py covers the keys, test_settings.py MCP_SETTINGS, test_production.py operation in
production, and test_least_privilege.py the permissions of roles.
"""

import json
import re
from typing import Any

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
    declared_parameters,
    deployed,
    documented_block,
    lint,
    of_type,
    properties,
    role_of,
    stack,
    statements,
    variables,
)

EXAMPLES = {
    "ApprovalFunction",
    "ProvisionFunction",
    "SummarizeFunction",
    "WeatherFunction",
    "WorkItemsFunction",
}
WORKERS = sorted(WORKER_OF.values())
QUEUE_OF = {worker: worker.replace("WorkerFunction", "TasksQueue") for worker in WORKERS}
LAMBDA = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:"
METADATA = "/.well-known/{proxy+}"
ROUTES = {"POST /mcp", "GET /mcp", "DELETE /mcp", "ANY /tools/{tool}"}
PAGE_ROUTE = "ANY /approvals/{reference}"
QUESTIONS = "/mcp/questions"
PAGE_ROUTES = {PAGE_ROUTE, f"GET {QUESTIONS}", f"POST {QUESTIONS}"}
METADATA_ROUTES = {f"{verb} {METADATA}" for verb in ("GET", "HEAD")}
CARD_ROUTES = {f"{verb} /mcp/server-card" for verb in ("GET", "HEAD", "OPTIONS")}
PUBLIC_ROUTES = PAGE_ROUTES | METADATA_ROUTES | CARD_ROUTES


every_auth_mode = pytest.mark.parametrize("auth_mode", AUTH_MODES)
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


def test_the_sources_are_lint_clean():
    found = lint(ROOT / "template.yaml", *sorted((ROOT / "platform").rglob("*.yaml")))
    # Actions of API Gateway that CloudFormation's registry names, and that cfn-lint's list does not have.
    known = ("'tagresource'", "'untagresource'")
    assert [each for each in found if not each["Message"].startswith(known)] == []


def test_the_authorization_mode_has_no_default():
    parameter = declared_parameters()["AuthMode"]
    assert "Default" not in parameter
    assert sorted(parameter["AllowedValues"]) == sorted(AUTH_MODES)


AUTHORIZATION = {
    "none": ("NONE", None),
    "bearer": ("NONE", None),
    "jwt": ("JWT", "${JwtAuthorizer}"),
    "lambda": ("CUSTOM", "${LambdaAuthorizer}"),
    "iam": ("AWS_IAM", None),
}


def routes_of(auth_mode: str, **more: str) -> dict[str, Any]:
    given = {"AuthMode": auth_mode, **AUTH_MODES[auth_mode], **more}
    return {route["RouteKey"]: route for route in of_type("AWS::ApiGatewayV2::Route", **given).values()}


@every_auth_mode
def test_every_route_is_authorized_according_to_the_mode_except_pages_cards_and_metadata(auth_mode):
    """Links of pages have a token. Without a name or an issuer, the function answers 404."""
    found = {
        key: (route["AuthorizationType"], route.get("AuthorizerId"))
        for key, route in routes_of(auth_mode).items()
    }
    expected = dict.fromkeys(ROUTES, AUTHORIZATION[auth_mode])
    assert found == {**expected, **dict.fromkeys(PUBLIC_ROUTES, ("NONE", None))}
    # The settings of the stage apply to each route, and no route has settings of its own.
    stage = properties("ApiStage", AuthMode=auth_mode, **AUTH_MODES[auth_mode])
    assert stage["DefaultRouteSettings"].keys() == {"ThrottlingRateLimit", "ThrottlingBurstLimit"}
    assert "RouteSettings" not in stage
    assert variables(FRONT_DOOR)["MCP_AUDIENCE"].endswith(QUESTIONS.removesuffix("/questions"))


def test_the_front_door_knows_the_name_of_its_card():
    assert variables(FRONT_DOOR, ServerCard="com.example/tools")["MCP_SERVER_CARD"] == "com.example/tools"
    assert variables(FRONT_DOOR)["MCP_SERVER_CARD"] == ""


SETTING_OF = {
    "TokenJwksUri": ("MCP_TOKEN_JWKS_URI", "https://issuer.example/keys", {"bearer"}),
    "TokenAlgorithms": ("MCP_TOKEN_ALGORITHMS", "ES256", {"bearer"}),
    "TokenType": ("MCP_TOKEN_TYPE", "at+jwt", {"bearer"}),
    "TokenAudience": ("MCP_TOKEN_AUDIENCE", "client-id", {"bearer"}),
    "ScopePrefix": ("MCP_SCOPE_PREFIX", "api://app/", {"bearer", "jwt", "lambda"}),
    "IamPrincipal": ("MCP_IAM_PRINCIPAL", "session", {"iam"}),
    "PrincipalContextKey": ("MCP_PRINCIPAL_CONTEXT_KEY", "user", {"lambda"}),
    "ScopeContextKey": ("MCP_SCOPE_CONTEXT_KEY", "scopes", {"lambda"}),
}
"""The parameters of some modes: their environment variable, a value and the modes."""


@every_auth_mode
def test_settings_of_another_mode_have_no_effect(auth_mode):
    everything = {name: value for mode in AUTH_MODES.values() for name, value in mode.items()}
    given = {**everything, **{name: value for name, (_, value, _) in SETTING_OF.items()}}
    assert stack(AuthMode=auth_mode, **given).broken_rules == []
    environment = variables(FRONT_DOOR, AuthMode=auth_mode, **given)
    for setting, value, modes in SETTING_OF.values():
        assert environment.get(setting) == (value if auth_mode in modes else None), setting
    if auth_mode in ("none", "iam"):
        assert "MCP_TOKEN_ISSUER" not in environment


def audience_of_authorizer(**given: str) -> list[str]:
    needed = AUTH_MODES["jwt"]
    authorizer = properties("JwtAuthorizer", AuthMode="jwt", **{**needed, **given})["JwtConfiguration"]
    assert authorizer["Issuer"] == needed["TokenIssuer"]
    audience: list[str] = authorizer["Audience"]
    return audience


def test_the_jwt_authorizer_may_accept_other_audiences_than_the_endpoint():
    assert audience_of_authorizer(TokenAudience="mcp, client") == ["mcp", "client"]


@every_auth_mode
def test_a_mode_has_its_authorizer_and_functions_know_the_issuer(auth_mode):
    given = {"AuthMode": auth_mode, **AUTH_MODES[auth_mode]}
    authorizers = {"jwt": {"JwtAuthorizer"}, "lambda": {"LambdaAuthorizer"}}
    assert set(of_type("AWS::ApiGatewayV2::Authorizer", **given)) == authorizers.get(auth_mode, set())
    environment, issuer = variables(FRONT_DOOR, **given), "https://issuer.example"
    assert environment["MCP_AUTH_MODE"] == auth_mode
    issuers = {"bearer": issuer, "jwt": issuer, "lambda": ""}
    assert environment.get("MCP_TOKEN_ISSUER") == issuers.get(auth_mode)
    if auth_mode == "lambda":  # clients are sent to an issuer that is given
        assert variables(FRONT_DOOR, **given, TokenIssuer=issuer)["MCP_TOKEN_ISSUER"] == issuer


@every_auth_mode
def test_the_parameters_of_a_mode_are_required(auth_mode):
    needed = AUTH_MODES[auth_mode]
    assert stack(AuthMode=auth_mode, **needed).broken_rules == []
    for left_out in needed:
        given = {name: value for name, value in needed.items() if name != left_out}
        [broken] = stack(AuthMode=auth_mode, **given).broken_rules
        assert left_out in broken


def test_the_result_of_a_lambda_authorizer_is_cached_per_route():
    authorizer = properties("LambdaAuthorizer", AuthMode="lambda", **AUTH_MODES["lambda"])
    assert authorizer["IdentitySource"] == ["$request.header.Authorization", "$context.routeKey"]


INTEGRATION_OF = {"EndpointIntegration": FRONT_DOOR, "ApprovalIntegration": "ApprovalFunction"}


def test_every_route_leads_to_the_front_door_except_the_approval_page():
    targets = {key: route["Target"] for key, route in routes_of("bearer").items()}
    assert targets.pop(PAGE_ROUTE) == "integrations/${ApprovalIntegration}"
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
    "WorkItemsFunction": {"AZURE_DEVOPS_SECRET", "AZURE_DEVOPS_URL"},
}


def environment(function: str) -> dict[str, str]:
    found: dict[str, str] = properties(function)["Environment"]["Variables"]
    return found


@every_tool
def test_a_tool_has_the_variables_of_every_function_and_those_of_its_tasks(tool):
    tasks = {"MCP_TASK_WORKER", "MCP_TASK_QUEUE"} if tool in WORKER_OF else set()
    expected = SHARED | tasks | OWN.get(tool, set())
    assert set(environment(tool)) & expected == expected
    assert tool not in EXAMPLES or set(environment(tool)) == expected


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
