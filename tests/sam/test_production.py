"""template.yaml in production: versions, deployments, capacity, domain, CORS, logs and alarms."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.protocol.constants import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_PROTOCOL_VERSION,
    HEADER_SESSION_ID,
)
from mcp_roundtrip.telemetry import LogObserver
from support import cloudformation
from support.baselines import LANDING_ZONE
from support.cloudformation import Refused
from support.project import ROOT
from support.transformed_template import (
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
    load_template,
    name_in,
    of_type,
    outputs,
    parameters,
    properties,
    transform,
    transformed,
    transformed_file,
    variables,
    with_defaults,
)

WITH_ROUTES = [FRONT_DOOR, *TOOLS]
WORKERS = sorted(WORKER_OF.values())
TOPIC = "arn:aws:sns:eu-west-1:123456789012:on-call"
ORIGINS = "https://app.example,https://other.example"
GRADUAL = [
    name
    for name, is_gradual in transformed()["Mappings"]["Meaning"]["IsGradual"].items()
    if is_gradual == "true"
]

every_function = pytest.mark.parametrize("function", sorted(FOLDERS))
every_function_with_a_route = pytest.mark.parametrize("function", WITH_ROUTES)
every_worker = pytest.mark.parametrize("worker", WORKERS)


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


# Versions and aliases


def test_every_function_has_a_version_that_its_alias_points_to() -> None:
    published = versions(transformed()["Resources"])
    assert published.keys() == FOLDERS.keys()
    for function, version in published.items():
        live = properties(name_in(alias(function)))
        assert (live["Name"], live["FunctionVersion"]) == ("live", f"${{{version}.Version}}")


def test_every_function_has_a_new_version_with_a_new_layer(tmp_path: Path) -> None:
    def published(layer: str) -> set[str]:
        packaged = tmp_path / f"{layer}.yaml"
        source = (ROOT / "template.yaml").read_text()
        packaged.write_text(
            source.replace("ContentUri: layers/mcp_roundtrip/", f"ContentUri: s3://layers/{layer}")
        )
        resources = load_template(transformed_file(packaged, AuthMode="none"))["Resources"]
        return set(versions(resources).values())

    one, other = published("one"), published("other")
    assert len(one) == len(other) == len(FOLDERS)
    assert one.isdisjoint(other)


@every_function
def test_a_parameter_with_another_value_is_a_new_version(function: str) -> None:
    """SAM derives names of versions from the code only, so descriptions of versions have the parameters."""
    in_settings = parameters_in(transformed()["Resources"]["Settings"])
    of_function_alone = {"WorkerConcurrency"}  # not part of a version: Lambda applies it at once
    assert parameters_in(transformed()["Resources"][function]) - of_function_alone <= in_settings
    assert version_of(function)["Properties"]["Description"] == "settings ${Settings}"
    assert variables(function)["SETTINGS_VERSION"] == "${Settings}", (
        "without a change there is no new version"
    )


def parameters_in(value: Any) -> set[str]:
    """Return the parameters that a value depends on, also through conditions."""
    return {name for name in _names(value) if name in transformed()["Parameters"]}


def _names(value: Any) -> Iterator[str]:
    match value:
        case {"Ref": str(name)}:
            yield name
        case {"Fn::Sub": str(text)}:
            yield from re.findall(r"\$\{([\w:]+)\}", text)
        case {"Fn::If": [condition, *branches]}:
            yield from _names([transformed()["Conditions"][condition], *branches])
        case {"Condition": str(condition)}:
            yield from _names(transformed()["Conditions"][condition])
        case dict():
            yield from _names(list(value.values()))
        case list():
            for item in value:
                yield from _names(item)


def test_settings_of_versions_distinguish_all_values() -> None:
    lines = properties("Settings", AllowedOrigins=ORIGINS)["Content"].split("\n")
    named = [line.partition(" ")[0] for line in lines]
    assert len(named) == len(set(named))
    assert set(named) == parameters_in(transformed()["Resources"]["Settings"])
    assert f"AllowedOrigins {ORIGINS}" in lines


@every_function_with_a_route
def test_unused_versions_are_deleted(function: str) -> None:
    assert version_of(function)["DeletionPolicy"] == "Delete"


@every_worker
def test_versions_of_a_worker_are_retained_for_their_tasks(worker: str) -> None:
    version = version_of(worker)
    assert (version["DeletionPolicy"], version["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert "DeletionPolicy" not in deployed()[worker], "the function is deleted with the stack"


# Deployment of a version


def test_by_default_a_version_gets_all_traffic_at_once() -> None:
    assert transformed()["Parameters"]["Deployment"]["Default"] == "AtOnce"
    assert of_type("AWS::CodeDeploy::DeploymentGroup") == {}
    assert not any("UpdatePolicy" in resource for resource in deployed().values())


@pytest.fixture(scope="module")
def gradual() -> dict[str, Any]:
    """Return a stack with gradual deployment."""
    template = load_template(transform(Deployment=GRADUAL[0]))
    return cloudformation.resources(template, parameters(Deployment=GRADUAL[0]))


ROLLBACK_ALARMS = ("ErrorsAlarm", "CrashesAlarm", "ServerErrorsAlarm")


@every_function_with_a_route
def test_a_gradual_deployment_is_rolled_back_by_alarms(gradual: dict[str, Any], function: str) -> None:
    group = gradual[f"{function}DeploymentGroup"]["Properties"]
    [policy] = gradual[name_in(alias(function))]["UpdatePolicy"].values()
    assert policy["DeploymentGroupName"] == {"Ref": f"{function}DeploymentGroup"}
    assert group["DeploymentConfigName"] == f"CodeDeployDefault.Lambda{GRADUAL[0]}"
    assert group["AutoRollbackConfiguration"]["Enabled"] is True
    assert {"DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM"} <= set(
        group["AutoRollbackConfiguration"]["Events"]
    )
    assert group["AlarmConfiguration"] == {
        "Enabled": True,
        "Alarms": [{"Name": f"${{{alarm}}}"} for alarm in ROLLBACK_ALARMS],
    }
    assert group["ServiceRoleArn"] == arn("DeploymentRole")


@every_worker
def test_a_worker_is_replaced_at_once(gradual: dict[str, Any], worker: str) -> None:
    assert f"{worker}DeploymentGroup" not in gradual
    assert "UpdatePolicy" not in gradual[name_in(alias(worker))]


def test_every_offered_deployment_type_is_defined() -> None:
    offered = transformed()["Parameters"]["Deployment"]["AllowedValues"]
    assert sorted(offered) == sorted(["AtOnce", *GRADUAL])


# Cold starts


@every_function
def test_functions_with_a_route_can_start_from_a_snapshot(function: str) -> None:
    never = {"ApplyOn": "None"}
    expected = {"ApplyOn": "PublishedVersions"} if function in WITH_ROUTES else never
    assert properties(function, SnapStart="enabled").get("SnapStart", never) == expected
    assert properties(function).get("SnapStart", never) == never


@every_function
def test_functions_with_a_route_can_have_provisioned_concurrency(function: str) -> None:
    live = properties(name_in(alias(function)), ProvisionedConcurrency="3")
    expected = {"ProvisionedConcurrentExecutions": "3"} if function in WITH_ROUTES else None
    assert live.get("ProvisionedConcurrencyConfig") == expected
    assert "ProvisionedConcurrencyConfig" not in properties(name_in(alias(function)))


@every_function
def test_only_workers_have_reserved_concurrency_and_it_can_be_disabled(function: str) -> None:
    expected = "7" if function in WORKERS else None
    assert properties(function, WorkerConcurrency="7").get("ReservedConcurrentExecutions") == expected
    assert "ReservedConcurrentExecutions" not in properties(function, WorkerConcurrency="0")
    assert properties(function).get("ReservedConcurrentExecutions") == ("20" if expected else None)


def test_a_queue_has_the_maximum_concurrency_of_workers() -> None:
    limited = of_type("AWS::Lambda::EventSourceMapping", WorkerConcurrency="7")
    assert len(limited) == len(WORKERS)
    for each in limited.values():
        assert each["ScalingConfig"] == {"MaximumConcurrency": "7"}
    for each in of_type("AWS::Lambda::EventSourceMapping", WorkerConcurrency="0").values():
        assert "ScalingConfig" not in each


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"WorkerConcurrency": "1"}, "WorkerConcurrency"),
        ({"SnapStart": "enabled", "ProvisionedConcurrency": "1"}, "ProvisionedConcurrency"),
        ({"DomainName": DOMAIN["DomainName"]}, "CertificateArn"),
        ({"SubnetIds": "subnet-0a1b2c3d"}, "SecurityGroupIds"),
    ],
)
def test_contradicting_parameters_are_refused(given: dict[str, str], named: str) -> None:
    [broken] = broken_rules(**given)
    assert named in broken


@pytest.mark.parametrize(
    "given",
    [
        {"SnapStart": "enabled"},
        {"WorkerConcurrency": "0"},
        {"WorkerConcurrency": "2"},
        {"ProvisionedConcurrency": "1"},
        DOMAIN,
        {**DOMAIN, "HostedZoneId": "Z0123456789"},
        {"CertificateArn": DOMAIN["CertificateArn"], "HostedZoneId": "Z0123456789"},  # not used
        LANDING_ZONE,
    ],
)
def test_consistent_parameters_are_accepted(given: dict[str, str]) -> None:
    assert broken_rules(**given) == []


# The address


def test_a_domain_is_the_only_address() -> None:
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
    assert outputs(**given)["ToolsUrl"] == "https://tools.example/tools/"
    assert outputs(**given)["ApiHost"] == "tools.example"


def test_without_a_domain_the_address_is_that_of_the_api() -> None:
    assert not {"Domain", "DomainMapping", "DomainRecord"} & deployed().keys()
    assert "DomainRecord" not in deployed(**DOMAIN), "the record is managed elsewhere"
    assert properties("Api")["DisableExecuteApiEndpoint"] is False
    assert outputs()["ApiHost"] == "${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}"


# Browsers


def test_cors_allows_the_headers_and_methods_of_clients() -> None:
    cors = properties("Api", AllowedOrigins=ORIGINS)["CorsConfiguration"]
    assert cors["AllowOrigins"] == ORIGINS.split(",")
    assert cors["AllowMethods"] == ["POST", "DELETE"]
    mirrored = {HEADER_PROTOCOL_VERSION, HEADER_SESSION_ID, HEADER_METHOD, HEADER_NAME}
    assert {"authorization", "content-type", "accept", *mirrored} <= set(cors["AllowHeaders"])
    assert {HEADER_SESSION_ID, "www-authenticate"} <= set(cors["ExposeHeaders"])
    assert "AllowCredentials" not in cors
    assert variables(FRONT_DOOR, AllowedOrigins=ORIGINS)["MCP_ALLOWED_ORIGINS"] == ORIGINS


def test_without_allowed_origins_there_is_no_cors() -> None:
    assert "CorsConfiguration" not in properties("Api")


def test_a_preflight_request_is_not_authorized() -> None:
    """API Gateway responds itself, except for a route with any method."""
    keys = [route["RouteKey"].split() for route in of_type("AWS::ApiGatewayV2::Route").values()]
    assert {method for method, path in keys if path == "/mcp"} == {"POST", "GET", "DELETE"}


@pytest.mark.parametrize("origin", ["*", "https://*.example", "app.example", "https://app.example/", "null"])
def test_a_malformed_origin_is_refused(origin: str) -> None:
    with pytest.raises(Refused):
        parameters(AllowedOrigins=f"https://app.example,{origin}")


# Throttling and logs


def test_the_stage_is_throttled() -> None:
    settings = properties("ApiStage", ThrottlingRate="7", ThrottlingBurst="9")["DefaultRouteSettings"]
    assert settings == {"ThrottlingRateLimit": "7", "ThrottlingBurstLimit": "9"}
    assert properties("ApiStage")["DefaultRouteSettings"]["ThrottlingRateLimit"] == "50"


TELLS_NOTHING = re.compile(
    r"requestId|requestTime|identity\.sourceIp|routeKey|protocol|status|error\.responseType"
    r"|integration\.integrationStatus|responseLength|responseLatency|integrationLatency"
)
"""Variables without tokens, arguments, answers or claims: no header, query or authorizer context."""


def test_access_logs_contain_neither_tokens_nor_answers() -> None:
    settings = properties("ApiStage")["AccessLogSettings"]
    assert settings["DestinationArn"] == arn("ApiLogs")
    line = json.loads(settings["Format"])
    assert {"status", "latencyMs", "route"} <= line.keys()
    for variable in line.values():
        assert TELLS_NOTHING.fullmatch(variable.removeprefix("$context.")), variable


def test_all_logs_expire() -> None:
    groups = of_type("AWS::Logs::LogGroup", LogRetentionDays="7")
    assert set(groups) == {"Logs", "ApiLogs"}
    assert {group["RetentionInDays"] for group in groups.values()} == {"7"}


def test_audit_records_outlive_the_stack_and_expire_later() -> None:
    groups = of_type("AWS::Logs::LogGroup", AuditLog="hash", AuditRetentionDays="1827")
    assert groups["AuditLogs"]["RetentionInDays"] == "1827"
    stack = deployed(AuditLog="hash")
    assert {stack[name]["DeletionPolicy"] for name in ("AuditLogs", "AuditKey")} == {"RetainExceptOnCreate"}
    assert "AuditKey" not in deployed(AuditLog="principal")
    assert (
        properties(FRONT_DOOR, AuditLog="hash")["Environment"]["Variables"]["MCP_AUDIT"]
        == "hash:${AuditLogs}"
    )


# Alarms

ALARMS = sorted(of_type("AWS::CloudWatch::Alarm"))

every_alarm = pytest.mark.parametrize("alarm", ALARMS)


def test_every_failure_that_needs_an_operator_has_an_alarm() -> None:
    of_queues = {f"{tool.removesuffix('Function')}TasksAlarm" for tool in WORKER_OF}
    assert set(ALARMS) - of_queues == {
        "CrashesAlarm",
        "ErrorsAlarm",
        "ServerErrorsAlarm",
        "StateRefusedAlarm",
        "TaskAbandonedAlarm",
        "ThrottlesAlarm",
        "UndeliveredTasksAlarm",
    }
    assert of_queues < set(ALARMS)


@every_alarm
def test_an_alarm_notifies_the_topic_if_configured(alarm: str) -> None:
    assert properties(alarm, AlarmTopicArn=TOPIC)["AlarmActions"] == [TOPIC]
    assert properties(alarm)["AlarmActions"] == []


@every_alarm
def test_an_alarm_has_a_description_and_ignores_missing_data(alarm: str) -> None:
    declared = properties(alarm)
    assert declared["AlarmDescription"]
    assert declared["TreatMissingData"] == "notBreaching"
    assert declared["ComparisonOperator"] == "GreaterThanThreshold"
    of_queue = declared.get("MetricName") == "ApproximateAgeOfOldestMessage"
    assert declared["Threshold"] == (3_600 if of_queue else {"StateRefusedAlarm": 20}.get(alarm, 0))


@pytest.mark.parametrize("tool", sorted(WORKER_OF))
def test_a_queue_whose_oldest_message_waits_raises_an_alarm(tool: str) -> None:
    queue = f"{tool.removesuffix('Function')}Tasks"
    alarm = properties(f"{queue}Alarm")
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/SQS", "ApproximateAgeOfOldestMessage")
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": f"${{{queue}.QueueName}}"}]
    assert alarm["Statistic"] == "Maximum"


def test_one_alarm_covers_throttles_of_all_functions() -> None:
    alarm = properties("ThrottlesAlarm")
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Throttles")
    assert "Dimensions" not in alarm
    assert alarm["Statistic"] == "Sum"


@every_function
def test_all_functions_write_json_to_one_log_group(function: str) -> None:
    logging = properties(function)["LoggingConfig"]
    assert (logging["LogGroup"], logging["LogFormat"]) == ("${Logs}", "JSON")


@pytest.mark.parametrize(("alarm", "name"), [("ErrorsAlarm", "Errors"), ("CrashesAlarm", "Crashes")])
def test_logged_errors_and_crashes_are_counted_for_their_alarm(alarm: str, name: str) -> None:
    counting, declared = properties(name), properties(alarm)
    assert counting["LogGroupName"] == "${Logs}"
    [counted] = counting["MetricTransformations"]
    assert counted["MetricName"] == declared["MetricName"] == name.lower()
    assert counted["MetricNamespace"] == declared["Namespace"] == NAMESPACE
    assert "Dimensions" not in declared


PATTERN = re.compile(r'\(?\$\.([\w.]+) (!?=) "([^"]*)"\)?')


def matches(pattern: str, line: dict[str, Any]) -> bool:
    """Return whether a line matches a filter pattern: terms with || in parentheses, and &&."""
    alternatives, _, required = pattern.strip("{} ").rpartition(" && ")
    return (not alternatives or any(_holds(term, line) for term in alternatives.split(" || "))) and _holds(
        required, line
    )


def _holds(term: str, line: dict[str, Any]) -> bool:
    found = PATTERN.fullmatch(term)
    assert found is not None, term
    value: Any = line
    for member in found[1].split("."):
        value = value.get(member) if isinstance(value, dict) else None
    return value is not None and (value == found[3]) is (found[2] == "=")


@pytest.mark.parametrize(
    ("kind", "status", "is_crash"),
    [
        ("platform.report", "success", False),
        ("platform.report", "error", True),
        ("platform.report", "timeout", True),
        ("platform.report", "failure", True),
        ("platform.initReport", "error", True),
        ("platform.start", "", False),
    ],
)
def test_an_invocation_that_lambda_reports_as_failed_is_a_crash(
    kind: str, status: str, *, is_crash: bool
) -> None:
    """The members are those of Lambda's Telemetry API, which has the same records."""
    record = {"requestId": "6f7c1a2b", **({"status": status} if status else {})}
    pattern = properties("Crashes")["FilterPattern"]
    assert matches(pattern, {"type": kind, "record": record}) is is_crash
    assert not matches(pattern, {"level": "ERROR", "message": "tool_raised"})


