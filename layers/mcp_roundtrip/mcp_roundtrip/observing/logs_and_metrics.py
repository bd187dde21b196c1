"""The observer of a deployment: log lines and metrics by Powertools' `Logger` and `Metrics`.

https://docs.aws.amazon.com/powertools/python/latest/core/logger/
https://docs.aws.amazon.com/powertools/python/latest/core/metrics/
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from json import JSONEncoder
from traceback import format_exception
from typing import Any, Final

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from mcp_roundtrip.errors import ErrorWithReason

MAX_LINE_BYTES: Final = 200_000
"""The limit of a line. CloudWatch Logs accepted 256 KB until April 2025, and accepts 1 MB since."""

_MAX_TEXTS: Final = (512, 64)
"""Bytes to which the texts of a member are cut if the line is too long, and if it still is."""

_MAX_ITEMS: Final = 100
_MAX_LEVELS: Final = 3
_MAX_MEMBER: Final = 1_000

# ASCII, so that characters are bytes.
_JSON: Final = JSONEncoder(separators=(",", ":"), default=str)


def encode_line(line: Mapping[str, Any]) -> str:
    """Return a line as JSON of at most MAX_LINE_BYTES bytes.

    If it has more, the largest members are cut until it fits: texts and lists to their beginnings, and their
    full size. The member `uncut_bytes` has the size of the whole line.
    """
    text = _JSON.encode(line)
    if len(text) <= MAX_LINE_BYTES:
        return text
    members = {**line, "uncut_bytes": len(text)}
    sizes = {name: len(_JSON.encode(value)) for name, value in line.items()}
    largest = sorted(line, key=lambda name: sizes[name], reverse=True)
    for name, limit in ((name, limit) for limit in _MAX_TEXTS for name in largest):
        members[name] = _cut(line[name], limit)
        text = _JSON.encode(members)
        if len(text) <= MAX_LINE_BYTES:
            return text
    omitted = {name: f"[{sizes[name]} bytes]" for name in largest if sizes[name] > _MAX_MEMBER}
    return _JSON.encode({**members, **omitted})


def _cut(value: Any, limit: int, levels: int = _MAX_LEVELS) -> Any:
    """Cut each text in JSON data to `limit` bytes, and lists and objects to their first items."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple, Mapping)):
        if not levels:
            return f"[{len(_JSON.encode(value))} bytes]"
        more = len(value) - _MAX_ITEMS
        if isinstance(value, Mapping):
            names = [*value][:_MAX_ITEMS]
            kept = {_cut(str(name), limit): _cut(value[name], limit, levels - 1) for name in names}
            return {**kept, **({"...": f"[{more} more]"} if more > 0 else {})}
        items = [_cut(item, limit, levels - 1) for item in value[:_MAX_ITEMS]]
        return [*items, *([f"...[{more} more]"] if more > 0 else [])]
    text = str(value)
    size = len(_JSON.encode(text)) - 2
    if size <= limit:
        return text
    kept_text, used = "", 0
    for character in text:
        used += len(_JSON.encode(character)) - 2
        if used > limit:
            break
        kept_text += character
    return f"{kept_text}...[{size} bytes]"


DEFAULT_NAMESPACE: Final = "mcp-roundtrip"

FINAL_EVENTS: Final = frozenset(
    {"request_completed", "request_refused", "request_forwarded", "worker_finished", "task_not_claimed"}
)
"""The last event of an invocation, with the duration, the number of AWS calls and the metrics."""

WARNING_EVENTS: Final = frozenset(
    {
        "answer_refused",
        "answers_ignored",
        "asked_after_steps",
        "key_renewal_failed",
        "lease_lost",
        "out_of_time",
        "question_changed",
        "setting_missing",
        "state_refused",
        "state_large",
        "step_retried",
        "step_runs_again",
        "task_abandoned",
        "task_limit_reached",
        "task_retried",
        "unauthorized",
        "catalog_drift",
    }
)
"""Expected events for which there may be an alarm."""


