"""Run a function of the running template with an event, for `mcp-roundtrip invoke`."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.observation.records import walk
from mcp_roundtrip_tools.template.function_references import find_function
from mcp_roundtrip_tools.template.model import TemplateError


def invoke_function(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST invocations`. Raises ConsoleError.

    `event` is the text of the event, `function` a reference of `find_function` or null, and `template` the
    file of the caller's template: another application's run does not answer.
    """
    if request.text("template") != str(app.template):
        raise ConsoleError(409, f"this run serves {app.template}")
    named = None if request.body.get("function") is None else request.text("function")
    try:
        function = find_function(app.current(), named)
    except TemplateError as error:
        raise ConsoleError(404, str(error)) from None
    request_id = str(uuid4())
    result = app.run(function.name, request.text("event").encode(), request_id=request_id)
    recorded = app.recorder.invocation(request_id)
    lines = [] if recorded is None else [line for each in walk(recorded) for line in each.log_lines]
    return {
        "function": function.name,
        "requestId": request_id,
        "payload": result.payload.decode(),
        "failed": result.failed,
        "initMs": None if recorded is None else recorded.init_ms,
        "durationMs": None if recorded is None else recorded.duration_ms,
        "logLines": [line.text for line in sorted(lines, key=lambda line: line.at_ms)],
    }
