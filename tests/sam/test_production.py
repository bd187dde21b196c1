import json
import re
from typing import Any

import pytest
import yaml

from mcp_roundtrip_tools.template.yaml_reader import load
from support.cloudformation import Refused
from support.option_values import ANOTHER, ORIGINS
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
    name_in,
    of_type,
    parameters,
    properties,
    stack,
    transformed,
    variables,
)

WITH_ROUTES = [FRONT_DOOR, *TOOLS]
WORKERS = sorted(WORKER_OF.values())
GRADUAL = "Gradual deployment"

every_function = pytest.mark.parametrize("function", sorted(FOLDERS))
every_function_with_a_route = pytest.mark.parametrize("function", WITH_ROUTES)


def versions(resources: dict[str, Any]) -> dict[str, str]:
    """The logical id of each function's version, by function."""
    return {
        resource["Properties"]["FunctionName"]["Ref"]: name
        for name, resource in resources.items()
        if resource["Type"] == "AWS::Lambda::Version"
    }


def version_of(function: str) -> dict[str, Any]:
    resource: dict[str, Any] = deployed()[versions(transformed()["Resources"])[function]]
    return resource


@every_function
def test_a_version_changes_with_the_settings_and_with_its_worker_and_is_retained_for_tasks(function):
    """SAM derives names of versions from what the template says, not from values of parameters.

    Lambda publishes no version of an unchanged function, and CloudFormation fails then.
    """
    published = versions(transformed()["Resources"])
    # Otherwise the alias of a tool would dispatch to the old version of a worker of which a property changed.
    depends_on = published[WORKER_OF[function]] if function in WORKER_OF else None
    expected = f"${{{depends_on}}}" if depends_on else "settings ${SettingsVersion}"
    version = version_of(function)
    assert version["Properties"]["Description"] == expected
    assert variables(function)["SETTINGS_VERSION"] == "${SettingsVersion}"
    policies = version["DeletionPolicy"], version.get("UpdateReplacePolicy")
    assert policies == (("Retain", "Retain") if function in WORKERS else ("Delete", policies[1]))
    assert "DeletionPolicy" not in deployed()[function], "the function is deleted with the stack"


def configurations(**given: str) -> dict[str, Any]:
    """Return what Lambda stores in a version of each function."""
    return of_type("AWS::Lambda::Function", **given)


@pytest.mark.parametrize(
    "base",
    [
        *({"AuthMode": mode, **needed} for mode, needed in AUTH_MODES.items()),
        {"EndpointUri": "https://edge.example/mcp"},
    ],
    ids=str,
)
def test_a_value_that_changes_a_function_is_a_new_version_of_the_settings(base):
    before, version = configurations(**base), properties("SettingsVersion", **base)
    changing = set()
    for name, value in ANOTHER.items():
        changed = {**base, name: value}
        if configurations(**changed) != before:
            changing.add(name)
            assert properties("SettingsVersion", **changed) != version, name
    assert changing >= {"PythonRuntime", "Architecture", "AllowedOrigins", "MaxOpenTasks"}


def test_every_parameter_has_another_value_for_these_tests():
    chosen_by_the_template = {"Application", "Values"}
    assert ANOTHER.keys() == declared_parameters().keys() - chosen_by_the_template
    for name, value in ANOTHER.items():
        declared = str(declared_parameters()[name].get("Default"))
        assert parameters(**{name: value})[name] not in (declared, [declared]), name


def test_by_default_a_version_gets_all_traffic_at_once():
    assert of_type("AWS::CodeDeploy::DeploymentGroup") == {}
    assert not any("UpdatePolicy" in resource for resource in deployed().values())


@every_function_with_a_route
def test_a_gradual_deployment_is_rolled_back_by_alarms(function):
    gradual = deployed(GRADUAL)
    group = gradual[f"{function}DeploymentGroup"]["Properties"]
    [policy] = gradual[name_in(alias(function))]["UpdatePolicy"].values()
    assert policy["DeploymentGroupName"] == {"Ref": f"{function}DeploymentGroup"}
    documented = documented_block(GRADUAL)["DeploymentPreference"]["Type"]
    assert group["DeploymentConfigName"] == f"CodeDeployDefault.Lambda{documented}"
    assert group["AutoRollbackConfiguration"]["Enabled"] is True
    assert {"DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM"} <= set(
        group["AutoRollbackConfiguration"]["Events"]
    )
    assert group["AlarmConfiguration"] == {
        "Enabled": True,
        "Alarms": [{"Name": "${ErrorsAlarm}"}, {"Name": "${CrashesAlarm}"}],
    }
    assert group["ServiceRoleArn"] == arn("DeploymentRole")


