"""Log lines and metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.observing.logs_and_metrics import LogObserver


class Lines:
    """The log lines since the last call."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self) -> list[Any]:
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    return Lines(capsys)


def test_a_line_has_the_request_id_and_the_fields(lines: Lines) -> None:
    observer = LogObserver()
    observer.begin("request-1")
    observer.record("request_completed", tool="weather", round=1)
    (line,) = lines()
    assert (line["level"], line["message"], line["correlation_id"]) == (
        "INFO",
        "request_completed",
        "request-1",
    )
    assert (line["tool"], line["round"]) == ("weather", 1)


def test_the_last_line_has_the_fields_of_every_line(lines: Lines) -> None:
    header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=x;Sampled=0"
    observer = LogObserver(trace_header=lambda: header)
    observer.begin("request-1")
    observer.tag(flow="f")
    observer.record("certificate_issued", jti="j")
    observer.record("request_forwarded", owner="o")
    other, last = lines()
    costs = {"duration_ms", "cold_start", "kms_calls", "dynamodb_calls"}
    assert last.keys() - {"owner"} - costs == other.keys() - {"jti"}
    varies = {"message", "timestamp", "owner", "jti"} | costs
    assert {name: last[name] for name in last.keys() - varies} == {
        name: other[name] for name in other.keys() - varies
    }


def test_lines_below_the_level_are_not_logged(lines: Lines) -> None:
    LogObserver(level="WARNING").record("request_completed", outcome="input_required", asked=["a"])
    assert lines() == []


def test_a_line_never_has_the_id_and_the_fields_of_an_earlier_invocation(lines: Lines) -> None:
    observer = LogObserver()
    observer.begin("request-1")
    observer.tag(flow="of request 1")
    observer.begin("request-2")
    observer.record("request_completed")
    (line,) = lines()
    assert (line["correlation_id"], "flow" in line) == ("request-2", False)


def test_a_refused_state_is_a_warning_and_a_metric_by_reason(lines: Lines) -> None:
    LogObserver().record("state_refused", reason="expired")
    warning, metric = lines()
    assert (warning["level"], warning["reason"]) == ("WARNING", "expired")
    assert (metric["state_refused"], metric["reason"]) == ([1.0], "expired")
    assert metric["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "mcp-roundtrip"


def test_a_failure_is_logged_with_traceback_and_reason(lines: Lines) -> None:
    try:
        raise KeyServiceError("ThrottlingException")
    except KeyServiceError as error:
        LogObserver().record_failure("state_unavailable", error, tool="weather")
    line, metric = lines()
    assert (line["level"], line["reason"], line["tool"]) == ("ERROR", "ThrottlingException", "weather")
    assert "Traceback" in line["exception"]
    assert metric["state_unavailable"] == [1.0]


@pytest.mark.parametrize("redacts", [True, False])
def test_a_traceback_has_the_values_of_the_request_only_on_the_author_s_computer(
    lines: Lines, redacts: bool
) -> None:
    observer = LogObserver(redacts=redacts)
    observer.redact(lambda: [{"card": "4111-1111"}])
    observer.record_failure("tool_raised", ValueError("refused: 4111-1111"))
    assert ("4111-1111" in lines()[0]["exception"]) is not redacts


def test_the_reason_of_a_foreign_exception_is_not_logged(lines: Lines) -> None:
    class Refused(Exception):
        reason = "card 4111"

    LogObserver().record_failure("tool_raised", Refused("refused"))
    assert "card 4111" not in json.dumps(lines())


def test_the_last_line_of_a_request_has_its_costs(lines: Lines) -> None:
    now = [0.0]
    observer = LogObserver(clock_ms=lambda: now[0])
    for correlation_id in ("request-1", "request-2"):
        observer.begin(correlation_id)
        now[0] += 12.34
        observer.count_aws_call("kms")
        observer.count_aws_call("dynamodb")
        observer.count_aws_call("dynamodb")
        observer.record("request_completed", tool="weather", outcome="complete", round=3)
    first, second = lines()
    for line in (first, second):
        assert (line["duration_ms"], line["kms_calls"], line["dynamodb_calls"]) == (12.3, 1, 2)
    assert (first["cold_start"], second["cold_start"]) == (True, False)


@pytest.mark.parametrize(
    ("event", "fields", "counts"),
    [
        (
            "request_completed",
            {"outcome": "complete", "round": 3, "declined": 2},
            {"rounds": 3, "declines": 2},
        ),
        (
            "request_completed",
            {"outcome": "input_required", "round": 1, "asked": ["a", "b"]},
            {"questions": 2},
        ),
        ("request_completed", {"outcome": "checkpoint", "round": 4, "asked": []}, {"checkpoints": 1}),
        ("request_completed", {"outcome": "tool_error", "round": 2}, {"rounds": 2}),
        ("request_refused", {"code": -32602, "status": 400}, {"refusals": 1}),
    ],
    ids=str,
)
def test_the_last_line_contains_metrics(
    lines: Lines, event: str, fields: dict[str, Any], counts: dict[str, int]
) -> None:
    LogObserver().record(event, **fields)
    (line,) = lines()
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert {metric["Name"] for metric in directive["Metrics"]} == counts.keys()
    assert {name: line[name] for name in counts} == {name: [count] for name, count in counts.items()}
    [dimensions] = directive["Dimensions"]
    assert all(isinstance(line[name], str) for name in dimensions)
    assert dimensions == (["service", "code"] if event == "request_refused" else ["service"])


@pytest.mark.parametrize(
    "fields",
    [{"method": "tools/list"}, {"outcome": "complete", "round": 1}, {"outcome": "not_asked"}],
    ids=str,
)
def test_a_request_without_counts_has_no_metrics(lines: Lines, fields: dict[str, Any]) -> None:
    LogObserver().record("request_completed", **fields)
    assert "_aws" not in lines()[0]


def test_a_traceback_is_redacted(lines: Lines) -> None:
    observer = LogObserver()
    observer.begin("request-1")
    observer.redact(lambda: [{"card": "4111 1111"}])
    observer.record_failure("tool_raised", ValueError("card 4111 1111 expired"))
    observer.begin("request-2")
    observer.record_failure("tool_raised", ValueError("card 4111 1111 expired"))
    first, _, second, _ = lines()
    assert "card [redacted] expired" in first["exception"]
    assert "card 4111 1111 expired" in second["exception"], "values of the previous request are not redacted"


def test_an_invalid_log_level_is_logged_and_ignored(lines: Lines) -> None:
    LogObserver(level="verbose").record("request_completed")
    assert [line["message"] for line in lines() if "message" in line] == [
        "misconfigured",
        "request_completed",
    ]
