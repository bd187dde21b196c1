"""Lines that tools log with Powertools' `Logger`."""

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import BasePowertoolsFormatter

from mcp_roundtrip.observing.logs_and_metrics import LogObserver
from support.interpreters import run_program
from support.messages import META, call, message

SERVER = """
import json, sys
from types import SimpleNamespace
from aws_lambda_powertools import Logger
from mcp_roundtrip import Context, Server

logger = Logger()
server = Server("orders")


@server.tool
def cancel(ctx: Context, order: str) -> str:
    logger.info("cancelling", extra={"order": order})
    Logger(child=True).warning("cancelled")
    Logger(service="audit").error("audited")
    return order


@server.tool
def fail(ctx: Context, order: str) -> str:
    raise LookupError(order)


@server.resource("orders://open")
def orders() -> str:
    logger.info("listed")
    return "none"


for number, request in enumerate(json.load(sys.stdin), 1):
    context = SimpleNamespace(
        aws_request_id=f"request-{number}", client_context=None, get_remaining_time_in_millis=lambda: 29_000
    )
    server.lambda_handler(request, context)
"""

TRACED = {**META, "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}

KEYS = ("service", "correlation_id", "flow", "trace_id")


def logged(*requests: Any, **variables: str) -> list[dict[str, Any]]:
    """Return the lines of a new process that answers these requests, without those about missing settings."""
    done = run_program(SERVER, stdin=json.dumps(requests), MCP_AUTH_MODE="none", **variables)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines() if "setting_missing" not in line]


