"""The meaning of template.yaml for every AuthMode.

test_state_keys.py covers the keys, test_production.py operation in production, and test_least_privilege.py
the permissions of roles.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip.settings import DEFAULTS
from mcp_roundtrip.tasks.endings import MAX_ATTEMPTS
from support.project import ROOT
from support.sam_build import SAM, run
from support.transformed_template import (
    AUTH_MODES,
    DOMAIN,
    FOLDERS,
    FRONT_DOOR,
    TOOLS,
    WORKER_OF,
    alias,
    arn,
    broken_rules,
    deployed,
    lint,
    name_in,
    of_type,
    outputs,
    properties,
    role_of,
    transform,
    transformed,
    variables,
)

WORKERS = sorted(WORKER_OF.values())
QUEUE_OF = {"ProvisionWorkerFunction": "ProvisionTasks"}
VERSION = re.compile(r"\$\{ProvisionWorkerFunctionVersion[0-9a-f]+\}")
ROUTE_OF = {FRONT_DOOR: "/mcp"} | {tool: f"/tools/{FOLDERS[tool]}" for tool in TOOLS}
METADATA = "/.well-known/oauth-protected-resource"
ROUTES = {"POST /mcp", "GET /mcp", "DELETE /mcp", *(f"ANY {ROUTE_OF[tool]}" for tool in TOOLS)}
PAGE_ROUTE = "ANY /approvals/{reference}"
QUESTIONS = "/mcp/questions"
PAGE_ROUTES = {PAGE_ROUTE, f"GET {QUESTIONS}", f"POST {QUESTIONS}"}
METADATA_ROUTES = {f"{verb} {METADATA}{suffix}" for verb in ("GET", "HEAD") for suffix in ("", "/mcp")}


def version_of(worker: str) -> str:
    """Return the logical id of the deployed version."""
    [version] = [
        name
        for name, each in of_type("AWS::Lambda::Version").items()
        if name_in(each["FunctionName"]) == worker
    ]
    return version


every_auth_mode = pytest.mark.parametrize("auth_mode", AUTH_MODES)
every_function = pytest.mark.parametrize("function", sorted(FOLDERS))
every_function_with_a_route = pytest.mark.parametrize("function", ROUTE_OF)
every_tool = pytest.mark.parametrize("tool", TOOLS)
every_tool_with_tasks = pytest.mark.parametrize(("tool", "worker"), WORKER_OF.items())
every_worker = pytest.mark.parametrize("worker", WORKERS)


# Consistency and lint


def test_every_folder_of_functions_is_one_function_with_an_optional_worker() -> None:
    folders = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
    assert sorted(FOLDERS[function] for function in ROUTE_OF) == folders
    assert {FOLDERS[tool]: FOLDERS[worker] for tool, worker in WORKER_OF.items()} == {
        "provision": "provision"
    }


def test_a_folder_has_a_worker_if_one_of_its_tools_has_tasks() -> None:
    catalog = json.loads((ROOT / "functions/front_door/catalog.json").read_text("utf-8"))
    owners = {row["owner"] for row in catalog["tools"] if "task" in row}
    assert {FOLDERS[tool] for tool in WORKER_OF} == owners


def test_the_source_is_lint_clean() -> None:
    done = run(SAM, "validate", "--lint")
    assert done.returncode == 0, done.stderr


def test_the_transform_is_lint_clean(tmp_path: Path) -> None:
    output = tmp_path / "transformed.yaml"
    output.write_text(transform())
    assert lint(output) == []


# Authorization


def test_the_authorization_mode_has_no_default() -> None:
    parameter = transformed()["Parameters"]["AuthMode"]
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
def test_every_route_is_authorized_according_to_the_mode(auth_mode: str) -> None:
    routes = routes_of(auth_mode)
    assert routes.keys() - METADATA_ROUTES == ROUTES | PAGE_ROUTES
    assert {(routes[key]["AuthorizationType"], routes[key].get("AuthorizerId")) for key in ROUTES} == {
        AUTHORIZATION[auth_mode]
    }


@every_auth_mode
def test_the_approval_page_needs_no_access_token_because_its_links_have_a_token(auth_mode: str) -> None:
    route = routes_of(auth_mode)[PAGE_ROUTE]
    assert (route["AuthorizationType"], route.get("AuthorizerId")) == ("NONE", None)
    assert route["Target"] == "integrations/${ApprovalIntegration}"


@every_auth_mode
def test_the_question_page_needs_no_access_token_and_its_stage_is_throttled(auth_mode: str) -> None:
    routes = routes_of(auth_mode)
    for method in ("GET", "POST"):
        route = routes[f"{method} {QUESTIONS}"]
        assert (route["AuthorizationType"], route.get("AuthorizerId")) == ("NONE", None)
        assert route["Target"] == "integrations/${FrontDoorIntegration}"
    # The settings of the stage apply to each route, and no route has settings of its own.
    stage = properties("ApiStage", AuthMode=auth_mode, **AUTH_MODES[auth_mode])
    assert stage["DefaultRouteSettings"].keys() == {"ThrottlingRateLimit", "ThrottlingBurstLimit"}
    assert "RouteSettings" not in stage
    assert variables(FRONT_DOOR)["MCP_AUDIENCE"].endswith(QUESTIONS.removesuffix("/questions"))


@pytest.mark.parametrize(
    ("given", "url"),
    [({}, "${Api.ApiEndpoint}/approvals"), (DOMAIN, "https://tools.example/approvals")],
)
def test_the_approval_page_is_on_the_address_of_the_api(given: dict[str, str], url: str) -> None:
    assert variables("ApprovalFunction", **given)["APPROVALS_URL"] == url


@every_auth_mode
def test_the_token_metadata_is_public_in_every_mode_with_tokens(auth_mode: str) -> None:
    routes = routes_of(auth_mode)
    metadata = [route for key, route in routes.items() if key in METADATA_ROUTES]
    assert len(metadata) == (len(METADATA_ROUTES) if auth_mode in ("bearer", "jwt") else 0)
    for route in metadata:
        assert (route["AuthorizationType"], route.get("AuthorizerId")) == ("NONE", None)
        assert route["Target"] == "integrations/${FrontDoorIntegration}"


def test_a_lambda_authorizer_with_an_issuer_has_clients_sent_there() -> None:
    issuer = {"TokenIssuer": "https://issuer.example"}
    assert routes_of("lambda", **issuer).keys() == ROUTES | METADATA_ROUTES | PAGE_ROUTES
    assert variables(FRONT_DOOR, AuthMode="lambda", **AUTH_MODES["lambda"], **issuer)["MCP_TOKEN_ISSUER"]


@pytest.mark.parametrize("auth_mode", ["none", "iam", "jwt"])
def test_an_issuer_without_effect_is_refused(auth_mode: str) -> None:
    given = {**AUTH_MODES[auth_mode], "TokenIssuer": "https://issuer.example"}
    [broken] = broken_rules(AuthMode=auth_mode, **given)
    assert "TokenIssuer" in broken


@pytest.mark.parametrize(
    ("name", "value", "mode"),
    [
        ("TokenJwksUri", "https://issuer.example/keys", "bearer"),
        ("TokenAlgorithms", "ES256", "bearer"),
        ("TokenType", "at+jwt", "bearer"),
        ("IamPrincipal", "session", "iam"),
        ("PrincipalContextKey", "user", "lambda"),
        ("ScopeContextKey", "scopes", "lambda"),
    ],
)
def test_settings_that_functions_refuse_are_refused_by_the_template(name: str, value: str, mode: str) -> None:
    for auth_mode, needed in AUTH_MODES.items():
        broken = broken_rules(AuthMode=auth_mode, **{**needed, name: value})
        assert [name in rule for rule in broken] == ([] if auth_mode == mode else [True])


@every_auth_mode
def test_functions_know_the_issuer_of_tokens(auth_mode: str) -> None:
    environment = variables(FRONT_DOOR, AuthMode=auth_mode, **AUTH_MODES[auth_mode])
    assert environment["MCP_AUTH_MODE"] == auth_mode
    assert environment["MCP_TOKEN_ISSUER"] == (
        "https://issuer.example" if auth_mode in ("bearer", "jwt") else ""
    )


@every_auth_mode
def test_an_authorizer_exists_only_in_its_own_mode(auth_mode: str) -> None:
    authorizers = of_type("AWS::ApiGatewayV2::Authorizer", AuthMode=auth_mode, **AUTH_MODES[auth_mode])
    assert set(authorizers) == {"jwt": {"JwtAuthorizer"}, "lambda": {"LambdaAuthorizer"}}.get(
        auth_mode, set()
    )


def test_only_routes_define_paths() -> None:
    assert "Body" not in properties("Api")
    assert set(of_type("AWS::ApiGatewayV2::Api")) == {"Api"}


@every_auth_mode
def test_the_parameters_of_a_mode_are_required(auth_mode: str) -> None:
    needed = AUTH_MODES[auth_mode]
    assert broken_rules(AuthMode=auth_mode, **needed) == []
    for left_out in needed:
        given = {name: value for name, value in needed.items() if name != left_out}
        [broken] = broken_rules(AuthMode=auth_mode, **given)
        assert left_out in broken


def test_the_result_of_a_lambda_authorizer_is_cached_per_route() -> None:
    authorizer = properties("LambdaAuthorizer", AuthMode="lambda", **AUTH_MODES["lambda"])
    assert authorizer["IdentitySource"] == ["$request.header.Authorization", "$context.routeKey"]


# Routes


@every_function_with_a_route
def test_a_route_leads_to_its_function_and_only_that_path_may_invoke_it(function: str) -> None:
    base = function.removesuffix("Function")
    integration, permission = properties(f"{base}Integration"), properties(f"{function}McpPermission")
    routes = [route for key, route in routes_of("none").items() if key.split()[1] == ROUTE_OF[function]]

    assert {route["Target"] for route in routes} == {f"integrations/${{{base}Integration}}"}
    assert integration["IntegrationUri"] == permission["FunctionName"] == alias(function)
    assert integration["PayloadFormatVersion"] == "2.0"
    assert permission["SourceArn"].endswith(f":${{Api}}/*/*{ROUTE_OF[function]}")


def test_nothing_else_may_invoke_a_function() -> None:
    metadata = {
        f"{FRONT_DOOR}{event}{suffix}Permission": f":${{Api}}/*/{method}{path}"
        for event, path in (("ResourceMetadata", METADATA), ("ResourceMetadataOfMcp", f"{METADATA}/mcp"))
        for suffix, method in (("", "GET"), ("Head", "HEAD"))
    }
    pages = {
        "ApprovalFunctionPagePermission": ":${Api}/*/*/approvals/*",
        f"{FRONT_DOOR}QuestionPagePermission": f":${{Api}}/*/*{QUESTIONS}",
    }
    others = {**metadata, **pages}
    by_the_api = {f"{function}McpPermission" for function in ROUTE_OF} | others.keys()
    assert set(of_type("AWS::Lambda::Permission")) == by_the_api
    for permission, source in others.items():
        assert properties(permission)["SourceArn"].endswith(source)
    with_authorizer = of_type("AWS::Lambda::Permission", AuthMode="lambda", **AUTH_MODES["lambda"])
    assert set(with_authorizer) == by_the_api | {"LambdaAuthorizerPermission"}
    assert of_type("AWS::Lambda::Url") == {}


@every_function_with_a_route
def test_the_timeout_of_a_function_is_below_that_of_the_api(function: str) -> None:
    assert properties(function)["Timeout"] < 30


# Roles (test_least_privilege.py covers their actions)


def test_every_function_has_a_separate_role() -> None:
    roles = [role_of(function) for function in of_type("AWS::Lambda::Function")]
    assert sorted([*roles, "DeploymentRole"]) == sorted(of_type("AWS::IAM::Role"))
    assert len(roles) == len(set(roles)) == len(FOLDERS)


@every_function
def test_only_lambda_may_assume_the_role_of_a_function(function: str) -> None:
    [assume] = properties(role_of(function))["AssumeRolePolicyDocument"]["Statement"]
    assert assume == {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }


def test_every_function_and_the_api_have_separate_log_groups() -> None:
    groups = [name_in(properties(function)["LoggingConfig"]["LogGroup"]) for function in FOLDERS]
    assert sorted([*groups, "ApiLogs"]) == sorted(of_type("AWS::Logs::LogGroup"))


def test_only_workers_have_separate_policies() -> None:
    roles = {name_in(policy["RoleName"]) for policy in of_type("AWS::IAM::RolePolicy").values()}
    assert roles == set(map(role_of, WORKERS))
    assert of_type("AWS::SQS::QueuePolicy") == {}


# Environment variables

SHARED = {
    "MCP_ALLOWED_ORIGINS",
    "MCP_AUDIENCE",
    "MCP_AUTH_MODE",
    "MCP_IAM_PRINCIPAL",
    "MCP_ISSUER",
    "MCP_MAX_OPEN_TASKS",
    "MCP_PRINCIPAL_CONTEXT_KEY",
    "MCP_REVOKED_CERTIFICATES",
    "MCP_SCOPE_CONTEXT_KEY",
    "MCP_STATE_ENCRYPTION",
    "MCP_STATE_ENCRYPTION_KEY_ARN",
    "MCP_STATE_KEY_ARN",
    "MCP_STATE_PUBLIC_KEYS",
    "MCP_STATE_SIGNING",
    "MCP_TOKEN_ALGORITHMS",
    "MCP_TOKEN_ISSUER",
    "MCP_TOKEN_JWKS_URI",
    "MCP_TOKEN_TYPE",
    "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS",
    "MCP_TRUSTED_STATE_KEY_ARNS",
    "POWERTOOLS_LOG_LEVEL",
    "POWERTOOLS_SERVICE_NAME",
    "PYDANTIC_DISABLE_PLUGINS",
    "SETTINGS_VERSION",
}


OWN = {
    "ApprovalFunction": {"APPROVALS_URL", "APPROVAL_SENDER", "APPROVAL_TABLE", "APPROVERS"},
    "ProvisionFunction": {"DATABASES_API_URL"},
    "WorkItemsFunction": {"AZURE_DEVOPS_SECRET", "AZURE_DEVOPS_URL"},
    "WeatherFunction": {"GEOCODING_API_URL", "WEATHER_API_URL"},
}


PARKS_CALLS = {"ApprovalFunction", "ProvisionFunction", "WeatherFunction", "WorkItemsFunction"}
"""The functions that ask a user."""


@every_tool
def test_a_tool_has_the_variables_of_every_function_and_those_of_its_tasks(tool: str) -> None:
    tasks = {"MCP_TASK_WORKER"} if tool in WORKER_OF else set()
    table = {"MCP_TASK_TABLE"} if tool in PARKS_CALLS else set()
    assert set(variables(tool)) == SHARED | table | tasks | OWN.get(tool, set())


@every_tool_with_tasks
def test_a_tool_its_worker_and_the_front_door_share_the_table(tool: str, worker: str) -> None:
    assert VERSION.fullmatch(variables(tool)["MCP_TASK_WORKER"])
    assert variables(tool, TaskDelivery="queue")["MCP_TASK_WORKER"] == f"${{{QUEUE_OF[worker]}}}"
    own = {"MCP_TASK_TABLE", "MCP_TASK_WAKE_QUEUE"}
    assert set(variables(worker)) == SHARED | own | OWN.get(tool, set())
    assert variables(worker)["MCP_TASK_WAKE_QUEUE"] == f"${{{QUEUE_OF[worker]}}}"
    assert {variables(each)["MCP_TASK_TABLE"] for each in (tool, worker, FRONT_DOOR)} == {"${TaskTable}"}


def test_the_front_door_has_the_owner_of_every_tool() -> None:
    assert set(variables(FRONT_DOOR)) == SHARED | {"MCP_OWNERS", "MCP_TASK_TABLE"}
    owners = json.loads(variables(FRONT_DOOR)["MCP_OWNERS"])
    assert owners == {FOLDERS[tool]: f"{arn(tool)}:live" for tool in TOOLS}


@every_function
def test_logs_and_metrics_of_a_function_have_the_name_of_its_folder(function: str) -> None:
    worker = "_worker" if function in WORKERS else ""
    assert variables(function)["POWERTOOLS_SERVICE_NAME"] == FOLDERS[function] + worker


@pytest.mark.parametrize(
    ("given", "audience"),
    [
        ({}, "${Api.ApiEndpoint}/mcp"),
        (DOMAIN, "https://tools.example/mcp"),
        ({"EndpointUri": "https://edge.example/mcp"}, "https://edge.example/mcp"),
        ({"EndpointUri": "https://edge.example/mcp", **DOMAIN}, "https://edge.example/mcp"),
    ],
)
def test_all_functions_share_one_issuer_and_the_front_doors_address_as_audience(
    given: dict[str, str], audience: str
) -> None:
    environments = [variables(function, **given) for function in FOLDERS]
    assert {v["MCP_AUDIENCE"] for v in environments} == {audience}
    assert {v["MCP_ISSUER"] for v in environments} == {"${AWS::StackName}"}
    assert outputs(**given)["McpUrl"] == audience


# Workers


@every_tool_with_tasks
def test_a_worker_is_its_tools_code_with_another_handler_and_more_time(tool: str, worker: str) -> None:
    assert FOLDERS[tool] == FOLDERS[worker]
    assert (properties(tool)["Handler"], properties(worker)["Handler"]) == ("app.handler", "app.worker")
    assert properties(worker)["Timeout"] == 900
    assert properties(worker)["Layers"] == properties(tool)["Layers"]


@every_worker
def test_recursive_loop_detection_is_off_for_workers(worker: str) -> None:
    allowed = {name for name, f in of_type("AWS::Lambda::Function").items() if "RecursiveLoop" in f}
    assert allowed == set(WORKERS)
    assert properties(worker)["RecursiveLoop"] == "Allow"


@every_worker
def test_an_invocation_of_a_worker_is_retried_twice_and_then_stored_for_14_days(worker: str) -> None:
    invocations = deployed()[f"{worker.removesuffix('Function')}Invocations"]
    assert invocations["UpdateReplacePolicy"] == "Retain", "tasks of the previous version still run"
    assert invocations["Properties"] == {
        "FunctionName": f"${{{worker}}}",
        "Qualifier": f"${{{version_of(worker)}.Version}}",
        "MaximumRetryAttempts": 2,
        "MaximumEventAgeInSeconds": 6 * 3600,
        "DestinationConfig": {"OnFailure": {"Destination": arn("UndeliveredTasks")}},
    }
    queue = properties("UndeliveredTasks")
    assert queue["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert queue["SqsManagedSseEnabled"] is True


@every_worker
@pytest.mark.parametrize("delivery", ["invoke", "queue"])
def test_a_queue_delivers_one_task_per_invocation_and_redelivers_after_a_lost_worker(
    worker: str, delivery: str
) -> None:
    queue = properties(QUEUE_OF[worker], TaskDelivery=delivery)
    assert properties(worker)["Timeout"] <= queue["VisibilityTimeout"]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == arn("UndeliveredTasks")
    tried_for_s = queue["RedrivePolicy"]["maxReceiveCount"] * DEFAULTS["task_lease_s"]
    assert tried_for_s > max(MAX_ATTEMPTS * DEFAULTS["task_lease_s"], 3 * 3600)
    assert queue["SqsManagedSseEnabled"] is True
    mapping = properties(f"{QUEUE_OF[worker]}ToWorker", TaskDelivery=delivery)
    assert mapping == {
        "EventSourceArn": arn(QUEUE_OF[worker]),
        "FunctionName": f"${{{worker}Aliaslive}}",
        "BatchSize": 1,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": "20"},
    }


def test_every_worker_has_one_queue() -> None:
    assert set(of_type("AWS::SQS::Queue")) == {"UndeliveredTasks", *QUEUE_OF.values()}
    assert len(of_type("AWS::Lambda::EventSourceMapping")) == len(WORKERS)


# Deletion and retention


def test_the_table_has_the_keys_of_the_store_ttl_and_point_in_time_recovery() -> None:
    table = properties("TaskTable")
    keys = {key["AttributeName"]: key["KeyType"] for key in table["KeySchema"]}
    assert keys == {"pk": "HASH", "sk": "RANGE"}
    assert {each["AttributeType"] for each in table["AttributeDefinitions"]} == {"S"}
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "exp", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_the_table_is_retained_when_the_stack_is_deleted() -> None:
    table = deployed()["TaskTable"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


@every_function
def test_logs_expire(function: str) -> None:
    group = name_in(properties(function)["LoggingConfig"]["LogGroup"])
    assert properties(group, LogRetentionDays="7")["RetentionInDays"] == "7"
