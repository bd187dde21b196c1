"""Log lines, with Powertools as the oracle: dashboards and alarms that read its lines read these."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from itertools import product
from operator import mul
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import (
    booleans,
    builds,
    dictionaries,
    integers,
    lists,
    none,
    recursive,
    text,
)

from mcp_roundtrip.observing.log_lines import (
    DEFAULT_NAMESPACE,
    MAX_LINE_BYTES,
    LineWriter,
    encode_line,
    log_level,
    metrics_namespace,
    service_name,
)
from support.interpreters import run_program

HEADER = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0"
TAGS = {"correlation_id": "request-1", "flow": "f"}
FIELDS = {"tool": "orders", "round": 2, "asked": ["a", "é"], "other": None, "took": {1.5}}

POWERTOOLS = f"""
from aws_lambda_powertools import Logger, single_metric
logger = Logger(location=None, utc=True)
logger.append_keys(**{TAGS!r})
logger.warning("state_refused", extra={FIELDS!r})
with single_metric("state_refused", "Count", 1, namespace="mcp-roundtrip") as metric:
    metric.add_dimension("service", logger.service)
    metric.add_dimension("reason", "expired")
    for name, value in {TAGS!r}.items():
        metric.add_metadata(name, value)
"""

Lines = Callable[[], list[Any]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def writer(level: str = "INFO", header: str | None = None) -> LineWriter:
    found = LineWriter("orders", level, lambda: header, lambda: 1795379741.7359)
    found.tags = dict(TAGS)
    return found


def written_by_powertools(script: str, **variables: str) -> list[Any]:
    """Return the lines of Powertools, which keeps its handlers and reads its variables once."""
    return [json.loads(line) for line in run_program(script, **variables).stdout.splitlines()]


def test_a_line_and_a_count_equal_those_of_powertools(lines: Lines) -> None:
    line, count = written_by_powertools(POWERTOOLS, POWERTOOLS_SERVICE_NAME="orders", _X_AMZN_TRACE_ID=HEADER)
    writer(header=HEADER).write("WARNING", "state_refused", FIELDS)
    writer().write_counts("mcp-roundtrip", {"state_refused": 1}, {"reason": "expired"})
    own_line, own_count = lines()
    shape = re.sub(r"\d", "0", line.pop("timestamp"))
    assert re.sub(r"\d", "0", own_line.pop("timestamp")) == shape
    assert own_line == line
    count["_aws"].pop("Timestamp")
    own_count["_aws"].pop("Timestamp")
    assert own_count == count


def test_the_timestamp_is_utc_with_milliseconds(lines: Lines) -> None:
    writer().write("INFO", "request_completed", {})
    assert lines()[0]["timestamp"] == "2026-11-22 20:35:41,735+0000"


LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LEVEL_SCRIPT = """
import os
from aws_lambda_powertools import Logger
for least in {levels}:
    os.environ["{variable}"] = least
    logger = Logger(service=least)
    for level in ("INFO", "WARNING", "ERROR"):
        getattr(logger, level.lower())(level)
