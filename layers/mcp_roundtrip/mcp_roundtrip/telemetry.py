"""The observer that a deployment gets: a structured log line for each request and for whatever else happened,
and metrics in CloudWatch's embedded format (EMF)."""

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

REQUESTS: Final = frozenset(
    {"request_completed", "request_refused", "request_forwarded", "worker_finished", "task_not_claimed"}
)
"""The last line of a request, or of a worker's turn: it says how long that took."""

WARNINGS: Final = frozenset(
    {
        "asked_after_steps",
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
"""Expected events that are worth an alarm when they become many."""

_FIELDS: Final = "fields"
_LINE: Final = JSONEncoder(separators=(",", ":"), default=str)


class _Lines(LambdaPowertoolsFormatter):
    """Powertools' lines. A request's last one brings its fields in one attribute of the record: to tell
    fields from a record's other attributes takes half as long as a short call."""

    def format(self, record: LogRecord) -> str:
        """The line as JSON."""
        fields = record.__dict__.get(_FIELDS)
        if fields is None:
            return super().format(record)
        line = {
            **self.log_format,
            "level": record.levelname,
            "message": record.msg,
            "timestamp": self.formatTime(record),
            **fields,
            "xray_trace_id": self._get_latest_trace_id(),
        }
        return self.serialize({name: value for name, value in line.items() if value is not None})


def _logger(level: str | None = None) -> Logger:
    return Logger(
        level=level,
        logger_formatter=_Lines(
            utc=True,
            location=None,
            serialize_stacktrace=False,
            json_serializer=_LINE.encode,
            json_deserializer=str,  # events are names: Powertools would try to read each as JSON
        ),
    )


class LogObserver:
    """Writes through Powertools, which reads the level and the service's name from POWERTOOLS_*.

    `clock_ms` gives monotonic milliseconds. `starts_cold` is whether the first request waits for the
    environment's start.
    """

    def __init__(
        self, clock_ms: Callable[[], float] = lambda: time.monotonic() * 1000, *, starts_cold: bool = True
    ) -> None:
        self._clock_ms = clock_ms
        self._tags: dict[str, str] = {}
        self._starts_cold = starts_cold
        self._invocations = 0
        self._began_ms = clock_ms()
        self._calls: Counter[str] = Counter()
        self._redactions: list[Callable[[], Iterable[Any]]] = []
        try:
            self._logger = _logger()
        except ValueError as error:  # POWERTOOLS_LOG_LEVEL is no level: rather too many lines than no answer
            self._logger = _logger("INFO")
            self.failure("misconfigured", error)
        self._log = getLogger(self._logger.name)
        # Logger's own methods look for it anew every time, which costs more than what they then do.
        self._keys = self._logger.registered_formatter

    def begin(self, correlation_id: str) -> None:
        """Put the invocation's id on every line and metric that follows, and nothing of the one before."""
        self._invocations += 1
        self._began_ms = self._clock_ms()
        self._calls.clear()
        self._redactions.clear()
        self._keys.remove_keys(self._tags)
        self._tags = {}
        self.tag(correlation_id=correlation_id)

    def tag(self, **fields: str) -> None:
        """Put these on every line and metric that follows as well."""
        self._tags |= fields
        self._keys.append_keys(**fields)

    def redact(self, values: Callable[[], Iterable[Any]]) -> None:
        """Remove the values that this function returns (JSON data) from this invocation's tracebacks."""
        self._redactions.append(values)

    def called(self, service: str) -> None:
        """Count a call of an AWS service, retries included."""
        self._calls[service] += 1

    def record(self, event: str, **fields: Any) -> None:
        """INFO; WARNING and a metric for the events that deserve it."""
        if event in WARNINGS:
            self._logger.warning(event, extra=fields)
            self._count(event, fields.get("reason"))
        elif event in REQUESTS:
            self._write(event, {**fields, **self._costs(), **self._metrics(event, fields)})
        else:
            self._logger.info(event, extra=fields)

    def failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """ERROR with the traceback, and a metric."""
        from mcp_roundtrip.redaction import traceback_of  # most requests do not fail

        # Only our own: an author's exception may have a reason that says what no metric should.
        reason = error.reason if isinstance(error, ErrorWithReason) else None
        extra = fields if reason is None else {**fields, "reason": reason}
        redacted = [value for values in self._redactions for value in values()]
        told = {"exception": traceback_of(error, redacted), "exception_name": type(error).__name__}
        self._logger.error(event, extra={**extra, **told})
        self._count(event, reason)

    def raised(self, error: BaseException) -> None:
        """Nothing: the log has the errors that nobody expected."""

    def _write(self, event: str, fields: Mapping[str, Any]) -> None:
        log = self._log
        if log.isEnabledFor(INFO):  # by hand: `info` looks for its caller, whom no line names
            log.handle(log.makeRecord(log.name, INFO, "", 0, event, (), None, extra={_FIELDS: fields}))

    def _costs(self) -> dict[str, Any]:
        return {
            "duration_ms": round(self._clock_ms() - self._began_ms, 1),
            "cold_start": self._starts_cold and self._invocations == 1,
            "kms_calls": self._calls["kms"],
            "dynamodb_calls": self._calls["dynamodb"],
        }

    def _metrics(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The line is its own metric, for what there is to count in it."""
        counts = counts_of(event, fields)
        if not counts:
            return {}
        metrics = EphemeralMetrics(namespace=NAMESPACE)
        metrics.add_dimension("service", self._logger.service)
        if event == "request_refused":
            metrics.add_dimension("code", str(fields["code"]))
        for name, count in counts.items():
            metrics.add_metric(name, MetricUnit.Count, count)
        return {**metrics.serialize_metric_set()}

    def _count(self, event: str, reason: str | None) -> None:
        """One count, by service and reason."""
        with single_metric(event, MetricUnit.Count, 1, namespace=NAMESPACE) as metric:
            metric.add_dimension("service", self._logger.service)
            for name, value in self._tags.items():
                metric.add_metadata(name, value)
            if reason is not None:
                metric.add_dimension("reason", reason)


def counts_of(event: str, fields: Mapping[str, Any]) -> dict[str, int]:
    """The metrics in a request's last line.

    `questions` are questions, `rounds` how many a call took to its end if it was not over at once, `declines`
    answers that say no, `checkpoints` rounds that ended for want of time, `refusals` errors. A call that asks
    nothing has none: its line says enough, and metrics take longer to write than the line.
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
