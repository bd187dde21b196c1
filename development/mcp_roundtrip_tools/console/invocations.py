"""Run a function of the running template with an event, for `mcp-roundtrip invoke`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import uuid4

from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.invocations import invoke
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
    return asdict(invoke(app, function.name, request.text("event"), str(uuid4())))