"""


@pytest.mark.parametrize(
    ("variable", "levels"),
    [
        ("POWERTOOLS_LOG_LEVEL", LEVELS),
        ("LOG_LEVEL", [*LEVELS, "warning"]),
        ("AWS_LAMBDA_LOG_LEVEL", ["DEBUG", "INFO", "WARN", "ERROR", "FATAL"]),
    ],
)
def test_levels_suppress_the_lines_that_they_suppress_in_powertools(
    variable: str, levels: list[str], lines: Lines
) -> None:
    for least, level in product(levels, ("INFO", "WARNING", "ERROR")):
        LineWriter(least, log_level({variable: least}), lambda: None).write(level, level, {})
    own = [(line["service"], line["message"]) for line in lines()]
    theirs = written_by_powertools(LEVEL_SCRIPT.format(levels=levels, variable=variable))
    assert own == [(line["service"], line["message"]) for line in theirs]


def test_the_level_of_lambda_precedes_that_of_powertools() -> None:
    variables = {"AWS_LAMBDA_LOG_LEVEL": "WARN", "POWERTOOLS_LOG_LEVEL": "DEBUG", "LOG_LEVEL": "ERROR"}
    assert log_level(variables) == "WARN"
    assert log_level({**variables, "AWS_LAMBDA_LOG_LEVEL": ""}) == "DEBUG"
    assert log_level({}) == "INFO"


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="'verbose'"):
        writer("verbose")


def test_a_service_without_a_name_has_that_of_powertools() -> None:
    [line] = written_by_powertools("from aws_lambda_powertools import Logger; Logger().info('')")
    assert service_name({}, str) == service_name({"POWERTOOLS_SERVICE_NAME": ""}, str) == line["service"]


@pytest.mark.parametrize(
    ("function", "prefix", "service"),
    [
        ("shop_orders", "shop_", "orders"),
        ("shop_orders_worker", "shop_", "orders_worker"),
        ("shop-orders", "shop_", "shop-orders"),
        ("_orders", "", "_orders"),
    ],
)
def test_a_function_is_its_own_service_without_the_name_of_its_stack(
    function: str, prefix: str, service: str
) -> None:
    variables = {"AWS_LAMBDA_FUNCTION_NAME": function}
    assert service_name(variables, lambda: prefix) == service
    assert service_name({**variables, "POWERTOOLS_SERVICE_NAME": "own"}, lambda: prefix) == "own"


def test_metrics_have_the_namespace_of_powertools() -> None:
    assert metrics_namespace({"POWERTOOLS_METRICS_NAMESPACE": "shop"}) == "shop"
    assert metrics_namespace({"POWERTOOLS_METRICS_NAMESPACE": ""}) == DEFAULT_NAMESPACE


def test_lines_of_several_threads_do_not_mix(lines: Lines) -> None:
    def write() -> None:
        for _ in range(200):
            writer().write("INFO", "request_completed", {"text": "x" * 200})

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines()) == 800


SMALL = recursive(
    none() | booleans() | integers() | text(),
    lambda children: lists(children) | dictionaries(text(), children),
    max_leaves=4,
)
LARGE = builds(mul, text(min_size=1, max_size=2), integers(0, 90_000)) | builds(
    lambda item, count: [item] * count, SMALL, integers(0, 1_000)
)


@settings(max_examples=25, deadline=None)
@given(fields=dictionaries(text(max_size=20), SMALL | LARGE, max_size=5))
def test_a_line_fits_into_a_log_event_whatever_its_members_hold(fields: dict[str, Any]) -> None:
    line = {"message": "request_completed", **fields}
    written = encode_line(line)
    assert len(written.encode()) <= MAX_LINE_BYTES
    whole = json.dumps(line, separators=(",", ":"))
    if len(whole) <= MAX_LINE_BYTES:
        assert written == whole
    else:
        found = json.loads(written)
        assert found["uncut_bytes"] == len(whole)
        assert found.keys() == {*line, "uncut_bytes"}


def test_only_the_largest_members_of_a_long_line_are_cut(lines: Lines) -> None:
    fields = {"asked": ["k" * 400] * 300, "exception": "語" * 50_000, "took": {1.5}, "counts": {"a": 1}}
    writer().write("INFO", "request_completed", fields)
    (line,) = lines()
    assert line["exception"] == "語" * 85 + "...[300000 bytes]"
    assert (line["message"], line["took"], line["counts"]) == ("request_completed", "{1.5}", {"a": 1})
    assert line["asked"] == ["k" * 400] * 300
    assert line["uncut_bytes"] > 400_000


@pytest.mark.parametrize(("levels", "items"), [(1, 500), (2, 30), (3, 10), (50, 1)])
def test_a_line_with_nested_lists_fits(levels: int, items: int) -> None:
    value: Any = "x" * 1_000
    for _ in range(levels):
        value = [value] * items
    written = encode_line({"message": "m", "nested": value, "other": [value] * 2, "more": ["y"] * 100_000})
    assert len(written) <= MAX_LINE_BYTES
    assert json.loads(written)["message"] == "m"
