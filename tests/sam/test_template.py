"""template.yaml as CloudFormation gets it: after the SAM transform, for every AuthMode."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.cloudformation import NO_VALUE, broken_rules, condition, evaluate, parameters_of
from support.sam_build import ROOT, SAM, run
from support.template import functions

AUTH_MODES: dict[str, dict[str, str]] = {
    "none": {},
    "iam": {},
    "jwt": {"JwtIssuer": "https://issuer.example", "JwtAudience": "mcp"},
    "lambda": {
        "LambdaAuthorizerArn": "arn:aws:lambda:eu-west-1:123456789012:function:authorizer",
        "PrincipalContextKey": "user",
    },
}
FRONT_DOOR = "FrontDoorFunction"
FOLDERS = functions()
TOOLS = sorted(set(FOLDERS) - {FRONT_DOOR})
ROUTE_OF = {FRONT_DOOR: "/mcp"} | {tool: f"/tools/{FOLDERS[tool]}" for tool in TOOLS}
SAM_PYTHON = SAM.with_name("python")
TRANSFORM = Path(__file__).with_name("transform.py")

every_auth_mode = pytest.mark.parametrize("auth_mode", AUTH_MODES)
every_function = pytest.mark.parametrize("function", ROUTE_OF)
every_tool = pytest.mark.parametrize("tool", TOOLS)


def transform(auth_mode: str) -> str:
    parameters = {"AuthMode": auth_mode} | AUTH_MODES[auth_mode]
    overrides = [f"{name}={value}" for name, value in parameters.items()]
    done = run(SAM_PYTHON, TRANSFORM, ROOT / "template.yaml", *overrides)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def transformed() -> dict[str, Any]:
    template: dict[str, Any] = yaml.safe_load(transform("none"))
    return template


def properties(logical_id: str) -> Any:
    return transformed()["Resources"][logical_id]["Properties"]


def of_type(resource_type: str) -> dict[str, Any]:
    return {
        name: resource["Properties"]
        for name, resource in transformed()["Resources"].items()
        if resource["Type"] == resource_type
    }


def role_of(function: str) -> str:
    name: str = properties(function)["Role"]["Fn::GetAtt"][0]
    return name


def statements(function: str) -> list[dict[str, Any]]:
    """What the function's role allows: by its own policies, then by the managed ones."""
    role = properties(role_of(function))
    managed = [properties(policy["Ref"]) for policy in role.get("ManagedPolicyArns", [])]
    return [s for policy in [*role["Policies"], *managed] for s in policy["PolicyDocument"]["Statement"]]


def variables(function: str) -> Any:
    return properties(function)["Environment"]["Variables"]


def arn(logical_id: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [logical_id, "Arn"]}


STATE_KEY_ARN = arn("StateKey")


# What the tools say


def test_every_folder_of_functions_is_one_function() -> None:
    folders = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
    assert sorted(FOLDERS.values()) == folders


def test_the_source_is_lint_clean() -> None:
    done = run(SAM, "validate", "--lint")
    assert done.returncode == 0, done.stderr


@every_auth_mode
def test_the_transform_accepts_it_and_its_output_is_lint_clean(auth_mode: str, tmp_path: Path) -> None:
    output = tmp_path / "transformed.yaml"
    output.write_text(transform(auth_mode))
    done = run(SAM.with_name("cfn-lint"), "--format", "json", "--template", output)
    assert json.loads(done.stdout) == []


# Who may call


def test_the_deployer_must_choose_who_may_call() -> None:
    parameter = transformed()["Parameters"]["AuthMode"]
    assert "Default" not in parameter
    assert sorted(parameter["AllowedValues"]) == sorted(AUTH_MODES)


AUTHORIZATION = {
    "none": ("NONE", NO_VALUE),
    "jwt": ("JWT", {"Ref": "JwtAuthorizer"}),
    "lambda": ("CUSTOM", {"Ref": "LambdaAuthorizer"}),
    "iam": ("AWS_IAM", NO_VALUE),
}