def keys(line: Mapping[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in KEYS if name in line}


def by_message(lines: list[dict[str, Any]], request: int) -> dict[str, dict[str, Any]]:
    return {line["message"]: line for line in lines if line.get("correlation_id") == f"request-{request}"}


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return logged(
        call("cancel", {"order": "A-1"}, meta=TRACED),
        call("cancel", {"order": "A-2"}),
        message("resources/read", uri="orders://open"),
        POWERTOOLS_SERVICE_NAME="orders",
    )


def test_lines_of_a_tool_have_the_keys_of_its_request(lines):
    first = by_message(lines, 1)
    assert keys(first["request_completed"]).keys() == set(KEYS)
    assert keys(first["cancelling"]) == keys(first["request_completed"])
    assert keys(first["cancelled"]) == keys(first["request_completed"]), "a child logger"
    assert first["cancelling"]["order"] == "A-1"


def test_lines_of_the_next_request_have_nothing_of_the_previous_one(lines):
    first, second, third = (by_message(lines, request) for request in (1, 2, 3))
    assert keys(second["cancelling"]) == keys(second["request_completed"])
    assert keys(second["cancelling"]).keys() == {"service", "correlation_id", "flow"}
    assert second["cancelling"]["flow"] != first["cancelling"]["flow"]
    assert keys(third["listed"]) == keys(third["request_completed"])


def test_a_logger_of_another_service_is_not_changed(lines):
    audited = [keys(line) for line in lines if line["message"] == "audited"]
    assert audited == [{"service": "audit"}] * 2


def test_lines_of_a_tool_have_the_level_of_its_server_that_lambda_sets():
    request, levels = call("cancel", {"order": "A-1"}), {"POWERTOOLS_LOG_LEVEL": "ERROR"}
    found = logged(request, AWS_LAMBDA_LOG_LEVEL="WARN", **levels)
    assert {line["message"] for line in found} - {"audited"} == {"cancelled"}


@pytest.mark.parametrize(
    "levels",
    [
        {"POWERTOOLS_LOG_LEVEL": "WARNING", "AWS_LAMBDA_LOG_LEVEL": "INFO"},
        {"AWS_LAMBDA_LOG_LEVEL": "WARN"},
    ],
    ids=str,
)
def test_lines_of_requests_are_not_written_below_the_higher_level_of_powertools_and_lambda(levels):
    found = {line["message"] for line in logged(call("cancel", {"order": "A-1"}), **levels)}
    assert "request_completed" not in found
    assert "cancelled" in found


def test_lines_of_a_tool_have_the_service_of_its_function_and_redacted_tracebacks():
    requests = call("cancel", {"order": "A-1"}), call("fail", {"order": "4111 1111"})
    lines = logged(*requests, AWS_LAMBDA_FUNCTION_NAME="shop_orders", MCP_ISSUER="shop")
    assert {(line["service"], line["message"] == "audited") for line in lines if "message" in line} == {
        *(("orders", False), ("audit", True))
    }
    [failed] = [line for line in lines if line.get("exception")]
    assert "[redacted]" in failed["exception"]
    assert "4111 1111" not in json.dumps(failed)


def test_the_format_that_an_author_chose_stays(capsys):
    service = f"service-{uuid4()}"
    observer = LogObserver(service=service)
    observer.begin("request-1")
    logger = Logger(service=service, log_record_order=["message"], location=None)
    observer.begin("request-2")
    logger.info("noted")
    line = capsys.readouterr().out
    assert line.startswith('{"message":"noted"')
    assert json.loads(line)["correlation_id"] == "request-2"


class OwnFormatter(BasePowertoolsFormatter):
    """A formatter without keys. That of Powertools, from which it inherits, raises NotImplementedError."""

    def append_keys(self, **additional_keys: Any) -> None:
        pass

    def clear_state(self) -> None:
        pass


@pytest.mark.parametrize(
    "formatter", [None, logging.Formatter(), OwnFormatter()], ids=["none", "standard", "own"]
)
def test_a_logger_that_takes_no_keys_is_not_changed(formatter, capsys):
    service = f"service-{uuid4()}"
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(formatter)
    if isinstance(formatter, BasePowertoolsFormatter):
        Logger(service=service, logger_handler=handler, logger_formatter=formatter)
    else:
        logging.getLogger(service).addHandler(handler)
    observer = LogObserver(service=service)
    observer.begin("request-1")
    logging.getLogger(service).error("noted")
    assert capsys.readouterr().out == "noted\n"
    assert logging.getLogger(service).handlers == [handler]
    observer.record("request_completed")
    assert json.loads(capsys.readouterr().out)["correlation_id"] == "request-1"


def make_loggers() -> tuple[LogObserver, Logger]:
    """Return the observer in a request, and a tool's logger, which keeps the sys.stdout of this moment."""
    service = f"service-{uuid4()}"
    logger = Logger(service=service)
    observer = LogObserver(service=service)
    observer.begin("request-1")
    return observer, logger


@pytest.mark.parametrize(
    "change",
    [
        lambda logger: logger.append_keys(order="A-1"),
        lambda logger: logger.structure_logs(order="A-1"),
        lambda logger: logger.clear_state(),
        lambda logger: logger.remove_keys(["correlation_id", "service"]),
        lambda logger: logger.setLevel("CRITICAL"),
        lambda logger: logger.addFilter(lambda record: False),
        lambda logger: Logger(service=logger.service, level="CRITICAL", location="%(lineno)d"),
    ],
)
def test_what_a_tool_does_with_its_logger_changes_no_line_of_the_package(change, capsys):
    observer, logger = make_loggers()
    observer.record("certificate_issued")
    change(logger)
    observer.record("certificate_issued")
    before, after = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert after | {"timestamp": ""} == before | {"timestamp": ""}


def test_keys_of_a_thread_are_in_no_line_of_the_next_request(capsys):
    observer, logger = make_loggers()
    logger.thread_safe_append_keys(order="A-1", correlation_id="own")
    observer.record("certificate_issued")
    observer.begin("request-2")
    observer.record("certificate_issued")
    logger.warning("noted")
    first, *others = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["correlation_id"], first["order"]) == ("request-1", "A-1")
    assert [(line["correlation_id"], "order" in line) for line in others] == [("request-2", False)] * 2


METRICS = """
import os
from aws_lambda_powertools import Metrics
from mcp_roundtrip.deployment.wiring import observer

metrics = Metrics()
metrics.add_metric("orders", "Count", 2)
observer().begin("request-1")
observer().record("request_refused", code=-32602, status=400)
observer().record("state_refused", reason="expired")
metrics.flush_metrics()
"""


def test_metrics_of_a_tool_and_of_the_package_do_not_mix():
    done = run_program(METRICS, POWERTOOLS_SERVICE_NAME="orders", POWERTOOLS_METRICS_NAMESPACE="shop")
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = [
        (directive["Namespace"], directive["Dimensions"], directive["Metrics"])
        for line in lines
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", ())
    ]
    assert found == [
        ("shop", [["service", "code"]], [{"Name": "refusals", "Unit": "Count"}]),
        ("shop", [["service", "reason"]], [{"Name": "state_refused", "Unit": "Count"}]),
        ("shop", [["service"]], [{"Name": "orders", "Unit": "Count"}]),
    ]
    assert {line["service"] for line in lines} == {"orders"}
