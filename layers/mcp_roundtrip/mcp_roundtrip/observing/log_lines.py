"""Log lines as JSON objects on stdout, and counts in them (CloudWatch embedded metric format).

Lines have the members of Powertools for AWS Lambda, and its variables set them. Powertools itself is not
used, because its import would take a third of a front door's imports.

Sources: https://docs.aws.amazon.com/powertools/python/latest/core/logger/ and
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, MutableMapping
from json import JSONEncoder
from typing import Any, Final

DEFAULT_SERVICE: Final = "service_undefined"

DEFAULT_NAMESPACE: Final = "mcp-roundtrip"

_SERVICE_NAME: Final = "POWERTOOLS_SERVICE_NAME"
_FUNCTION_NAME: Final = "AWS_LAMBDA_FUNCTION_NAME"

_LEVELS: Final[Mapping[str, int]] = {
    **{"TRACE": 0, "DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30},
    **{"ERROR": 40, "FATAL": 50, "CRITICAL": 50},
}
"""Level -> severity: those of Python, and those that Lambda's LoggingConfig has besides."""

MAX_LINE_BYTES: Final = 200_000
"""The limit of a line. CloudWatch Logs accepted 256 KB until April 2025, and accepts 1 MB since."""

_MAX_TEXTS: Final = (512, 64)
"""Bytes to which the texts of a member are cut if the line is too long, and if it still is."""

_MAX_ITEMS: Final = 100
_MAX_LEVELS: Final = 3
_MAX_MEMBER: Final = 1_000

# ASCII, so that characters are bytes.
_JSON: Final = JSONEncoder(separators=(",", ":"), default=str)


def log_level(environment: Mapping[str, str]) -> str:
    """Return the level: Lambda's own setting, else that of Powertools."""
    names = ("AWS_LAMBDA_LOG_LEVEL", "POWERTOOLS_LOG_LEVEL", "LOG_LEVEL")
    return next((value for name in names if (value := environment.get(name))), "INFO")


def service_name(environment: Mapping[str, str], prefix: Callable[[], str]) -> str:
    """Return the name of the service: that of Powertools, else the function's without its prefix."""
    function = environment.get(_FUNCTION_NAME, "")
    return environment.get(_SERVICE_NAME) or function.removeprefix(prefix()) or DEFAULT_SERVICE


def share_service_name(environment: MutableMapping[str, str], prefix: Callable[[], str]) -> None:
    """Set the variable from which a tool's own `Logger` and `Metrics` of Powertools take their service."""
    if environment.get(_FUNCTION_NAME):
        environment[_SERVICE_NAME] = service_name(environment, prefix)


def metrics_namespace(environment: Mapping[str, str]) -> str:
    """Return the namespace of metrics: that of Powertools."""
    return environment.get("POWERTOOLS_METRICS_NAMESPACE") or DEFAULT_NAMESPACE


class LineWriter:
    """Writes lines with at least the severity of `level`.

    `service` and `tags` are in each line. `trace_header` returns the X-Ray trace header of the invocation.
    `clock` returns epoch seconds.
    """

    def __init__(
        self,
        service: str,
        level: str,
        trace_header: Callable[[], str | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Write nothing yet. Raises ValueError for a level that does not exist."""
        if level.upper() not in _LEVELS:
            raise ValueError(f"the log level {level!r:.100} is not one of {', '.join(_LEVELS)}")
        self.service = service
        self.tags: dict[str, Any] = {}
        self._least = _LEVELS[level.upper()]
        self._trace_header = trace_header
        self._clock = clock

    def is_enabled(self, level: str) -> bool:
        """Return whether lines of this level are written."""
        return _LEVELS[level] >= self._least

    def write(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Write a line if its level is enabled. Members that are None are omitted."""
        if not self.is_enabled(level):
            return
        header = self._trace_header()
        line = {
            "level": level,
            "message": message,
            "timestamp": _timestamp(self._clock()),
            "service": self.service,
            **self.tags,
            **fields,
            "xray_trace_id": header.split(";")[0].removeprefix("Root=") if header else None,
        }
        _print({name: value for name, value in line.items() if value is not None})

    def write_counts(self, namespace: str, counts: Mapping[str, int], dimensions: Mapping[str, str]) -> None:
        """Write counts without a message, at every level."""
        _print({**self.embedded_counts(namespace, counts, dimensions), **self.tags})

    def embedded_counts(
        self, namespace: str, counts: Mapping[str, int], dimensions: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return members by which CloudWatch finds metrics in a line. `service` is one of the dimensions."""
        dimensions = {"service": self.service, **dimensions}
        directive = {
            "Namespace": namespace,
            "Dimensions": [list(dimensions)],
            "Metrics": [{"Name": name, "Unit": "Count"} for name in counts],
        }
        metadata = {"Timestamp": int(self._clock() * 1000), "CloudWatchMetrics": [directive]}
        return {"_aws": metadata, **dimensions, **{name: [count] for name, count in counts.items()}}


def encode_line(line: Mapping[str, Any]) -> str:
    """Return a line as JSON of at most MAX_LINE_BYTES bytes.

    If it has more, its largest members are cut until it fits: texts and lists to their beginnings, which end
    with their full size. The member `uncut_bytes` has the size of the whole line.
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
    """Return JSON data with at most `limit` bytes of each text, and the first items of lists and objects."""
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


def _timestamp(epoch_s: float) -> str:
    seconds, ms = divmod(int(epoch_s * 1000), 1000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(seconds))},{ms:03d}+0000"


def _print(line: Mapping[str, Any]) -> None:
    # One write: print() makes two, between which another thread may write.
    sys.stdout.write(f"{encode_line(line)}\n")
    sys.stdout.flush()