NAMESPACE = "mcp-roundtrip/${AWS::StackName}"


class Emitted:
    """The output of `LogObserver` as read by CloudWatch."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]

    def metrics(self) -> set[tuple[str, str, frozenset[str]]]:
        """Return namespace, name and dimensions of the metrics since the last call."""
        return {
            (directive["Namespace"], metric["Name"], frozenset(dimensions))
            for line in self.lines()
            for directive in line.get("_aws", {}).get("CloudWatchMetrics", ())
            for dimensions in directive["Dimensions"]
            for metric in directive["Metrics"]
        }


@pytest.fixture
def emitted(capsys: pytest.CaptureFixture[str]) -> Emitted:
    return Emitted(capsys)


def schema(text: str) -> tuple[str, frozenset[str]]:
    """Return namespace and dimensions in the syntax of metric queries."""
    namespace, *dimensions = text.replace('"', "").replace(" ", "").split(",")
    return namespace, frozenset(dimensions)


QUERY = re.compile(r"SELECT SUM\((\w+)\) FROM SCHEMA\((.+)\)")


@pytest.mark.parametrize(
    ("alarm", "event", "fields"),
    [
        ("StateRefusedAlarm", "state_refused", {"reason": "expired"}),
        ("TaskAbandonedAlarm", "task_abandoned", {"task": "one"}),
    ],
)
def test_alarms_on_custom_metrics_use_emitted_metrics(
    emitted: Emitted, alarm: str, event: str, fields: dict[str, str]
) -> None:
    LogObserver(namespace=NAMESPACE).record(event, **fields)
    [metric] = properties(alarm)["Metrics"]
    query = QUERY.fullmatch(metric["Expression"])
    assert query is not None
    namespace, dimensions = schema(query[2])
    assert emitted.metrics() == {(namespace, query[1], dimensions)}


def test_logged_errors_match_the_filter_of_the_alarm(emitted: Emitted) -> None:
    LogObserver().record_failure("misconfigured", ValueError())
    error, _ = emitted.lines()
    assert matches(properties("Errors")["FilterPattern"], error)


SEARCH = re.compile(r"SEARCH\('\{(.+?)\}(?: MetricName=\"(\w+)\")?', 'Sum', 300\)")


def test_the_dashboard_shows_all_custom_metrics(emitted: Emitted) -> None:
    observer = LogObserver(namespace=NAMESPACE)
    for asked in ({"outcome": "input_required", "asked": ["a"]}, {"outcome": "checkpoint"}):
        observer.record("request_completed", **asked)
    observer.record("request_completed", outcome="complete", round=2, declined=1)
    observer.record("request_refused", code=-32602, status=400)
    observer.record("state_refused", reason="expired")
    observer.record("task_abandoned", task="one")
    observer.record_failure("state_unavailable", KeyServiceError("timeout"))

    searches = {
        (*schema(search[1]), search[2])
        for widget in json.loads(properties("Dashboard")["DashboardBody"])["widgets"]
        for row in widget["properties"].get("metrics", [])
        if isinstance(row[0], dict) and (search := SEARCH.fullmatch(row[0]["expression"]))
    }
    for namespace, name, dimensions in emitted.metrics():
        assert {(namespace, dimensions, name), (namespace, dimensions, None)} & searches, name


def test_an_undelivered_invocation_raises_an_alarm() -> None:
    alarm = properties("UndeliveredTasksAlarm")
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": "${UndeliveredTasks.QueueName}"}]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/SQS", "ApproximateNumberOfMessagesVisible")


def test_the_dashboard_is_valid() -> None:
    widgets = json.loads(properties("Dashboard")["DashboardBody"])["widgets"]
    assert len({(widget["x"], widget["y"]) for widget in widgets}) == len(widgets) >= 6
    assert {widget["type"] for widget in widgets} <= {"metric", "log"}
    assert all(widget["properties"]["region"] == "${AWS::Region}" for widget in widgets)


# Several stacks in one account and Region

NAMES = {
    "AWS::ApiGatewayV2::Api": "Name",
    "AWS::AppConfig::Application": "Name",
    "AWS::KMS::Alias": "AliasName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Lambda::LayerVersion": "LayerName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::SQS::Queue": "QueueName",
}
"""The property with the name of a resource, of each type for which the template gives one."""


def test_every_name_contains_the_name_of_the_stack() -> None:
    named = {
        logical_id: (each["Type"], each["Properties"][NAMES[each["Type"]]])
        for logical_id, each in deployed().items()
        if NAMES.get(each["Type"]) in each["Properties"]
    }
    assert len(set(named.values())) == len(named) > len(FOLDERS)
    assert [each for each, (_, name) in named.items() if "${AWS::StackName}" not in name] == []


def test_no_resource_of_another_type_has_a_name() -> None:
    own = {"Name", "FunctionName", "RoleName", "ManagedPolicyName", "TableName", "AlarmName", "DashboardName"}
    of_references = {"AWS::Lambda::Version", "AWS::Lambda::Alias", "AWS::Lambda::Permission"}
    of_parents = {"AWS::AppConfig::ConfigurationProfile", "AWS::ApiGatewayV2::Authorizer"}
    skipped = of_references | of_parents | NAMES.keys() | {"AWS::Lambda::EventSourceMapping"}
    assert [
        logical_id
        for logical_id, each in deployed().items()
        if each["Type"] not in skipped and own & each["Properties"].keys()
    ] == []


def test_metrics_of_two_stacks_never_mix() -> None:
    """Alarms and the dashboard read metrics of the stack's namespace, or of a resource of the stack."""
    assert {variables(function)["POWERTOOLS_METRICS_NAMESPACE"] for function in FOLDERS} == {NAMESPACE}
    for name, alarm in of_type("AWS::CloudWatch::Alarm").items():
        if name == "ThrottlesAlarm":  # watches the concurrency that stacks share
            continue
        assert NAMESPACE in json.dumps(alarm) or "${" in str(alarm["Dimensions"]), name
    widgets = json.loads(properties("Dashboard")["DashboardBody"])["widgets"]
    for row in (row for widget in widgets for row in widget["properties"].get("metrics", [])):
        own = NAMESPACE in json.dumps(row) or "${" in json.dumps(row)
        assert (own and "AWS/Lambda,FunctionName" not in json.dumps(row)) or row == [
            "AWS/Lambda",
            "Throttles",
        ]


