"""Run a function with an event: in a make run of the application, or on its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from mcp_roundtrip_tools.client.http import LOOPBACK, Unreachable, member, request
from mcp_roundtrip_tools.invoke.rounds import task_of
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.records import Event, Note, Printed
from mcp_roundtrip_tools.run.options import Options, WebServers
from mcp_roundtrip_tools.run.serving import start_functions
from mcp_roundtrip_tools.run.template_options import DEFAULT_PORT
from mcp_roundtrip_tools.template.function_references import find_function
from mcp_roundtrip_tools.template.model import TemplateError


@dataclass(frozen=True, slots=True)
class Invoked:
    """`payload` is JSON: the response, or the error if the function failed.

    `init_ms` is None if the process had run before; `duration_ms`, with the initialization, if none ran.
    """

    function: str
    request_id: str
    payload: str
    failed: bool
    init_ms: float | None
    duration_ms: float | None

    def last_lines(self) -> tuple[str, str]:
        """Return the lines with which Lambda's log of an invocation ends."""
        init_ms, duration_ms = self.init_ms or 0.0, self.duration_ms or 0.0
        init = f"Init Duration: {init_ms:.2f} ms\t" if init_ms else ""
        report = f"{init}Duration: {max(duration_ms - init_ms, 0):.2f} ms"
        return f"END RequestId: {self.request_id}", f"REPORT RequestId: {self.request_id}\t{report}"


def first_line(request_id: str) -> str:
    """Return the line with which Lambda's log of an invocation begins."""
    return f"START RequestId: {request_id} Version: $LATEST"


API_URL: Final = f"http://127.0.0.1:{DEFAULT_PORT}"
"""The URL that functions have of the HTTP API, which is not served. It is the same each time, because a state
is valid for one audience."""


def invoke_once(
    template: Path,
    function: str | None,
    event: str,
    show: Callable[[str], None],
    *,
    parameters: Mapping[str, str],
    variables: Mapping[str, str],
) -> Invoked:
    """Run a function of a template once, with development keys and empty tables.

    `show` receives the lines of the log as they are printed, also those of functions that it invokes. Raises
    TemplateError.
    """

    def listen(happened: Event) -> None:
        match happened:
            case Printed(line=line):
                show(line.text)
            case Note():
                show(happened.text)

    options = Options(parameters, variables, development_keys=True)
    with (
        redirect_stdout(sys.stderr),  # stand-ins print, too
        start_functions(template, options, [listen], lambda *_: WebServers(API_URL)) as app,
    ):
        invoked = _invoke(app, find_function(app.current(), function).name, event, show)
        if task_id := task_of(json.loads(invoked.payload)):
            show(f"The task {task_id} ends with this command. To follow a task, start make run before.")
    return invoked


def _invoke(app: LocalApp, name: str, event: str, show: Callable[[str], None]) -> Invoked:
    request_id = str(uuid4())
    show(f"Invoking {name} with development keys and empty tables")
    show(first_line(request_id))
    result = app.run(name, event.encode(), request_id=request_id)
    recorded = app.recorder.invocation(request_id)
    invoked = Invoked(
        name,
        request_id,
        result.payload.decode(),
        result.failed,
        None if recorded is None else recorded.init_ms,
        None if recorded is None else recorded.duration_ms,
    )
    for line in invoked.last_lines():
        show(line)
    return invoked


_WAIT_S: Final = 86_400.0
"""A function may run for 15 minutes, and in debug mode until its user continues."""

_HEADERS: Final = {"content-type": "application/json", "x-console": "1"}


def invoke_in_run(
    port: int, template: Path, function: str | None, event: str, show: Callable[[str], None]
) -> Invoked | None:
    """Run a function in the `make run` at this port; None if no run of this template is there.

    `show` receives the lines of the log. Raises TemplateError if the run refuses the request.
    """
    console = _console(port)
    if console is None:
        return None
    body = json.dumps({"template": str(template.resolve()), "function": function, "event": event}).encode()
    try:
        answer = request(
            "POST",
            f"{console}console/api/invocations",
            _HEADERS,
            body,
            timeout_s=_WAIT_S,
        )
    except Unreachable as error:
        raise TemplateError(f"make run at port {port} did not answer: {error}") from None
    message = member(answer, "message")
    if answer.status_code == 409 or (answer.status_code != 200 and message is None):  # of another program
        return None
    if answer.status_code != 200:
        raise TemplateError(f"make run at port {port}: {message}")
    return _show(answer.json(), port, show)


def _show(found: Any, port: int, show: Callable[[str], None]) -> Invoked:
    invoked = Invoked(
        found["function"],
        found["requestId"],
        found["payload"],
        found["failed"],
        found["initMs"],
        found["durationMs"],
    )
    show(f"Invoking {invoked.function} in make run at port {port}")
    for line in (first_line(invoked.request_id), *found["logLines"], *invoked.last_lines()):
        show(line)
    return invoked


def _console(port: int) -> str | None:
    """Return the URL of the console of a run, with a slash at the end; None if nothing leads to one."""
    try:
        found = request("GET", f"http://127.0.0.1:{port}/console/", {"accept": "text/html"})
    except Unreachable:
        return None
    location = found.headers.get("location", "")
    parts = urlsplit(location)
    is_console = found.status_code == 302 and parts.hostname in LOOPBACK and parts.path == "/"
    return location if is_console else None
