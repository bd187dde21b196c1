"""What happens in the running template, as it happens: requests and invocations as JSON."""

from typing import Any, Final

from mcp_roundtrip.protocol.constants import META_CLIENT_INFO
from mcp_roundtrip.protocol.strict_json import parse_json
from mcp_roundtrip_tools.console.admission import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.execution.log_text import readable
from mcp_roundtrip_tools.run.observation.records import (
    HttpExchange,
    LogLine,
    RecordedInvocation,
    member,
    members,
    request_message,
    walk,
)
from mcp_roundtrip_tools.run.terminal.summary import summarize

MAX_DEPTH: Final = 200


def show_exchange(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET exchanges/{id}`. Raises ConsoleError."""
    found = app.recorder.exchange(request.parameters["id"])
    if found is None:
        raise ConsoleError(404, "this request is not recorded: only the newest are kept")
    return exchange_document(found)


def show_activity(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET activity`: what changed after `after`."""
    sequence, changed = app.recorder.changed_after(int(request.parameters.get("after", 0)))
    return {
        "sequence": sequence,
        "exchanges": [exchange_row(each) for each in changed if isinstance(each, HttpExchange)],
        "invocations": [
            invocation_document(each) for each in changed if isinstance(each, RecordedInvocation)
        ],
    }


def exchange_row(exchange: HttpExchange) -> dict[str, Any]:
    """Return one line of the list of requests, with the words of the terminal."""
    summary, invocations = summarize(exchange), [*walk(exchange)]
    params = member(request_message(exchange), "params")
    client = member(params, "_meta", META_CLIENT_INFO, "name") or member(params, "clientInfo", "name")
    return {
        **members(exchange, "id", "started_at_ms", "duration_ms"),
        **members(summary, "kind", "subject", "details", "failure"),
        "isFromConsole": exchange.request.from_console,
        "client": client if isinstance(client, str) else None,
        # The function that answered: the front door's owner, not the front door.
        **(members(invocations[-1], "environment_id", "is_new_environment") if invocations else {}),
    }


def exchange_document(exchange: HttpExchange) -> dict[str, Any]:
    """Return a request with its response and everything that it caused."""
    return {
        **members(exchange, "id", "started_at_ms", "duration_ms", "path", "status"),
        "method": exchange.request.method,
        "requestBody": body_document(exchange.request.body),
        "responseBody": None if exchange.response is None else body_document(exchange.response.body),
        "invocations": [invocation_document(each) for each in exchange.invocations],
    }


def invocation_document(invocation: RecordedInvocation) -> dict[str, Any]:
    """Return an invocation with its log lines, its calls of services, and the invocations it waited for."""
    response = invocation.response
    times = ("started_at_ms", "init_ms", "duration_ms")
    call_members = ("service", "operation", "detail", "status", "duration_ms")
    return {
        **members(invocation, "id", "function", "environment_id", "is_new_environment", "trigger", *times),
        **members(invocation, "failed", "error"),
        "payload": body_document(invocation.payload),
        "response": None if response is None else body_document(response),
        "serviceCalls": [members(each, *call_members) for each in invocation.service_calls],
        "logLines": [line_document(line) for line in invocation.log_lines],
        "invocations": [invocation_document(each) for each in invocation.invocations],
    }


def line_document(line: LogLine) -> dict[str, Any]:
    """Return a printed line; `shown` and `level` are as in the terminal, null if it leaves the line out."""
    found = readable(line.text)
    shown, level = (None, None) if found is None else (found.text, found.level.lower() or "print")
    return {**members(line, "at_ms", "text"), "shown": shown, "level": level}


def body_document(body: bytes) -> Any:
    """Return the JSON document in a body, or its text; None for an empty body."""
    if not body:
        return None
    try:
        return parse_json(body, max_depth=MAX_DEPTH)
    except ValueError:
        return body.decode("utf-8", "replace")
