"""Start what a function needs for one invocation, and stop it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final
from uuid import uuid4

from mcp_roundtrip_tools.invoke.invocation import Invoked, first_line
from mcp_roundtrip_tools.invoke.rounds import task_of
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.records import Event, Note, Printed
from mcp_roundtrip_tools.run.options import Options
from mcp_roundtrip_tools.run.servers import WebServers
from mcp_roundtrip_tools.run.serving import start_functions
from mcp_roundtrip_tools.run.template_options import DEFAULT_PORT
from mcp_roundtrip_tools.template.function_references import find_function

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
