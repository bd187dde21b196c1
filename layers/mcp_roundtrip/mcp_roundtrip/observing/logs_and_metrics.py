"""The observer of a deployment: structured log lines, and metrics in CloudWatch's embedded metric format."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from mcp_roundtrip.errors import ErrorWithReason
from mcp_roundtrip.observing.log_lines import DEFAULT_NAMESPACE, DEFAULT_SERVICE, LineWriter

POWERTOOLS: Final = "aws_lambda_powertools.logging.formatter"
"""A tool has imported this module if it has a `Logger` of Powertools."""

FINAL_EVENTS: Final = frozenset(
    {"request_completed", "request_refused", "request_forwarded", "worker_finished", "task_not_claimed"}
)
"""The last event of an invocation. Its line has the duration, the number of AWS calls and the metrics."""

WARNING_EVENTS: Final = frozenset(
    {
        "answer_refused",
        "asked_after_steps",
        "lease_lost",
        "question_changed",
        "setting_missing",
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


class LogObserver:
    """Writes log lines and metrics.

    `service` is in each of them, and `namespace` is that of the metrics. Lines below `level` are not written;
    an unknown level is logged and ignored. `clock_ms` returns monotonic milliseconds. `starts_cold` is
    whether the first request waits for the initialization. `trace_header` returns the X-Ray trace header of
    the invocation. With `redacts`, tracebacks do not have the values of requests.
    """

    def __init__(
        self,
        clock_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
        *,
        service: str = DEFAULT_SERVICE,
        namespace: str = DEFAULT_NAMESPACE,
        level: str = "INFO",
        starts_cold: bool = True,
        trace_header: Callable[[], str | None] = lambda: None,
        redacts: bool = True,
    ) -> None:
        self._clock_ms = clock_ms
        self._namespace = namespace
        self._starts_cold = starts_cold
        self._redacts = redacts
        self._invocations = 0
        self._began_ms = clock_ms()
        self._aws_calls: Counter[str] = Counter()
        self._redactions: list[Callable[[], Iterable[Any]]] = []
        try:
            self._lines = LineWriter(service, level, trace_header)
        except ValueError as error:  # the requests are served anyway
            self._lines = LineWriter(service, "INFO", trace_header)
            self.record_failure("misconfigured", error)

    def begin(self, correlation_id: str) -> bool:
        """Begin an invocation: following lines and metrics have its id, and nothing of the previous one.

        Return whether it is the first one.
        """
        self._invocations += 1
        self._began_ms = self._clock_ms()
        self._aws_calls.clear()
        self._redactions.clear()
        self._replace_tags(self._lines.tags, {"correlation_id": correlation_id})
        return self._invocations == 1

    def tag(self, **fields: Any) -> None:
        """Add fields to the following lines and metrics of this invocation, also to lines of the author's."""
        self._replace_tags((), self._lines.tags | fields)

    def _replace_tags(self, removed: Iterable[str], tags: dict[str, Any]) -> None:
        self._lines.tags = tags
        if POWERTOOLS in sys.modules:
            from mcp_roundtrip.observing.author_logs import replace_keys  # most tools do not use Powertools

            replace_keys(self._lines.service, removed, tags)

    def redact(self, values: Callable[[], Iterable[Any]]) -> None:
        """Remove the values that this function returns (JSON data) from this invocation's tracebacks."""
        self._redactions.append(values)

    def count_aws_call(self, service: str) -> None:
        """Count a request to an AWS service. A retry is another request."""
        self._aws_calls[service] += 1

    def record(self, event: str, **fields: Any) -> None:
        """Log an event at level INFO; a warning event at level WARNING, and with a metric."""
        if event in WARNING_EVENTS:
            self._lines.write("WARNING", event, fields)
            # The reasons of answers are texts without number, and each would be a metric of its own.
            self._put_metric(event, None if event == "answer_refused" else fields.get("reason"))
        elif event in FINAL_EVENTS and self._lines.is_enabled("INFO"):
            self._lines.write("INFO", event, {**fields, **self._usage(), **self._metrics(event, fields)})
        else:
            self._lines.write("INFO", event, fields)

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """Log an exception with its traceback at level ERROR, and with a metric."""
        # An exception of the author's may have a `reason` with data that a metric must not contain.
        reason = error.reason if isinstance(error, ErrorWithReason) else None
        if reason is not None:
            fields["reason"] = reason
        exception = self._traceback(error)
        name = type(error).__name__
        self._lines.write("ERROR", event, {**fields, "exception": exception, "exception_name": name})
        self._put_metric(event, reason)

    def _traceback(self, error: BaseException) -> str:
        from traceback import format_exception  # most requests do not fail

        from mcp_roundtrip.observing.redaction import redacted_traceback

        if not self._redacts:
            return "".join(format_exception(error))
        return redacted_traceback(error, [value for redaction in self._redactions for value in redaction()])

    def on_exception(self, error: BaseException) -> None:
        """Do nothing: `record_failure` logs the unexpected exceptions."""

    def _usage(self) -> dict[str, Any]:
        return {
            "duration_ms": round(self._clock_ms() - self._began_ms, 1),
            "cold_start": self._starts_cold and self._invocations == 1,
            "kms_calls": self._aws_calls["kms"],
            "dynamodb_calls": self._aws_calls["dynamodb"],
        }

    def _metrics(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metrics that a final event's line contains."""
        counts = metric_counts(event, fields)
        if not counts:
            return {}
        dimensions = {"code": str(fields["code"])} if event == "request_refused" else {}
        return self._lines.embedded_counts(self._namespace, counts, dimensions)

    def _put_metric(self, event: str, reason: str | None) -> None:
        """Write a count of one, with the dimensions service and reason."""
        self._lines.write_counts(self._namespace, {event: 1}, {} if reason is None else {"reason": reason})


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
