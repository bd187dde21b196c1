"""What a run writes, first and as it happens: text for a terminal, plain lines, JSON for scripts."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.client.terminal_text import Styles, one_line, printable_json
from mcp_roundtrip_tools.run.api_gateway.routing import has_root
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.execution.log_text import IN_REQUEST_LINE, readable
from mcp_roundtrip_tools.run.issuer.issuer import describe_issuer
from mcp_roundtrip_tools.run.observation.records import (
    Ended,
    Event,
    HttpExchange,
    Note,
    Printed,
    RecordedInvocation,
    Root,
    members,
)
from mcp_roundtrip_tools.run.options import DEFAULT_PORT
from mcp_roundtrip_tools.run.terminal.summary import final_event, summarize
from mcp_roundtrip_tools.template.model import describe_left_out, short_name

_KIND: Final = 14
_COLUMNS: Final = 37
"""The width of the method and the name."""

_MARGIN: Final = 22
"""Where the text of a printed line begins."""

_LEVEL_STYLES: Final = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}

_FUNCTION: Final = re.compile(r"\[([^\]\s]+)\] ")


class Terminal:
    """Writes text: what functions print, and below, when it has ended, the line of their request."""

    def __init__(self, write: Callable[[str], None], styles: Styles) -> None:
        self._write = write
        self._styles = styles
        self._lock = Lock()
        self._last_function = ""
        self._folder = f"{Path.cwd()}/"

    def __call__(self, event: Event) -> None:
        with self._lock:
            match event:
                case Ended(root):
                    lines = [self._line(root)]
                case Printed(invocation, line):
                    lines = [*self._printed(short_name(invocation.function), line.text)]
                case Note(at_ms, text):
                    lines = [*self._note(at_ms, text)]
            if lines:
                printed = event.invocation.function if isinstance(event, Printed) else ""
                self._last_function = short_name(printed)
                self._write("\n".join(lines))

    def _printed(self, function: str, text: str) -> Iterator[str]:
        """Yield what a function printed. The function is named where another one begins to print."""
        found = readable(text)
        if found is None or found.event in IN_REQUEST_LINE:
            return
        name = "" if function == self._last_function else one_line(function)
        style, level = _LEVEL_STYLES.get(found.level), f"{found.level} " if found.level else ""
        first, *more = found.text.split("\n")
        shown = level + self._styles.clean(first)
        shown = self._styles.paint(style, shown) if style else shown
        yield f"{' ' * (_MARGIN - 2 - len(name))}{self._styles.paint('cyan', name)}  {shown}"
        yield from (" " * _MARGIN + self._styles.clean(line) for line in more)

    def _line(self, root: Root) -> str:
        summary, duration_ms, paint = summarize(root), root.duration_ms or 0.0, self._styles.paint
        calls = [f"{number} {service}" for service, number in summary.calls.items()]
        usage = " · ".join([*summary.environments, *calls, _duration(duration_ms)])
        clock = _clock(root.started_at_ms + duration_ms)
        kind, subject = f"{one_line(summary.kind):{_KIND}}", one_line(summary.subject)
        padding, details = " " * (_COLUMNS - len(kind) - len(subject)), map(one_line, summary.details)
        if summary.is_minor and not summary.failure:
            return paint("dim", f"{clock}  {kind} {subject}{padding} {' · '.join([*details, usage])}")
        failure = [paint("red", one_line(summary.failure))] if summary.failure else []
        words = " · ".join([*failure, *details, paint("dim", usage)])
        return f"{paint('dim', clock)}  {kind} {paint('bold', subject)}{padding} {words}"

    def _note(self, at_ms: float, text: str) -> Iterator[str]:
        text = _FUNCTION.sub(lambda found: f"{short_name(found[1])}: ", text, count=1)
        first, *more = text.replace(self._folder, "").split("\n")
        yield f"{self._styles.paint('dim', _clock(at_ms))}  {self._styles.clean(first)}"
        yield from (" " * 10 + self._styles.clean(line) for line in more)


def _clock(at_ms: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))


def _duration(duration_ms: float) -> str:
    return f"{duration_ms / 1000:.1f} s" if duration_ms >= 1000 else f"{duration_ms:.0f} ms"


class PlainLines:
    """Writes a line for each printed line, each request and each note of the runner."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def __call__(self, event: Event) -> None:
        match event:
            case Printed(invocation, line):
                for text in line.text.split("\n"):
                    self._log(f"[{invocation.function}] {text}")
            case Note():
                self._log(event.text)
            case Ended(HttpExchange() as each):
                method = each.request.header("mcp-method") or "-"
                text = (
                    f"{each.request.method} {each.path} {method} {each.status} {each.duration_ms or 0:.1f} ms"
                )
                self._log(one_line(text))


