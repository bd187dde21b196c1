import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import mcp_roundtrip
from mcp_roundtrip.deployment.settings import PREFIX, SHARED, Settings
from mcp_roundtrip.observing.logs_and_metrics import (
    DEFAULT_NAMESPACE,
    FINAL_EVENTS,
    WARNING_EVENTS,
    LogObserver,
)
from mcp_roundtrip_tools.template.yaml_reader import load
from support.logged_lines import logged_metrics, record_each_metric

ROOT = Path(__file__).parents[1]
DEPLOYING, OPTIONS, VERSIONS, SETTINGS, LOGS_AND_METRICS, TASKS = (
    (ROOT / f"docs/{page}.md").read_text("utf-8")
    for page in (
        "guides/deploying",
        "reference/options",
        "guides/versions",
        "reference/settings",
        "reference/logs-and-metrics",
        "guides/tasks",
    )
)
TEMPLATE, PLATFORM = load(ROOT / "template.yaml"), load(ROOT / "platform/template.yaml")

MADE = {"tool_raised", "prompt_raised", "resource_raised", "worker_failed"}
"""Errors whose event names are not literals at the place of logging."""


def section(page: str, heading: str) -> str:
    [found] = re.findall(rf"^#+ {heading}\n(.*?)(?=^#+ |\Z)", page, re.DOTALL | re.MULTILINE)
    return str(found)


def rows(text: str) -> Iterator[tuple[set[str], list[str]]]:
    """Return the names in the first cell of each row, with the other cells."""
    for row in re.findall(r"^\| (`.+) \|$", text, re.MULTILINE):
        first, *others = row.split(" | ")
        yield set(re.findall(r"`(\w+)`", first)), others


def names(text: str) -> set[str]:
    return {name for found, _ in rows(text) for name in found}


def test_the_table_of_packages_has_each_one_of_the_layer():
    lock = (ROOT / "layers/mcp_roundtrip/requirements.lock").read_text("utf-8")
    page = (ROOT / "docs/explanation/what-is-deployed.md").read_text("utf-8")
    first_cells = " ".join(re.findall(r"^\| (`.+?) \|", page, re.MULTILINE))
    packages = set(re.findall(r"`([\w-]+)`", first_cells))
    assert [name for name in re.findall(r"^[\w-]+(?===)", lock, re.MULTILINE) if name not in packages] == []


def test_the_tables_have_exactly_the_options_of_the_platform():
    options, _, _ = OPTIONS.partition("\n## Sizes\n")
    passed_by_the_template = {"Application", "Values"}
    assert names(options) == PLATFORM["Parameters"].keys() - passed_by_the_template
    assert passed_by_the_template < PLATFORM["Parameters"].keys()


def test_the_table_has_exactly_the_environment_variables():
    functions = [
        each for each in TEMPLATE["Resources"].values() if each["Type"] == "AWS::Serverless::Function"
    ]
    sections = [TEMPLATE["Globals"]["Function"], *(each["Properties"] for each in functions)]
    variables = {name for each in sections for name in each.get("Environment", {}).get("Variables", {})}
    settings = {f"{PREFIX}{setting.upper()}" for setting in Settings.__struct_fields__}
    of_an_example = {
        "APPROVALS_URL",
        "APPROVAL_SENDER",
        "APPROVAL_TABLE",
        "APPROVERS",
        "ARCHIVE_API_URL",
        "AWS_ENDPOINT_URL_SESV2",
        "AZURE_DEVOPS_SECRET",
        "AZURE_DEVOPS_URL",
        "DATABASES_API_URL",
        "GEOCODING_API_URL",
        "RFC_EDITOR_URL",
        "WEATHER_API_URL",
    }
    of_the_block_for_traces = {"AWS_LAMBDA_EXEC_WRAPPER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}
    of_powertools = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"}  # set or not, they are read
    read = variables | settings | {SHARED} | of_powertools | of_the_block_for_traces
    assert names(SETTINGS) == read - of_an_example, "docs/reference/settings.md"


def logged(level: str) -> set[str]:
    """Return the documented events of a log level."""
    table = rows(section(LOGS_AND_METRICS, "Log events"))
    return {name for found, others in table if level in others[0].split(", ") for name in found}


@cache
def calls() -> list[ast.Call]:
    """Return the calls with arguments in the layer."""
    files = Path(mcp_roundtrip.__file__).parent.rglob("*.py")
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    return [node for node in nodes if isinstance(node, ast.Call) and node.args]


def called(method: str) -> set[str]:
    """Return the event names in calls of an observer's `record` or `record_failure`."""
    named = [call.args[0] for call in calls() if method in vars(call.func).values()]
    texts = [text for name in named for text in ast.walk(name) if isinstance(text, ast.Constant)]
    return {text.value for text in texts if isinstance(text.value, str)}


def test_every_log_event_has_a_row_at_its_level():
    assert logged("INFO") > FINAL_EVENTS
    assert logged("WARNING") == WARNING_EVENTS
    assert logged("INFO") | WARNING_EVENTS == called("record") | called("_record")


def test_every_error_has_a_row():
    assert logged("ERROR") - MADE == (called("record_failure") | called("on_error")) - {"_raised"}


def test_every_metric_has_a_row_with_its_dimensions(capsys):
    record_each_metric()
    documented = {
        name: others[0] for found, others in rows(section(LOGS_AND_METRICS, "Metrics")) for name in found
    }
    for namespace, name, dimensions in logged_metrics(capsys):
        assert namespace == DEFAULT_NAMESPACE
        row = documented.get(name) or "`service`" + ("`reason`" if "reason" in dimensions else "")
        assert set(re.findall(r"`(\w+)`", row)) == dimensions, name
        assert (name in documented) or (name in WARNING_EVENTS | logged("ERROR"))


@pytest.mark.parametrize("level", ["INFO", "WARNING"])
def test_a_log_level_above_info_suppresses_request_lines_and_metrics(level, capsys):
    observer = LogObserver(level=level)
    observer.record("request_completed", outcome="input_required", asked=["a"])
    observer.record("state_refused", reason="expired")
    found = {metric.name for metric in logged_metrics(capsys)}
    assert found == {"state_refused"} | ({"questions"} if level == "INFO" else set())


def test_every_named_resource_exists():
    parts = (each[part] for each in (TEMPLATE, PLATFORM) for part in ("Resources", "Parameters", "Outputs"))
    ours = {name for part in parts for name in part}
    suffixes = "Function|Role|Alarm|Invocations|ToWorker|ReadsItsQueue|InvokesItself|Policy|Table|Logs"
    pages = DEPLOYING + OPTIONS + VERSIONS + LOGS_AND_METRICS + TASKS
    named = set(re.findall(rf"`([A-Z]\w+(?:{suffixes}))`", pages))
    assert len(named) > 4
    assert named <= ours
