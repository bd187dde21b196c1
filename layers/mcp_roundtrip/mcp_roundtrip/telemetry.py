"""The observer of a deployment: structured log lines, and metrics in CloudWatch's embedded metric format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from json import JSONEncoder
from logging import INFO, LogRecord, getLogger
from typing import Any, Final

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from mcp_roundtrip.errors import ErrorWithReason

NAMESPACE: Final = "mcp-roundtrip"

FINAL_EVENTS: Final = frozenset(
    {"request_completed", "request_refused", "request_forwarded", "worker_finished", "task_not_claimed"}
)
"""The last event of an invocation. Its line has the duration, the number of AWS calls and the metrics."""

WARNING_EVENTS: Final = frozenset(
    {
        "asked_after_steps",
        "lease_lost",
        "question_changed",
        "state_refused",
        "state_large",
        "step_retried",
        "task_abandoned",
        "task_limit_reached",
        "unauthorized",
        "catalog_drift",
    }
)
"""Expected events that deserve an alarm when there are many."""

_FIELDS: Final = "fields"
_JSON: Final = JSONEncoder(separators=(",", ":"), default=str)


class _LineFormatter(LambdaPowertoolsFormatter):
    """Formats the lines of Powertools; a final event has its fields in one attribute of the record.

    Powertools would look for them among all attributes of the record, for half the time of a short call.
    `trace_header` returns the value of `_X_AMZN_TRACE_ID`.
    """

    def __init__(self, trace_header: Callable[[], str | None], **options: Any) -> None:
        super().__init__(**options)
        self._trace_header = trace_header

    def format(self, record: LogRecord) -> str:
        """Return the line as JSON."""
        fields = record.__dict__.get(_FIELDS)
        if fields is None:
            return super().format(record)
        header = self._trace_header()
        line = {
            **self.log_format,
            "level": record.levelname,
            "message": record.msg,
            "timestamp": self.formatTime(record),
            **fields,
            "xray_trace_id": header.split(";")[0].removeprefix("Root=") if header else None,
        }
        return self.serialize({name: value for name, value in line.items() if value is not None})


def _make_logger(trace_header: Callable[[], str | None], level: str | None = None) -> Logger:
    return Logger(
        level=level,
        logger_formatter=_LineFormatter(
            trace_header,
            utc=True,
            location=None,
            serialize_stacktrace=False,
            json_serializer=_JSON.encode,
            json_deserializer=str,  # Powertools would try to parse each event name as JSON
        ),
    )


class LogObserver:
    """Writes log lines and metrics with Powertools, which reads its settings from POWERTOOLS_*.

    `clock_ms` returns monotonic milliseconds. `starts_cold` is whether the first request waits for the
    initialization. `trace_header` returns the X-Ray trace header of the invocation.
    """

    def __init__(
        self,
        clock_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
        *,
        starts_cold: bool = True,
        trace_header: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._clock_ms = clock_ms
        self._tags: dict[str, str] = {}
        self._starts_cold = starts_cold
        self._invocations = 0
        self._began_ms = clock_ms()
        self._aws_calls: Counter[str] = Counter()
        self._redactions: list[Callable[[], Iterable[Any]]] = []
        try:
            self._logger = _make_logger(trace_header)
        except ValueError as error:  # POWERTOOLS_LOG_LEVEL is not a level; the requests are served anyway
            self._logger = _make_logger(trace_header, "INFO")
            self.record_failure("misconfigured", error)
        self._log = getLogger(self._logger.name)
        # Logger.append_keys looks up the formatter at each call, which takes longer than the rest of it.
        self._formatter = self._logger.registered_formatter

    def begin(self, correlation_id: str) -> None:
        """Begin an invocation: following lines and metrics have its id, and nothing of the previous one."""
        self._invocations += 1
        self._began_ms = self._clock_ms()
        self._aws_calls.clear()
        self._redactions.clear()
        self._formatter.remove_keys(self._tags)
        self._tags = {}
        self.tag(correlation_id=correlation_id)

    def tag(self, **fields: str) -> None:
        """Add fields to the following lines and metrics of this invocation."""
        self._tags |= fields
        self._formatter.append_keys(**fields)

    def redact(self, values: Callable[[], Iterable[Any]]) -> None:
        """Remove the values that this function returns (JSON data) from this invocation's tracebacks."""
        self._redactions.append(values)

    def count_aws_call(self, service: str) -> None:
        """Count a request to an AWS service. A retry is another request."""
        self._aws_calls[service] += 1

    def record(self, event: str, **fields: Any) -> None:
        """Log an event at level INFO; a warning event at level WARNING, and with a metric."""
        if event in WARNING_EVENTS:
            self._logger.warning(event, extra=fields)
            self._put_metric(event, fields.get("reason"))
        elif event in FINAL_EVENTS:
            self._write(event, {**fields, **self._usage(), **self._embedded_metrics(event, fields)})
        else:
            self._logger.info(event, extra=fields)

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """Log an exception with its redacted traceback at level ERROR, and with a metric."""
        from mcp_roundtrip.redaction import redacted_traceback  # most requests do not fail

        # An exception of the author's may have a `reason` with data that a metric must not contain.
        reason = error.reason if isinstance(error, ErrorWithReason) else None
        extra = fields if reason is None else {**fields, "reason": reason}
        values = [value for redaction in self._redactions for value in redaction()]
        exception = redacted_traceback(error, values)
        extra = {**extra, "exception": exception, "exception_name": type(error).__name__}
        self._logger.error(event, extra=extra)
        self._put_metric(event, reason)

    def on_exception(self, error: BaseException) -> None:
        """Do nothing: `record_failure` logs the unexpected exceptions."""

    def _write(self, event: str, fields: Mapping[str, Any]) -> None:
        log = self._log
        if log.isEnabledFor(INFO):  # Logger.info would look for the calling line, which is not logged
            log.handle(log.makeRecord(log.name, INFO, "", 0, event, (), None, extra={_FIELDS: fields}))

    def _usage(self) -> dict[str, Any]:
        return {
            "duration_ms": round(self._clock_ms() - self._began_ms, 1),
            "cold_start": self._starts_cold and self._invocations == 1,
            "kms_calls": self._aws_calls["kms"],
            "dynamodb_calls": self._aws_calls["dynamodb"],
        }

    def _embedded_metrics(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metrics that a final event's line contains."""
        counts = metric_counts(event, fields)
        if not counts:
            return {}
        metrics = EphemeralMetrics(namespace=NAMESPACE)
        metrics.add_dimension("service", self._logger.service)
        if event == "request_refused":
            metrics.add_dimension("code", str(fields["code"]))
        for name, count in counts.items():
            metrics.add_metric(name, MetricUnit.Count, count)
        return {**metrics.serialize_metric_set()}

    def _put_metric(self, event: str, reason: str | None) -> None:
        """Write a count of one, with the dimensions service and reason."""
        with single_metric(event, MetricUnit.Count, 1, namespace=NAMESPACE) as metric:
            metric.add_dimension("service", self._logger.service)
            for name, value in self._tags.items():
                metric.add_metadata(name, value)
            if reason is not None:
                metric.add_dimension("reason", reason)


def metric_counts(event: str, fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the metrics of a final event.

    `questions` are sent to clients, `rounds` are those of a call that took more than one, `declines` are
    answers that decline, `checkpoints` are rounds that ran out of time, `refusals` are errors. A call without
    questions has no metrics: writing them takes longer than writing the line.
    """
    if event == "request_refused":
        return {"refusals": 1}
    outcome = fields.get("outcome")
    counts = {"declines": fields["declined"]} if "declined" in fields else {}
    if outcome == "input_required":
        counts["questions"] = len(fields["asked"])
    elif outcome == "checkpoint":
        counts["checkpoints"] = 1
    elif fields.get("round", 1) > 1:
        counts["rounds"] = fields["round"]
    return counts
