"""Tell a caller of this computer why a function cannot run. On Lambda, only the log has the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.run.execution.log_text import is_library_event
from mcp_roundtrip_tools.run.execution.log_text import json_object as log_line
from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response
from mcp_roundtrip_tools.run.http.proxies import came_through_proxy
from mcp_roundtrip_tools.run.observation.messages import json_object, member
from mcp_roundtrip_tools.run.observation.records import HttpExchange, RecordedInvocation, walk
from mcp_roundtrip_tools.run.tracebacks import author_traceback

_EVENTS: Final = frozenset({"misconfigured", "definition_failed"})
"""The library's events for what only the author can correct."""


def explain_fault(request: Request, response: Response, exchange: HttpExchange, folder: Path) -> Response:
    """Return the response with the problem of the function instead of a neutral text.

    Functions without a problem keep their responses, and so do requests through a proxy, whose callers may be
    on other computers. `folder` is that of the template.
    """
    is_fault = response.status == 500 or member(json_object(response.body), "error", "code") == INTERNAL_ERROR
    if not is_fault or came_through_proxy(request):
        return response
    problem = next((text for each in walk(exchange) if (text := _problem(each, folder))), None)
    if problem is None:
        return response
    message = json_object(request.body)
    if message.get("jsonrpc") != "2.0" or "id" not in message:
        return json_response(response.status, {"message": problem})
    error: dict[str, Any] = {"code": INTERNAL_ERROR, "message": problem}
    return json_response(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})


def _problem(invocation: RecordedInvocation, folder: Path) -> str | None:
    """Return why a function could not run, or what its definitions or settings lack."""
    if invocation.failed and not invocation.environment_id:
        return invocation.error
    for line in invocation.log_lines:
        event = log_line(line.text) or {}
        if event.get("message") in _EVENTS and is_library_event(event):
            return author_traceback(str(event.get("exception", "")), folder, folder)
    return None
