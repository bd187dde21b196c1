"""template.yaml as CloudFormation gets it: after the SAM transform, for every AuthMode."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.cloudformation import NO_VALUE, broken_rules, condition, evaluate, parameters_of
from support.sam_build import ROOT, SAM, run

AUTH_MODES: dict[str, dict[str, str]] = {
    "none": {},
    "iam": {},
    "jwt": {"JwtIssuer": "https://issuer.example", "JwtAudience": "mcp"},
    "lambda": {
        "LambdaAuthorizerArn": "arn:aws:lambda:eu-west-1:123456789012:function:authorizer",
        "PrincipalContextKey": "user",
    },
}
ROUTE_OF = {
    "FrontDoorFunction": "/mcp",
    "WeatherFunction": "/tools/weather",
    "WorkItemsFunction": "/tools/work_items",
    "SummarizeFunction": "/tools/summarize",
}
TOOLS = sorted(set(ROUTE_OF) - {"FrontDoorFunction"})
SAM_PYTHON = SAM.with_name("python")
TRANSFORM = Path(__file__).with_name("transform.py")

every_auth_mode = pytest.mark.parametrize("auth_mode", AUTH_MODES)
every_function = pytest.mark.parametrize("function", ROUTE_OF)
every_tool = pytest.mark.parametrize("tool", TOOLS)


def transform(auth_mode: str, template: Path = ROOT / "template.yaml") -> str:
    parameters = {"AuthMode": auth_mode} | AUTH_MODES[auth_mode]
    done = run(SAM_PYTHON, TRANSFORM, template, *(f"{name}={value}" for name, value in parameters.items()))
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


def statements(function: str) -> list[dict[str, Any]]:
    role = properties(f"{function}Role")
    return [s for policy in role["Policies"] for s in policy["PolicyDocument"]["Statement"]]


def variables(function: str) -> Any:
    return properties(function)["Environment"]["Variables"]


def live_alias(function: str) -> dict[str, str]:
    return {"Fn::Sub": f"${{{function}.Arn}}:live"}


STATE_KEY_ARN = {"Fn::GetAtt": ["StateKey", "Arn"]}


# What the tools say


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
def test_a_route_leads_to_the_live_alias_and_only_that_path_may_invoke_it(function: str) -> None:
    base = function.removesuffix("Function")
    route, integration = properties(f"{base}Route"), properties(f"{base}Integration")
    permission = properties(f"{function}McpPermission")
    alias = {"Ref": f"{function}Aliaslive"}

    assert route["RouteKey"] == f"ANY {ROUTE_OF[function]}"
    assert route["Target"] == {"Fn::Sub": f"integrations/${{{base}Integration}}"}
    assert integration["IntegrationUri"] == permission["FunctionName"] == alias
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
    roles = [function["Role"]["Fn::GetAtt"][0] for function in of_type("AWS::Lambda::Function").values()]
    assert (
        sorted(roles)
        == sorted(of_type("AWS::IAM::Role"))
        == sorted(f"{function}Role" for function in ROUTE_OF)
    )


@every_function
def test_no_policy_has_a_wildcard(function: str) -> None:
    for statement in statements(function):
        assert isinstance(statement["Action"], str)
        assert "*" not in json.dumps([statement["Action"], statement["Resource"]])


@every_function
def test_the_one_managed_policy_is_for_logs(function: str) -> None:
    [arn] = properties(f"{function}Role")["ManagedPolicyArns"]
    assert arn.endswith(":policy/service-role/AWSLambdaBasicExecutionRole")


@every_tool
def test_a_tool_may_sign_state_and_read_the_public_key_and_nothing_else(tool: str) -> None:
    sign, read = statements(tool)
    assert sign["Action"] == "kms:Sign"
    assert sign["Condition"] == {"StringEquals": {"kms:SigningAlgorithm": "ECDSA_SHA_256"}}
    assert read["Action"] == "kms:GetPublicKey"
    assert "Condition" not in read
    assert sign["Resource"] == read["Resource"] == STATE_KEY_ARN
    assert {sign["Effect"], read["Effect"]} == {"Allow"}


def test_the_front_door_may_invoke_the_tools_and_nothing_else() -> None:
    [invoke] = statements("FrontDoorFunction")
    assert invoke["Action"] == "lambda:InvokeFunction"
    assert sorted(invoke["Resource"], key=str) == sorted(map(live_alias, TOOLS), key=str)


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
    assert set(variables("FrontDoorFunction")) == SHARED | {"MCP_OWNERS"}
    owners = json.loads(variables("FrontDoorFunction")["MCP_OWNERS"]["Fn::Sub"])
    expected = {variables(tool)["POWERTOOLS_SERVICE_NAME"]: live_alias(tool)["Fn::Sub"] for tool in TOOLS}
    assert owners == expected


def test_all_functions_share_one_issuer_and_the_front_doors_address_as_audience() -> None:
    told = [variables(function) for function in ROUTE_OF]
    assert [v["MCP_AUDIENCE"] for v in told] == [transformed()["Outputs"]["McpUrl"]["Value"]] * len(told)
    assert len({json.dumps(v["MCP_ISSUER"]) for v in told}) == 1


# What outlives what


def test_the_state_key_survives_its_stack() -> None:
    key = transformed()["Resources"]["StateKey"]
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert (key["Properties"]["KeySpec"], key["Properties"]["KeyUsage"]) == ("ECC_NIST_P256", "SIGN_VERIFY")


@every_function
def test_logs_expire(function: str) -> None:
    group = properties(function)["LoggingConfig"]["LogGroup"]["Ref"]
    assert properties(group)["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_a_change_of_the_layer_alone_publishes_new_versions(tmp_path: Path) -> None:
    source = (ROOT / "template.yaml").read_text()
    changed = tmp_path / "template.yaml"
    changed.write_text(
        source.replace("Description: mcp_roundtrip and", "Description: another mcp_roundtrip and")
    )
    assert changed.read_text() != source

    resources = yaml.safe_load(transform("none", changed))["Resources"]
    versions = {name for name, resource in resources.items() if resource["Type"] == "AWS::Lambda::Version"}
    assert len(versions) == len(ROUTE_OF)
    assert versions.isdisjoint(of_type("AWS::Lambda::Version"))
