"""Log lines and metrics, and the size of lines."""

import io
import json
import logging
import logging.config
from collections.abc import Callable
from contextlib import redirect_stdout
from operator import mul
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import booleans, builds, dictionaries, integers, lists, none, recursive, text

from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.observing.logs_and_metrics import MAX_LINE_BYTES, LogObserver, encode_line
from support.interpreters import run_program

Lines = Callable[[], list[Any]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    """Return a function that returns the log lines since the last call."""
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


CONFIGURES_LOGGING = """
import logging.config
from mcp_roundtrip.observing.logs_and_metrics import LogObserver
observer = LogObserver()
observer.begin("request-1")
logging.config.dictConfig({"version": 1})  # disables the loggers that exist
observer.record("state_refused", reason="expired")
observer.record_failure("tool_raised", ValueError())
observer.record("request_completed")
"""


def test_a_tool_that_configures_logging_disables_no_line():
    lines = map(json.loads, run_program(CONFIGURES_LOGGING).stdout.splitlines())
    messages = [line["message"] for line in lines if "message" in line]
    assert messages == ["state_refused", "tool_raised", "request_completed"]


def test_a_line_is_written_once_whatever_the_root_logger_has(capfd):
    handler = logging.StreamHandler()
    logging.getLogger().addHandler(handler)
    try:
        LogObserver().record("request_completed")
    finally:
        logging.getLogger().removeHandler(handler)
    written = capfd.readouterr()
    assert (written.out.count("request_completed"), written.err) == (1, "")


class Unprintable:
    def __str__(self) -> str:
        raise ValueError("card 4111 1111")


@pytest.mark.parametrize("event", ["request_completed", "state_refused", "setting_missing"])
@pytest.mark.parametrize("value", [Unprintable(), {(1, 2): "card 4111 1111"}], ids=["unprintable", "no JSON"])
def test_a_line_that_cannot_be_written_fails_no_request(lines, event, value):
    observer = LogObserver()
    observer.begin("request-1")
    observer.record(event, value=value)
    observer.record_failure(event, ValueError("card"), value=value)
    found = lines()
    assert "4111" not in json.dumps(found)
    defects = [line for line in found if line.get("message") == "internal_error"]
    assert [(line["event"], line["correlation_id"]) for line in defects] == [(event, "request-1")] * 2
    assert [line["internal_error"] for line in found if "internal_error" in line] == [[1.0]] * 2


def test_the_reason_of_an_event_is_a_dimension_of_its_metric_but_not_that_of_an_answer(lines):
    for event in ("state_refused", "answer_refused"):
        LogObserver().record(event, reason="q.action must be accept")
    assert ["reason" in line for line in lines() if "_aws" in line] == [True, False]


def test_values_that_cannot_be_redacted_fail_no_request(lines):
    def values() -> list[Any]:
        raise RuntimeError

    observer = LogObserver()
    observer.begin("request-1")
    observer.redact(values)
    observer.record_failure("tool_raised", ValueError("card 4111 1111"))
    defect, _ = lines()
    assert (defect["message"], defect["event"]) == ("internal_error", "tool_raised")
    assert "4111" not in json.dumps(defect)


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_closed_output_fails_no_request(capfd):
    with redirect_stdout(Closed()):
        observer = LogObserver(level="verbose")
        observer.begin("request-1")
        observer.record("request_completed")
        observer.record_failure("tool_raised", ValueError())
    assert capfd.readouterr() == ("", "")


def test_a_line_never_has_the_id_and_the_fields_of_an_earlier_invocation(lines):
    observer = LogObserver()
    observer.begin("request-1")
    observer.tag(flow="of request 1")
    observer.begin("request-2")
    observer.record("request_completed")
    (line,) = lines()
    assert (line["correlation_id"], "flow" in line) == ("request-2", False)


def test_a_failure_is_logged_with_traceback_and_reason_but_not_that_of_a_foreign_exception(lines):
    class Refused(Exception):
        reason = "card 4111"

    try:
        raise KeyServiceError("ThrottlingException")
    except KeyServiceError as error:
        LogObserver().record_failure("state_unavailable", error, tool="weather")
    line, metric = lines()
    assert (line["level"], line["reason"], line["tool"]) == ("ERROR", "ThrottlingException", "weather")
    assert "Traceback" in line["exception"]
    assert metric["state_unavailable"] == [1.0]
    LogObserver().record_failure("tool_raised", Refused("refused"))
    assert "card 4111" not in json.dumps(lines())


def test_a_traceback_is_redacted_but_on_the_author_s_computer(lines):
    for redacts in (True, False):
        observer = LogObserver(redacts=redacts)
        observer.begin("request-1")
        observer.redact(lambda: [{"card": "4111 1111"}])
        observer.record_failure("tool_raised", ValueError("card 4111 1111 expired"))
        observer.begin("request-2")
        observer.record_failure("tool_raised", ValueError("card 4111 1111 expired"))
        first, _, second, _ = lines()
        assert ("card [redacted] expired" in first["exception"]) is redacts
        assert "card 4111 1111 expired" in second["exception"], "a value of the previous request"


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
def test_a_line_fits_into_a_log_event_whatever_its_members_hold(fields):
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


def test_a_long_list_is_cut_to_its_first_items():
    line = json.loads(encode_line({"message": "m", "list": [*range(100_000)]}))
    assert line["list"] == [*range(100), "...[99900 more]"]


def test_only_the_largest_members_of_a_long_line_are_cut():
    fields = {"asked": ["k" * 400] * 300, "exception": "語" * 50_000, "took": {1.5}, "counts": {"a": 1}}
    line = json.loads(encode_line({"message": "request_completed", **fields}))
    assert line["exception"] == "語" * 85 + "...[300000 bytes]"
    assert (line["message"], line["took"], line["counts"]) == ("request_completed", "{1.5}", {"a": 1})
    assert line["asked"] == ["k" * 400] * 300
    assert line["uncut_bytes"] > 400_000


@pytest.mark.parametrize(("levels", "items"), [(1, 500), (2, 30), (3, 10), (50, 1), (800, 1)])
def test_a_line_with_nested_lists_fits(levels, items):
    value: Any = "x" * 1_000
    for _ in range(levels):
        value = [value] * items
    written = encode_line({"message": "m", "nested": value, "other": [value] * 2, "more": ["y"] * 100_000})
    assert len(written) <= MAX_LINE_BYTES
    assert json.loads(written)["message"] == "m"