@every_function
def test_only_functions_with_a_route_start_from_a_snapshot_or_are_deployed_gradually(function):
    assert (f"{function}DeploymentGroup" in deployed(GRADUAL)) is (function in WITH_ROUTES)
    assert ("UpdatePolicy" in deployed(GRADUAL)[name_in(alias(function))]) is (function in WITH_ROUTES)
    never = {"ApplyOn": "None"}
    expected = {"ApplyOn": "PublishedVersions"} if function in WITH_ROUTES else never
    assert properties(function, "SnapStart").get("SnapStart", never) == expected
    assert properties(function).get("SnapStart", never) == never


@every_function
def test_all_functions_write_json_to_one_log_group_and_only_workers_have_reserved_concurrency(function):
    assert properties(function)["LoggingConfig"] == {"LogGroup": "${Logs}", "LogFormat": "JSON"}
    expected = 20 if function in WORKERS else None  # test_template.py has the maximum of the queue
    assert properties(function).get("ReservedConcurrentExecutions") == expected


def test_a_domain_is_the_only_address_and_without_one_it_is_that_of_the_api():
    given = {**DOMAIN, "HostedZoneId": "Z0123456789"}
    assert properties("Domain", **given) == {
        "DomainName": "tools.example",
        "DomainNameConfigurations": [
            {
                "CertificateArn": DOMAIN["CertificateArn"],
                "EndpointType": "REGIONAL",
                "SecurityPolicy": "TLS_1_2",
            }
        ],
    }
    assert properties("DomainMapping", **given) == {
        "ApiId": "${Api}",
        "DomainName": "${Domain}",
        "Stage": "${ApiStage}",
    }
    assert properties("DomainRecord", **given)["AliasTarget"] == {
        "DNSName": "${Domain.RegionalDomainName}",
        "HostedZoneId": "${Domain.RegionalHostedZoneId}",
    }
    assert properties("Api", **given)["DisableExecuteApiEndpoint"] is True
    assert stack(**given).outputs["ToolsUrl"] == "https://tools.example/tools/"
    assert stack(**given).outputs["ApiHost"] == "tools.example"
    assert "DomainRecord" not in deployed(**DOMAIN), "the record is managed elsewhere"
    assert not {"Domain", "DomainMapping", "DomainRecord"} & deployed().keys()
    assert properties("Api")["DisableExecuteApiEndpoint"] is False
    assert stack().outputs["ApiHost"] == "${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}"


def test_cors_allows_the_headers_and_methods_of_clients():
    cors = properties("Api", AllowedOrigins=ORIGINS)["CorsConfiguration"]
    assert cors["AllowOrigins"] == ORIGINS.split(",")
    assert cors["AllowMethods"] == ["GET", "POST", "DELETE"]
    assert cors["AllowHeaders"] == ["authorization", "*"]
    assert cors["ExposeHeaders"] == ["*"]
    assert "AllowCredentials" not in cors
    assert variables(FRONT_DOOR, AllowedOrigins=ORIGINS)["MCP_ALLOWED_ORIGINS"] == ORIGINS
    assert "CorsConfiguration" not in properties("Api")


@pytest.mark.parametrize("origin", ["*", "https://*.example", "app.example", "https://app.example/", "null"])
def test_a_malformed_origin_is_refused(origin):
    with pytest.raises(Refused):
        parameters(AllowedOrigins=f"https://app.example,{origin}")


def test_the_stage_is_throttled():
    settings = properties("ApiStage", ThrottlingRate="7", ThrottlingBurst="9")["DefaultRouteSettings"]
    assert settings == {"ThrottlingRateLimit": "7", "ThrottlingBurstLimit": "9"}
    assert properties("ApiStage")["DefaultRouteSettings"]["ThrottlingRateLimit"] == "50"