# Portability

REGION = re.compile(
    r"\b(us|eu|ap|sa|ca|me|af|il|mx|cn)(-gov|-iso\w*)?-(north|south|east|west|central)\w*-\d\b"
)


def test_the_template_names_no_partition_and_no_region() -> None:
    source = yaml.safe_dump(transformed()["Resources"]) + yaml.safe_dump(transformed()["Outputs"])
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


KEY = "arn:aws:kms:eu-west-1:123456789012:key/"
EVERYTHING = {
    **{name: value for name, value in LANDING_ZONE.items() if name != "LogRetentionDays"},  # a number
    **DOMAIN,
    "HostedZoneId": "Z0123456789",
    "AllowedOrigins": ORIGINS,
    "AlarmTopicArn": TOPIC,
    "TaskDelivery": "queue",
    "StateKeyArn": f"{KEY}1",
    "TrustedStateKeyArns": f"{KEY}2",
    "TrustedStateEncryptionKeyArns": f"{KEY}2,{KEY}3",
}


def test_all_options_together_are_lint_clean(tmp_path: Path) -> None:
    at_once = EVERYTHING | {"SnapStart": "enabled", "StatePublicKeys": f"1:{'A' * 122}=="}
    gradual = EVERYTHING | {
        "ProvisionedConcurrency": "2",
        "StateSigning": "delegated",
        "StateEncryption": "disabled",
    }
    assert (broken_rules(**at_once), broken_rules(**gradual)) == ([], [])
    (tmp_path / "at-once.yaml").write_text(with_defaults(transformed(), **at_once))
    taking_time = load_template(transform(Deployment=GRADUAL[0]))
    (tmp_path / "gradual.yaml").write_text(with_defaults(taking_time, **gradual, Deployment=GRADUAL[0]))
    assert lint(*tmp_path.iterdir()) == []


def test_every_parameter_has_a_description_or_a_self_explanatory_name() -> None:
    declared = transformed()["Parameters"]
    undescribed = {name for name, each in declared.items() if "Description" not in each}
    assert undescribed == {"PythonRuntime", "Architecture", "LogRetentionDays", "AuditRetentionDays"}