class JsonLines:
    """A listener of the recorder that writes JSON."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: Event) -> None:
        match event:
            case Ended(RecordedInvocation() as invocation):
                self.put({"type": "invocation", **_invocation(invocation)})
            case Ended(HttpExchange() as exchange):
                self.put({"type": "request", **_exchange(exchange)})
            case Note(at_ms, text):
                self.put({"type": "note", "atMs": round(at_ms), "text": text})

    def put(self, document: Mapping[str, Any]) -> None:
        """Write one object, without the members that have no value."""
        self._write(printable_json({name: value for name, value in document.items() if value is not None}))


def _exchange(exchange: HttpExchange) -> dict[str, Any]:
    summary, event = summarize(exchange), final_event(exchange)
    return {
        **members(exchange, "id", "path", "status"),
        **_times(exchange, "started_at_ms", "duration_ms"),
        "httpMethod": exchange.request.method,
        "method": summary.kind if "/" in summary.kind and " " not in summary.kind else None,
        "name": summary.subject or None,
        **{name: event.get(name) for name in ("round", "outcome", "asked")},
        "failure": summary.failure,
        "invocations": [_invocation(each) for each in exchange.invocations],
    }


def _invocation(invocation: RecordedInvocation) -> dict[str, Any]:
    found = {
        **members(invocation, "id", "function", "is_new_environment", "trigger", "caller", "error"),
        **_times(invocation, "started_at_ms", "init_ms", "duration_ms"),
        "environment": invocation.environment_id,
        "serviceCalls": [
            {**members(each, "service", "operation", "detail", "status"), **_times(each, "duration_ms")}
            for each in invocation.service_calls
        ],
        "lines": [line.text for line in invocation.log_lines],
        "invocations": [_invocation(each) for each in invocation.invocations],
    }
    return {name: value for name, value in found.items() if value is not None}


def _times(record: object, *names: str) -> dict[str, Any]:
    found = members(record, *names)
    return {name: None if value is None else round(value, 1) for name, value in found.items()}


GATEWAY_AUTH_MODES = frozenset({"jwt", "lambda", "iam"})
"""Modes in which API Gateway identifies callers."""


def banner(app: LocalApp, styles: Styles = Styles(), *, anonymous: bool = False) -> str:  # noqa: B008 - it is immutable
    """Return the URLs, and what is special about this run. `anonymous`: AuthMode is none by default."""
    mcp, url = mcp_url(app), console_url(app)
    config = json.dumps({"type": "http", "url": mcp})
    rows = [
        *([("console", url, "call the tools in a browser")] if url else []),
        ("endpoint", mcp, f"in the configuration of a client: {config}"),
        ("terminal", _call_command(mcp), "call the tools in another terminal"),
    ]
    width = max(len(where) for _, where, _ in rows)
    lines = [
        f"  {name:8}  {styles.paint('bold', where)}{' ' * (width - len(where))}  {text}"
        for name, where, text in rows
    ]
    notes = [*_describe_left_out(app), *_describe_callers(app, anonymous=anonymous)]
    notes.append("Changed sources are reloaded. Press Ctrl+C to stop.")
    return "\n".join(["", *lines, "", *(f"  {note}" for note in notes), ""])


def _call_command(url: str) -> str:
    """Return the command that lists the tools at a URL; the default port need not be named."""
    port, path = urlsplit(url).port, urlsplit(url).path
    if "MAKELEVEL" in os.environ:
        return "make call" if port == DEFAULT_PORT else f"make call PORT={port}"
    # Without --url it calls /mcp, which an application with one route for all paths serves, too.
    is_default = port == DEFAULT_PORT and path in ("/", "/mcp")
    return "mcp-roundtrip call" if is_default else f"mcp-roundtrip call --url {url}"


def mcp_url(app: LocalApp) -> str:
    """Return the URL of the endpoint."""
    return app.url(app.endpoint_path())


def console_url(app: LocalApp) -> str | None:
    """Return the URL that a person opens for the console: `/` leads to it, unless the template has one."""
    if app.console_url is None or has_root(app.routes()):
        return app.console_url
    return app.url("/")


def _describe_left_out(app: LocalApp) -> list[str]:
    lines = describe_left_out(app.current())
    return ["Not served here:", *(f"  {line}" for line in lines)] if lines else []


def _describe_callers(app: LocalApp, *, anonymous: bool) -> list[str]:
    lines = []
    if anonymous:
        lines.append(
            "Callers are anonymous (AuthMode none). With make run USER=ada (--user ada) they sign in."
        )
    if app.issuer is not None:
        lines += describe_issuer(app.issuer).splitlines()
    modes = {app.settings(name).get("MCP_AUTH_MODE") for name in app.functions()}
    if refused := sorted(mode for mode in modes if mode in GATEWAY_AUTH_MODES):
        lines.append(
            f"Every call gets 401: AuthMode {refused[0]} needs an API Gateway authorizer, which does not run "
            'here. Use make run PARAMETERS="AuthMode=none", or bearer.'
        )
    return lines
