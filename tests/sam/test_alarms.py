"""What an operator sees of a stack: its alarms, the metrics that they count, and the dashboard."""

import json
import re
from typing import Any

import pytest

from mcp_roundtrip.engine.pass_state import TASK_TTL_MS
from mcp_roundtrip.observing.logs_and_metrics import LogObserver
from support.logged_lines import logged_lines, logged_metrics, record_each_metric
from support.option_values import TOPIC
from support.transformed_template import FOLDERS, WORKER_OF, of_type, properties, variables

ALARMS = sorted(of_type("AWS::CloudWatch::Alarm"))


def test_every_failure_that_needs_an_operator_has_an_alarm():
    of_queues = {f"{tool.removesuffix('Function')}TasksAlarm" for tool in WORKER_OF}
    assert set(ALARMS) - of_queues == {
        "CrashesAlarm",
        "ErrorsAlarm",
        "RefusedRequestsAlarm",
        "ServerErrorsAlarm",
        "StateRefusedAlarm",
        "TaskAbandonedAlarm",
        "ThrottlesAlarm",
        "UndeliveredTasksAlarm",
    }
    assert of_queues < set(ALARMS)


@pytest.mark.parametrize("alarm", ALARMS)
def test_an_alarm_has_a_description_ignores_missing_data_and_notifies_the_topic(alarm):
    assert properties(alarm, AlarmTopicArn=TOPIC)["AlarmActions"] == [TOPIC]
    declared = properties(alarm)
    assert declared["AlarmActions"] == []
    assert declared["AlarmDescription"]
    assert declared["TreatMissingData"] == "notBreaching"
    assert declared["ComparisonOperator"] == "GreaterThanThreshold"
    of_queue = declared.get("MetricName") == "ApproximateAgeOfOldestMessage"
    above_zero = {"StateRefusedAlarm": 20, "RefusedRequestsAlarm": 0.9}
    assert float(declared["Threshold"]) == (2_100 if of_queue else above_zero.get(alarm, 0))


@pytest.mark.parametrize("tool", sorted(WORKER_OF))
def test_a_queue_whose_oldest_message_waits_raises_an_alarm_before_its_task_expires(tool):
    threshold_s = properties(f"{tool.removesuffix('Function')}TasksAlarm")["Threshold"]
    assert 2 * properties(WORKER_OF[tool])["Timeout"] < threshold_s < TASK_TTL_MS / 1_000


OF_AWS = {
    "ThrottlesAlarm": ("AWS/Lambda", "Throttles", "Sum", None),
    "UndeliveredTasksAlarm": ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", "UndeliveredTasks"),
    **{
        f"{queue}Alarm": ("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", f"{queue}Queue")
        for queue in (f"{tool.removesuffix('Function')}Tasks" for tool in WORKER_OF)
    },
}


@pytest.mark.parametrize(("alarm", "expected"), OF_AWS.items(), ids=OF_AWS)
def test_an_alarm_on_a_metric_of_aws_is_of_all_functions_or_of_a_queue(alarm, expected):
    *metric, queue = expected
    declared = properties(alarm)
    assert [declared[name] for name in ("Namespace", "MetricName", "Statistic")] == metric
    dimensions = [{"Name": "QueueName", "Value": f"${{{queue}.QueueName}}"}] if queue else None
    assert declared.get("Dimensions") == dimensions


def test_an_alarm_fires_if_the_api_refuses_almost_all_requests_for_a_while():
    """With a wrong setting, an authorizer of the API or a function refuses them and logs no ERROR."""
    alarm = properties("RefusedRequestsAlarm")
    *counted, share = alarm["Metrics"]
    metrics = {each["Id"]: each["MetricStat"]["Metric"] for each in counted}
    assert {name: metric["MetricName"] for name, metric in metrics.items()} == {
        "refused": "4xx",
        "requests": "Count",
    }
    of_api = [{"Name": "ApiId", "Value": "${Api}"}]
    assert all(each["Namespace"] == "AWS/ApiGateway" for each in metrics.values())
    assert all(each["Dimensions"] == of_api for each in metrics.values())
    assert share["Expression"] == "IF(requests > 5, refused / requests, 0)"
    assert alarm["EvaluationPeriods"] == 3


@pytest.mark.parametrize(("alarm", "name"), [("ErrorsAlarm", "Errors"), ("CrashesAlarm", "Crashes")])
def test_logged_errors_and_crashes_are_counted_for_their_alarm(alarm, name):
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
def test_an_invocation_that_lambda_reports_as_failed_is_a_crash(kind, status, *, is_crash):
    """The members are those of Lambda's Telemetry API, which has the same records."""
    record = {"requestId": "6f7c1a2b", **({"status": status} if status else {})}
    pattern = properties("Crashes")["FilterPattern"]
    assert matches(pattern, {"type": kind, "record": record}) is is_crash
    assert not matches(pattern, {"level": "ERROR", "message": "tool_raised"})


NAMESPACE = "mcp-roundtrip/${AWS::StackName}"


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
def test_alarms_on_custom_metrics_use_emitted_metrics(capsys, monkeypatch, alarm, event, fields):
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE)
    LogObserver().record(event, **fields)
    [metric] = properties(alarm)["Metrics"]
    query = QUERY.fullmatch(metric["Expression"])
    assert query is not None
    namespace, dimensions = schema(query[2])
    assert set(logged_metrics(capsys)) == {(namespace, query[1], dimensions)}


def test_an_error_is_counted_as_one(capsys):
    LogObserver().record_failure("misconfigured", ValueError())
    [error] = logged_lines(capsys)
    assert matches(properties("Errors")["FilterPattern"], error)


SEARCH = re.compile(r"SEARCH\('\{(.+?)\}(?: MetricName=\"(\w+)\")?', 'Sum', 300\)")


def test_the_dashboard_shows_all_custom_metrics(capsys, monkeypatch):
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE)
    record_each_metric()
    widgets = json.loads(properties("Dashboard")["DashboardBody"])["widgets"]
    assert len({(widget["x"], widget["y"]) for widget in widgets}) == len(widgets) >= 6
    assert {widget["type"] for widget in widgets} <= {"metric", "log"}
    assert all(widget["properties"]["region"] == "${AWS::Region}" for widget in widgets)
    searches = {
        (*schema(search[1]), search[2])
        for widget in widgets
        for row in widget["properties"].get("metrics", [])
        if isinstance(row[0], dict) and (search := SEARCH.fullmatch(row[0]["expression"]))
    }
    for namespace, name, dimensions in logged_metrics(capsys):
        assert {(namespace, dimensions, name), (namespace, dimensions, None)} & searches, name


def test_metrics_of_two_stacks_never_mix():
    """Alarms and the dashboard read metrics of the stack's namespace, or of a resource of the stack."""
    assert {variables(function)["POWERTOOLS_METRICS_NAMESPACE"] for function in FOLDERS} == {NAMESPACE}
    for name, alarm in of_type("AWS::CloudWatch::Alarm").items():
        if name == "ThrottlesAlarm":  # watches the concurrency that stacks share
            continue
        of_resource = str(alarm.get("Dimensions", alarm.get("Metrics")))
        assert NAMESPACE in json.dumps(alarm) or "${" in of_resource, name
    widgets = json.loads(properties("Dashboard")["DashboardBody"])["widgets"]
    for row in (row for widget in widgets for row in widget["properties"].get("metrics", [])):
        own = NAMESPACE in json.dumps(row) or "${" in json.dumps(row)
        assert (own and "AWS/Lambda,FunctionName" not in json.dumps(row)) or row == [
            "AWS/Lambda",
            "Throttles",
        ]
