"""The lines that functions print, and tracebacks, as a person reads them.

A line is text, JSON (the library's, Powertools', that of LogFormat), or of Lambda's handler of `logging`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.client.http import json_object
from mcp_roundtrip_tools.run.observation.records import Root, walk

_LAMBDA_TEXT: Final = re.compile(r"\[([A-Z]+)\](?:\t\S+Z\t[^\t]*\t| )(.*)", re.DOTALL)
"""Level, time, request id and message, as awslambdaric writes them; for its own errors without the others."""

_ADVICE: Final = "LAMBDA_WARNING: Unhandled exception."
"""How awslambdaric begins its advice on runtimes of AWS, before the error itself."""

_SHOWN_LEVELS: Final = frozenset({"WARNING", "ERROR", "CRITICAL"})
"""The levels of the library's events that are shown. The line of the request has what others say."""

IN_REQUEST_LINE: Final = frozenset({"state_refused", "unauthorized", "misconfigured"})
"""Events whose reason is in the line of the request."""

_OF_EVERY_LINE: Final = frozenset(
    {
        *("level", "message", "timestamp", "service", "correlation_id", "xray_trace_id", "flow", "location"),
        *("sampling_rate", "cold_start", "function_name", "function_memory_size", "function_arn"),
        *("function_request_id", "logger", "requestId", "exception", "exception_name", "stack_trace"),
        *("stackTrace", "errorType", "errorMessage", "_aws"),
    }
)


@dataclass(frozen=True, slots=True)
class LogText:
    """`text` may have several lines. `level` is empty for a print. `event` is that of the library."""

    text: str
    level: str = ""
    event: str = ""


def readable(line: str) -> LogText | None:
    """Return what a person sees of a line; None for metrics, and the library's events below WARNING."""
    if found := _LAMBDA_TEXT.fullmatch(line):
        return None if found[2].startswith(_ADVICE) else LogText(found[2], found[1])
    document = json_object(line)
    if str(document.get("message", "")).startswith(_ADVICE):
        return None
    if "message" not in document and "errorMessage" not in document:
        return None if "_aws" in document else LogText(line)
    level = str(document.get("level", ""))
    event = document["message"] if is_library_event(document) else ""
    if event and level not in _SHOWN_LEVELS:
        return None
    return LogText("\n".join(_message_lines(document)), level, event)


def library_events(root: Root) -> Iterator[dict[str, Any]]:
    """Yield the lines of the library below a root; those of a caller precede those of what it caused."""
    documents = (json_object(line.text) for each in walk(root) for line in each.log_lines)
    return (document for document in documents if is_library_event(document))


def is_library_event(document: Mapping[str, Any]) -> bool:
    """Return whether mcp_roundtrip wrote a line. Powertools adds the location, Lambda the request id."""
    has_members = {"level", "message", "timestamp", "service"} <= document.keys()
    return (
        has_members
        and isinstance(document["message"], str)
        and not {"location", "logger", "requestId"} & document.keys()
    )


def _message_lines(document: Mapping[str, Any]) -> Iterator[str]:
    metrics = _metric_names(document)
    fields = {
        name: value
        for name, value in document.items()
        if name not in _OF_EVERY_LINE and name not in metrics and value not in (None, "")
    }
    message = document.get("message", document.get("errorMessage"))
    words = [message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)]
    words += [f"{name}={_compact(value)}" for name, value in fields.items()]
    yield "  ".join(words)
    yield from _traceback(document)


def _traceback(document: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(exception := document.get("exception"), str):
        text = without_layer(exception) if is_library_event(document) else exception.rstrip("\n")
        yield from text.split("\n")
    elif isinstance(trace := document.get("stackTrace"), list):
        text = "\n".join(str(part).rstrip("\n") for part in trace)
        if "logger" in document:  # the author logs an exception
            yield "Traceback (most recent call last):"
        else:
            text = without_layer(text)
        yield from text.split("\n") if text else ()
        yield f"{document.get('errorType')}: {document.get('errorMessage', document.get('message'))}"


def _metric_names(document: Mapping[str, Any]) -> set[str]:
    """Return the members that are metrics (CloudWatch embedded metric format)."""
    try:
        directives = document["_aws"]["CloudWatchMetrics"]
        return {metric["Name"] for directive in directives for metric in directive["Metrics"]}
    except (KeyError, TypeError):
        return set()


def _compact(value: Any) -> str:
    if isinstance(value, str):
        return value if value and not re.search(r"\s", value) else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_FRAME: Final = re.compile(r'\s*File "(?P<path>[^"]+)", line \d+, in ')
_LAYER_MODULE: Final = re.compile(r"^mcp_roundtrip\.[a-z_.]+\.(?=\w+: )")
"""Before the name of an exception."""

_HEADERS: Final = ("Traceback (most recent call last):", "  [Previous line repeated")
_ANY_FRAME: Final = re.compile(r'^ +File "', re.MULTILINE)
_HIDDEN: Final = frozenset(
    {
        *("site-packages", "dist-packages", "mcp_roundtrip", "importlib", "<frozen importlib._bootstrap>"),
        *("<frozen importlib._bootstrap_external>", "<frozen os>"),
    }
)


def without_layer(text: str) -> str:
    """Return a traceback that a function logged without the frames of imports, the layer and packages."""
    return "\n".join(_LAYER_MODULE.sub("", line) for line in _kept_lines(text))


def message_of(text: str) -> str:
    """Return a traceback without its frames; another text as it is."""
    lines = [line for line in text.splitlines() if not line.startswith("  ")]
    return "\n".join(lines) if lines and _ANY_FRAME.search(text) else text


def _kept_lines(text: str) -> Iterator[str]:
    """Yield the lines of a traceback without headers and without the frames of files that are hidden."""
    is_hidden = False
    for line in text.splitlines():
        if found := _FRAME.match(line):
            is_hidden = not _HIDDEN.isdisjoint(Path(found["path"]).parts)
        elif not line.startswith("    "):  # not the source of a frame
            is_hidden = False
        if not is_hidden and line.strip() and not line.startswith(_HEADERS):
            yield line