TELLS_NOTHING = re.compile(
    r"requestId|requestTime|identity\.sourceIp|routeKey|protocol|status|error\.responseType"
    r"|integration\.integrationStatus|responseLength|responseLatency|integrationLatency"
)
"""Variables without tokens, arguments, answers or claims: no header, query or authorizer context."""


def test_access_logs_contain_neither_tokens_nor_answers():
    settings = properties("ApiStage")["AccessLogSettings"]
    assert settings["DestinationArn"] == arn("ApiLogs")
    line = json.loads(settings["Format"])
    assert {"status", "latencyMs", "route"} <= line.keys()
    for variable in line.values():
        assert TELLS_NOTHING.fullmatch(variable.removeprefix("$context.")), variable


def test_all_logs_expire_and_those_of_the_api_have_the_prefix_of_services():
    groups = of_type("AWS::Logs::LogGroup", LogRetentionDays="7")
    assert set(groups) == {"Logs", "ApiLogs"}
    assert {group["RetentionInDays"] for group in groups.values()} == {"7"}
    assert groups["ApiLogs"]["LogGroupName"] == "/aws/vendedlogs/mcp-roundtrip/${AWS::StackName}"


def test_audit_records_outlive_the_stack_and_expire_later():
    groups = of_type("AWS::Logs::LogGroup", AuditLog="hash", AuditRetentionDays="1827")
    assert groups["AuditLogs"]["RetentionInDays"] == "1827"
    stack = deployed(AuditLog="hash")
    assert {stack[name]["DeletionPolicy"] for name in ("AuditLogs", "AuditKey")} == {"RetainExceptOnCreate"}
    assert "AuditKey" not in deployed(AuditLog="principal")
    assert variables(FRONT_DOOR, AuditLog="hash")["MCP_AUDIT"] == "hash:${AuditLogs}"
    assert "MCP_AUDIT" not in variables(FRONT_DOOR)


NAMES = {
    "AWS::ApiGatewayV2::Api": "Name",
    "AWS::AppConfig::Application": "Name",
    "AWS::KMS::Alias": "AliasName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Lambda::LayerVersion": "LayerName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::SSM::Parameter": "Name",
}
"""The property with the name of a resource, of each type for which the template gives one."""


def test_every_name_contains_the_name_of_the_stack_and_other_types_have_none():
    named = {
        logical_id: (each["Type"], each["Properties"][NAMES[each["Type"]]])
        for logical_id, each in deployed().items()
        if NAMES.get(each["Type"]) in each["Properties"]
    }
    assert len(set(named.values())) == len(named) > len(FOLDERS)
    assert [each for each, (_, name) in named.items() if "${AWS::StackName}" not in name] == []
    own = {"Name", "FunctionName", "RoleName", "ManagedPolicyName", "TableName", "AlarmName", "DashboardName"}
    of_references = {"AWS::Lambda::Version", "AWS::Lambda::Alias", "AWS::Lambda::Permission"}
    of_parents = {"AWS::AppConfig::ConfigurationProfile", "AWS::ApiGatewayV2::Authorizer"}
    skipped = of_references | of_parents | NAMES.keys() | {"AWS::Lambda::EventSourceMapping"}
    others = (each for each in deployed().values() if each["Type"] not in skipped)
    assert [each["Type"] for each in others if own & each["Properties"].keys()] == []


REGION = re.compile(
    r"\b(us|eu|ap|sa|ca|me|af|il|mx|cn)(-gov|-iso\w*)?-(north|south|east|west|central)\w*-\d\b"
)


def test_the_templates_name_no_partition_and_no_region():
    nested = [load(path) for path in sorted((ROOT / "platform").glob("*.yaml"))]
    templates = [[each["Resources"], each.get("Outputs")] for each in (transformed(), *nested)]
    source = yaml.safe_dump(templates)
    assert "arn:aws" not in source
    assert not REGION.search(source)
    # Service principals are equal in every partition; addresses are not.
    hosts = set(re.findall(r"[\w.-]*amazonaws\.com", source))
    through = {".amazonaws.com"}  # kms:ViaService has this form in every Region
    assert hosts - through == {
        "lambda.amazonaws.com",
        "apigateway.amazonaws.com",
        "codedeploy.amazonaws.com",
    }
