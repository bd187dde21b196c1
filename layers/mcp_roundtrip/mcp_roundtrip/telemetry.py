"""The observer that a deployment gets: a structured log line for each thing that happened, and a metric for
what somebody may want an alarm on."""

from __future__ import annotations

from json import JSONEncoder
from typing import Any, Final

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from mcp_roundtrip.errors import WithReason

NAMESPACE: Final = "mcp-roundtrip"

WARNINGS: Final = frozenset(
    {
        "asked_too_late",
        "state_refused",
        "state_large",
        "step_retried",
        "task_given_up",
        "unauthorized",
        "catalog_drift",
    }
)
"""Expected events that are worth an alarm when they become many."""

_LINE: Final = JSONEncoder(separators=(",", ":"), default=str)


def _logger(level: str | None = None) -> Logger:
    return Logger(
        level=level,
        utc=True,
        location=None,
        serialize_stacktrace=False,
        json_serializer=_LINE.encode,
        json_deserializer=str,  # events are names: Powertools would try to read each as JSON
    )


class LogObserver:
    """Writes through Powertools, which reads the level and the service's name from POWERTOOLS_*."""

    def __init__(self) -> None:
        self._tags: dict[str, str] = {}
        try:
            self._logger = _logger()
        except ValueError as error:  # POWERTOOLS_LOG_LEVEL is no level: rather too many lines than no answer
            self._logger = _logger("INFO")
            self.failure("misconfigured", error)
        # Logger's own methods look for it anew every time, which costs more than what they then do.
        self._keys = self._logger.registered_formatter

    def begin(self, correlation_id: str) -> None:
        """Put the invocation's id on every line and metric that follows, and nothing of the one before."""
        self._keys.remove_keys(self._tags)
        self._tags = {}
        self.tag(correlation_id=correlation_id)

    def tag(self, **fields: str) -> None:
        """Put these on every line and metric that follows as well."""
        self._tags |= fields
        self._keys.append_keys(**fields)

    def record(self, event: str, **fields: Any) -> None:
        """INFO; WARNING and a metric for the events that deserve it."""
        if event in WARNINGS:
            self._logger.warning(event, extra=fields)
            self._count(event, fields.get("reason"))
        else:
            self._logger.info(event, extra=fields)

    def failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """ERROR with the traceback, and a metric."""
        # Only our own: an author's exception may have a reason that says what no metric should.
        reason = error.reason if isinstance(error, WithReason) else None
        extra = fields if reason is None else {**fields, "reason": reason}
        self._logger.error(event, extra=extra, exc_info=error)
        self._count(event, reason)

    def _count(self, event: str, reason: str | None) -> None:
        """One count in CloudWatch's embedded metric format, by service and reason."""
        with single_metric(event, MetricUnit.Count, 1, namespace=NAMESPACE) as metric:
            metric.add_dimension("service", self._logger.service)
            for name, value in self._tags.items():
                metric.add_metadata(name, value)
            if reason is not None:
                metric.add_dimension("reason", reason)
