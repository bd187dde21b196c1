"""The log lines of this process, and the metrics in them."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.observing.logs_and_metrics import LogObserver


class Metric(NamedTuple):
    namespace: str
    name: str
    dimensions: frozenset[str]


def logged_lines(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """Return the log lines since the last call, without lines that only hold counts."""
    text = capsys.readouterr().out
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if "message" in line]


def logged_metrics(capsys: pytest.CaptureFixture[str]) -> Iterator[Metric]:
    """Yield the metrics since the last call, as CloudWatch reads them."""
    for line in map(json.loads, capsys.readouterr().out.splitlines()):
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", ()):
            for dimensions in map(frozenset, directive["Dimensions"]):
                for metric in directive["Metrics"]:
                    yield Metric(directive["Namespace"], metric["Name"], dimensions)


def record_each_metric() -> None:
    """Record a value of each metric."""
    observer = LogObserver()
    observer.record("request_completed", outcome="input_required", asked=["a"], declined=1)
    observer.record("request_completed", outcome="checkpoint")
    observer.record("request_completed", outcome="complete", round=2)
    observer.record("request_refused", code=-32602, status=400)
    observer.record("state_refused", reason="expired")
    observer.record("task_abandoned", task="one")
    observer.record_failure("state_unavailable", KeyServiceError("timeout"))
