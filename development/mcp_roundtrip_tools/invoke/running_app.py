"""Run a function with an event: in a make run of the application, or on its own."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from mcp_roundtrip_tools.client.http import LOOPBACK, Unreachable, member, request
from mcp_roundtrip_tools.invoke.rounds import task_of
from mcp_roundtrip_tools.run.invocations import Invoked, invoke
from mcp_roundtrip_tools.run.observation.records import Event, Note, Printed
from mcp_roundtrip_tools.run.serving import serve
from mcp_roundtrip_tools.template.function_references import find_function
from mcp_roundtrip_tools.template.model import TemplateError

Show = Callable[[str], None]
"""Receives the lines of the log."""


def invoke_once(
    template: Path,
    function: str | None,
    event: str,
    show: Show,
    *,
    parameters: Mapping[str, str],
    variables: Mapping[str, str],
) -> Invoked:
    """Run a function of a template once, with development keys and empty tables.

    `show` receives the lines as they are printed, also those of functions that it invokes. Raises
    TemplateError.
    """

    def listen(happened: Event) -> None:
        match happened:
            case Printed(line=line):
                show(line.text)
            case Note():
                show(happened.text)

    with (
        redirect_stdout(sys.stderr),  # stand-ins print, too
        serve(
            template,
            port=None,
            parameters=parameters,
            variables=variables,
            log=None,
            listeners=[listen],
            watch_interval_s=math.inf,
            development_keys=True,
        ) as app,
    ):
        name, request_id = find_function(app.current(), function).name, str(uuid4())
        show(f"Invoking {name} with development keys and empty tables")
        show(_first_line(request_id))
        invoked = invoke(app, name, event, request_id)
        _show_end(invoked, show)
        if task_id := task_of(json.loads(invoked.payload)):
            show(f"The task {task_id} ends with this command. To follow a task, start make run before.")
    return invoked


_WAIT_S: Final = 86_400.0
"""A function may run for 15 minutes, and in debug mode until its user continues."""

_HEADERS: Final = {"content-type": "application/json", "x-console": "1"}


def invoke_in_run(port: int, template: Path, function: str | None, event: str, show: Show) -> Invoked | None:
    """Run a function in the `make run` at this port; None if no run of this template is there.

    Raises TemplateError if the run refuses the request.
    """
    console = _console(port)
    if console is None:
        return None
    body = json.dumps({"template": str(template.resolve()), "function": function, "event": event}).encode()
    url = f"{console}console/api/invocations"
    try:
        answer = request("POST", url, _HEADERS, body, timeout_s=_WAIT_S)
    except Unreachable as error:
        raise TemplateError(f"make run at port {port} did not answer: {error}") from None
    message = member(answer, "message")
    if answer.status_code == 409 or (answer.status_code != 200 and message is None):  # of another program
        return None
    if answer.status_code != 200:
        raise TemplateError(f"make run at port {port}: {message}")
    invoked = Invoked(**answer.json())
    show(f"Invoking {invoked.function} in make run at port {port}")
    for line in (_first_line(invoked.request_id), *invoked.log_lines):
        show(line)
    _show_end(invoked, show)
    return invoked


def _first_line(request_id: str) -> str:
    """Return the line with which Lambda's log of an invocation begins."""
    return f"START RequestId: {request_id} Version: $LATEST"


def _show_end(invoked: Invoked, show: Show) -> None:
    """Show the lines with which Lambda's log of an invocation ends."""
    init_ms, duration_ms = invoked.init_ms or 0.0, invoked.duration_ms or 0.0
    init = f"Init Duration: {init_ms:.2f} ms\t" if init_ms else ""
    show(f"END RequestId: {invoked.request_id}")
    show(f"REPORT RequestId: {invoked.request_id}\t{init}Duration: {max(duration_ms - init_ms, 0):.2f} ms")


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