class _StandardOutput(logging.Handler):
    """Writes each line to the `sys.stdout` of that moment, because runtimes and tests replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        record.__dict__.pop("taskName", None)  # Powertools would write the name of an asyncio task
        _print(self.format(record))


_STANDARD_OUTPUT: Final = _StandardOutput()

_LOGGER_NAME: Final = f"{__name__}.{id(_STANDARD_OUTPUT)}"
"""Unique for each import of this module: a logger keeps the handler of its first `Logger`, and a debugger
imports the module again after a change."""


class LogObserver:
    """Writes log lines and metrics. A line that cannot be written fails no request.

    The variables of Powertools set the namespace, and `service` if it is None. The higher one of `level` and
    that of Lambda's LoggingConfig counts. An unknown level is logged and ignored. `clock_ms` returns
    monotonic milliseconds. `starts_cold`: whether the first request waits for the initialization. With
    `redacts`, tracebacks do not have the values of requests.
    """

    def __init__(
        self,
        clock_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
        *,
        service: str | None = None,
        level: str | None = None,
        starts_cold: bool = True,
        redacts: bool = True,
    ) -> None:
        self._clock_ms = clock_ms
        self._starts_cold = starts_cold
        self._redacts = redacts
        self._invocations = 0
        self._began_ms = clock_ms()
        self._aws_calls: Counter[str] = Counter()
        self._redactions: list[Callable[[], Iterable[Any]]] = []
        self._tags: dict[str, Any] = {}
        self._namespace = EphemeralMetrics().namespace or DEFAULT_NAMESPACE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Powertools warns of two levels. That of Lambda counts.
            try:
                self._make_loggers(service, level)
            except Exception as error:  # of several types, for an unknown level
                self._make_loggers(service, "INFO")
                error.add_note("Set POWERTOOLS_LOG_LEVEL to a level in upper case, such as INFO")
                self.record_failure("misconfigured", error)

    def _make_loggers(self, service: str | None, level: str | None) -> None:
        # The logger is separate, so that the level and the format of a tool's `Logger` change no line here.
        # The lines have no `location`, by which `make run` knows them from a tool's.
        self._logger = Logger(
            service=_LOGGER_NAME,
            level=level,
            sampling_rate=0,
            logger_handler=_STANDARD_OUTPUT,
            json_serializer=encode_line,
            utc=True,
            location=None,
            json_deserializer=str,  # an event is no JSON
        )
        self._logger.setLevel(level)  # of the latest observer: the process has one logger of this name
        self._logger.remove_keys(["sampling_rate"])
        self._own = logging.getLogger(_LOGGER_NAME)
        self._own.propagate = False  # handlers of the root logger would write it again
        # Powertools prefers Lambda's level, which is INFO by default. Lambda's TRACE is no level of Python,
        # and the level of the root logger would apply.
        chosen = logging.getLevelNamesMapping().get(level or "", logging.DEBUG)
        self._own.setLevel(max(self._own.level, chosen))
        # A child shares the keys of its parent, and does not decide its format, as a first `Logger` would.
        self._tool_logger = Logger(service=service, level=level, child=True)
        self._service = self._tool_logger.service

    def begin(self, correlation_id: str) -> bool:
        self._invocations += 1
        self._began_ms = self._clock_ms()
        self._aws_calls.clear()
        self._redactions.clear()
        self._logger.thread_safe_clear_keys()  # a tool's, which Powertools adds to the lines of all loggers
        self._replace_tags(self._tags, {"correlation_id": correlation_id})
        return self._invocations == 1

    def tag(self, **fields: Any) -> None:
        self._replace_tags((), self._tags | fields)

    def _replace_tags(self, removed: Iterable[str], tags: dict[str, Any]) -> None:
        self._tags = tags
        with suppress(Exception):  # the tool has no `Logger` of this service, or its own formatter
            self._tool_logger.remove_keys(removed)
            self._tool_logger.append_keys(**tags)

    def redact(self, values: Callable[[], Iterable[Any]]) -> None:
        self._redactions.append(values)

    def count_aws_call(self, service: str) -> None:
        self._aws_calls[service] += 1

    def record(self, event: str, **fields: Any) -> None:
        """Log an event at level INFO; a warning event at level WARNING, and with a metric."""
        try:
            if event in WARNING_EVENTS:
                self._write(logging.WARNING, event, fields)
                # The reasons of answers vary, and each would be another metric.
                self._put_metric(event, None if event == "answer_refused" else fields.get("reason"))
            elif self._logger.log_level <= logging.INFO:
                last = (
                    {**self._usage(), **self._final_metrics(event, fields)} if event in FINAL_EVENTS else {}
                )
                self._write(logging.INFO, event, {**fields, **last})
        except Exception as error:
            self._record_defect(event, error)

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """Log an exception with its traceback at level ERROR, and with a metric."""
        try:
            if (reason := error.reason if isinstance(error, ErrorWithReason) else None) is not None:
                fields["reason"] = reason
            exception = {"exception": self._traceback(error), "exception_name": type(error).__name__}
            self._write(logging.ERROR, event, {**fields, **exception})
            self._put_metric(event, reason)
        except Exception as defect:
            self._record_defect(event, defect)

    def _record_defect(self, event: str, error: Exception) -> None:
        """Log that the line of an event could not be written, without the fields that may be the cause."""
        with suppress(Exception):  # standard output is closed
            members = {"event": event, "exception_name": type(error).__name__}
            correlation_id = self._tags.get("correlation_id")
            identity = {"service": self._service, "correlation_id": correlation_id}
            self._own.error("internal_error", extra=identity | members)
            self._put_metric("internal_error", None)

    def _write(self, level: int, event: str, fields: Mapping[str, Any]) -> None:
        self._own.disabled = False  # a tool that configures `logging` disables all loggers that exist
        self._own.log(level, event, extra={"service": self._service, **self._tags, **fields})

    def _traceback(self, error: BaseException) -> str:
        if not self._redacts:
            return "".join(format_exception(error))
        from mcp_roundtrip.observing.traceback_redaction import redacted_traceback  # imports urllib.parse

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

    def _final_metrics(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        dimensions = {"code": str(fields["code"])} if event == "request_refused" else {}
        counts = metric_counts(event, fields)
        return self._metrics(counts, dimensions) if counts else {}

    def _put_metric(self, event: str, reason: str | None) -> None:
        """Write a count of one, at every level."""
        metrics = self._metrics({event: 1}, {} if reason is None else {"reason": reason})
        _print(encode_line({**metrics, **self._tags}))

    def _metrics(self, counts: Mapping[str, int], dimensions: Mapping[str, str]) -> dict[str, Any]:
        """Return the members by which CloudWatch finds metrics in a line."""
        # `Metrics` would add these dimensions to the metrics of a tool.
        metrics = EphemeralMetrics(service=self._service, namespace=self._namespace)
        for name, value in {"service": self._service, **dimensions}.items():
            metrics.add_dimension(name, value)
        for name, count in counts.items():
            metrics.add_metric(name, MetricUnit.Count, count)
        return {**metrics.serialize_metric_set()}


def metric_counts(event: str, fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the metrics of a final event: none for a call without questions, because they take long.

    `questions` are sent to clients, `rounds` are those of a call with several, `declines` are answers that
    decline, `checkpoints` are rounds that ran out of time, `refusals` are errors.
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


def _print(line: str) -> None:
    # print() would make two writes, between which another thread may write.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