@every_auth_mode
def test_every_route_is_authorized_as_the_mode_says(auth_mode: str) -> None:
    parameters = parameters_of(transformed(), AuthMode=auth_mode, **AUTH_MODES[auth_mode])
    routes = [
        evaluate(route, transformed(), parameters) for route in of_type("AWS::ApiGatewayV2::Route").values()
    ]
    assert len(routes) == len(ROUTE_OF)
    assert [(r["AuthorizationType"], r["AuthorizerId"]) for r in routes] == [AUTHORIZATION[auth_mode]] * len(
        routes
    )


@every_auth_mode
def test_an_authorizer_exists_only_in_its_own_mode(auth_mode: str) -> None:
    parameters = parameters_of(transformed(), AuthMode=auth_mode, **AUTH_MODES[auth_mode])
    authorizers = {
        name
        for name in of_type("AWS::ApiGatewayV2::Authorizer")
        if condition(transformed()["Resources"][name]["Condition"], transformed(), parameters)
    }
    assert authorizers == {"jwt": {"JwtAuthorizer"}, "lambda": {"LambdaAuthorizer"}}.get(auth_mode, set())


def test_no_resource_but_the_routes_brings_paths_of_its_own() -> None:
    assert "Body" not in properties("Api")
    assert set(of_type("AWS::ApiGatewayV2::Api")) == {"Api"}


@every_auth_mode
def test_the_parameters_a_mode_needs_are_demanded(auth_mode: str) -> None:
    needed = AUTH_MODES[auth_mode]
    assert broken_rules(transformed(), parameters_of(transformed(), AuthMode=auth_mode, **needed)) == []
    for left_out in needed:
        given = {name: value for name, value in needed.items() if name != left_out}
        [broken] = broken_rules(transformed(), parameters_of(transformed(), AuthMode=auth_mode, **given))
        assert left_out in broken


def test_a_lambda_authorizers_verdict_is_cached_per_route() -> None:
    authorizer = properties("LambdaAuthorizer")
    assert authorizer["IdentitySource"] == ["$request.header.Authorization", "$context.routeKey"]


# The way in


@every_function
def test_a_route_leads_to_its_function_and_only_that_path_may_invoke_it(function: str) -> None:
    base = function.removesuffix("Function")
    route, integration = properties(f"{base}Route"), properties(f"{base}Integration")
    permission = properties(f"{function}McpPermission")

    assert route["RouteKey"] == f"ANY {ROUTE_OF[function]}"
    assert route["Target"] == {"Fn::Sub": f"integrations/${{{base}Integration}}"}
    assert integration["IntegrationUri"] == arn(function)
    assert permission["FunctionName"] == {"Ref": function}
    assert integration["PayloadFormatVersion"] == "2.0"
    assert permission["SourceArn"]["Fn::Sub"][0].endswith(f"/*{ROUTE_OF[function]}")
    assert permission["SourceArn"]["Fn::Sub"][1]["__ApiId__"] == {"Ref": "Api"}


def test_nothing_else_may_invoke_a_function() -> None:
    permissions = set(of_type("AWS::Lambda::Permission"))
    assert permissions == {f"{function}McpPermission" for function in ROUTE_OF} | {
        "LambdaAuthorizerPermission"
    }
    assert of_type("AWS::Lambda::Url") == {}


@every_function
def test_a_function_answers_before_the_api_gives_up(function: str) -> None:
    assert properties(function)["Timeout"] < 30


# What a function may do


def test_every_function_has_a_role_of_its_own() -> None:
    roles = [role_of(function) for function in of_type("AWS::Lambda::Function")]
    assert sorted(roles) == sorted(of_type("AWS::IAM::Role"))
    assert len(roles) == len(set(roles)) == len(FOLDERS)


@every_function
def test_only_lambda_may_take_on_a_functions_role(function: str) -> None:
    [assume] = properties(role_of(function))["AssumeRolePolicyDocument"]["Statement"]
    assert assume == {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }


@every_function
def test_no_policy_has_a_wildcard_and_every_managed_one_is_this_templates(function: str) -> None:
    managed = properties(role_of(function)).get("ManagedPolicyArns", [])
    assert all(policy["Ref"] in of_type("AWS::IAM::ManagedPolicy") for policy in managed)
    for statement in statements(function):
        assert statement["Effect"] == "Allow"
        assert "*" not in json.dumps([statement["Action"], statement["Resource"]])


@every_function
def test_a_function_may_write_to_its_own_log_group_alone(function: str) -> None:
    log = statements(function)[0]
    assert log["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
    assert log["Resource"] == arn(properties(function)["LoggingConfig"]["LogGroup"]["Ref"])
    groups = [properties(each)["LoggingConfig"]["LogGroup"]["Ref"] for each in FOLDERS]
    assert sorted(groups) == sorted(of_type("AWS::Logs::LogGroup"))


@every_tool
def test_a_tool_may_log_sign_state_read_the_public_key_and_nothing_else(tool: str) -> None:
    _, sign, read = statements(tool)
    assert sign["Action"] == "kms:Sign"
    assert sign["Condition"] == {"StringEquals": {"kms:SigningAlgorithm": "ECDSA_SHA_256"}}
    assert read["Action"] == "kms:GetPublicKey"
    assert "Condition" not in read
    assert sign["Resource"] == read["Resource"] == STATE_KEY_ARN


def test_the_front_door_may_log_invoke_the_tools_and_nothing_else() -> None:
    _, invoke = statements(FRONT_DOOR)
    assert invoke["Action"] == "lambda:InvokeFunction"
    assert sorted(invoke["Resource"], key=str) == [arn(tool) for tool in TOOLS]


# What a function is told

SHARED = {
    "MCP_ALLOWED_ORIGINS",
    "MCP_AUDIENCE",
    "MCP_AUTH_MODE",
    "MCP_ISSUER",
    "MCP_PRINCIPAL_CONTEXT_KEY",
    "POWERTOOLS_LOG_LEVEL",
    "POWERTOOLS_SERVICE_NAME",
}


@every_tool
def test_a_tool_is_told_its_key(tool: str) -> None:
    assert set(variables(tool)) == SHARED | {"MCP_STATE_KEY_ARN"}
    assert variables(tool)["MCP_STATE_KEY_ARN"] == STATE_KEY_ARN


def test_the_front_door_is_told_the_owner_of_every_tool() -> None:
    assert set(variables(FRONT_DOOR)) == SHARED | {"MCP_OWNERS"}
    owners = json.loads(variables(FRONT_DOOR)["MCP_OWNERS"]["Fn::Sub"])
    assert owners == {FOLDERS[tool]: f"${{{tool}.Arn}}" for tool in TOOLS}


@every_function
def test_a_function_logs_and_counts_under_the_name_of_its_folder(function: str) -> None:
    assert variables(function)["POWERTOOLS_SERVICE_NAME"] == FOLDERS[function]


def test_all_functions_share_one_issuer_and_the_front_doors_address_as_audience() -> None:
    told = [variables(function) for function in ROUTE_OF]
    assert [v["MCP_AUDIENCE"] for v in told] == [transformed()["Outputs"]["McpUrl"]["Value"]] * len(told)
    assert len({json.dumps(v["MCP_ISSUER"]) for v in told}) == 1


# What outlives what


def test_the_state_key_survives_its_stack_unless_the_stack_never_came_to_be() -> None:
    key = transformed()["Resources"]["StateKey"]
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert (key["Properties"]["KeySpec"], key["Properties"]["KeyUsage"]) == ("ECC_NIST_P256", "SIGN_VERIFY")


@every_function
def test_logs_expire(function: str) -> None:
    group = properties(function)["LoggingConfig"]["LogGroup"]["Ref"]
    assert properties(group)["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_what_runs_is_what_was_deployed_last() -> None:
    # SAM names a version by a digest in which a parameter is its name: a changed value would publish none.
    assert of_type("AWS::Lambda::Version") == of_type("AWS::Lambda::Alias") == {}
