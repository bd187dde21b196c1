"""What ends up in the log, and as a metric."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from mcp_roundtrip.errors import KeyServiceError
from mcp_roundtrip.telemetry import LogObserver


class Lines:
    """The lines that were written since the last look."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self) -> list[Any]:
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lines:
    # Powertools keeps one handler for each service name, on the stdout it saw first.
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", f"service-{uuid4()}")
    return Lines(capsys)


def test_a_line_carries_the_invocations_id_and_the_fields(lines: Lines) -> None:
    observer = LogObserver()
    observer.begin("request-1")
    observer.record("answered", tool="weather", round=1)
    (line,) = lines()
    assert (line["level"], line["message"], line["correlation_id"]) == ("INFO", "answered", "request-1")
    assert (line["tool"], line["round"]) == ("weather", 1)


def test_the_id_of_one_invocation_is_not_on_the_lines_of_the_next(lines: Lines) -> None:
    observer = LogObserver()
    observer.begin("request-1")
    observer.begin("request-2")
    observer.record("answered")
    assert lines()[0]["correlation_id"] == "request-2"


def test_a_refused_state_is_a_warning_and_a_metric_by_reason(lines: Lines) -> None:
    LogObserver().record("state_refused", reason="expired")
    warning, metric = lines()
    assert (warning["level"], warning["reason"]) == ("WARNING", "expired")
    assert (metric["state_refused"], metric["reason"]) == ([1.0], "expired")
    assert metric["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "mcp-roundtrip"


def test_a_failure_has_its_traceback_and_the_reason_its_message_keeps_back(lines: Lines) -> None:
    try:
        raise KeyServiceError("ThrottlingException")
    except KeyServiceError as error:
        LogObserver().failure("state_unavailable", error, tool="weather")
    line, metric = lines()
    assert (line["level"], line["reason"], line["tool"]) == ("ERROR", "ThrottlingException", "weather")
    assert "Traceback" in line["exception"]
    assert metric["state_unavailable"] == [1.0]


def test_the_reason_of_somebody_elses_exception_is_neither_a_metric_nor_a_field(lines: Lines) -> None:
    class Refused(Exception):
        reason = "card 4111"

    LogObserver().failure("tool_raised", Refused("refused"))
    assert "card 4111" not in json.dumps(lines())


def test_a_log_level_that_is_none_is_said_and_does_not_stop_the_log(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "verbose")
    LogObserver().record("answered")
    assert [line["message"] for line in lines() if "message" in line] == ["misconfigured", "answered"]
