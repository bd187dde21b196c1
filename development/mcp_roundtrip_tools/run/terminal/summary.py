"""One request or invocation in a few words: what it was, how it ended, and who answered it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.observing.logs_and_metrics import FINAL_EVENTS
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip_tools.run.execution.log_text import library_events
from mcp_roundtrip_tools.run.observation.records import (
    HttpExchange,
    RecordedInvocation,
    Root,
    is_challenge,
    member,
    request_message,
    response_message,
    walk,
)
from mcp_roundtrip_tools.template.model import short_name

MAX_REASON: Final = 200

_LISTS: Final = ("tools", "prompts", "resources", "resourceTemplates")

_CHANNELS: Final = {
    "asked_on_page": " on a page",
    "asked_in_app": " in an app",
    "waiting_for_answer": " before",
}
"""How a question is asked, by the outcome; nothing for the client's own form."""

_FAILURES: Final = frozenset({"tool_error", "arguments_refused"})

_SERVICES: Final = {"kms": "KMS", "dynamodb": "DynamoDB", "s3": "S3", "sqs": "SQS"}
"""The services whose calls are counted. Invocations are seen by their environments."""


@dataclass(frozen=True, slots=True)
class Summary:
    """`kind` is the JSON-RPC method, or the HTTP method and path; `subject` is the tool's or prompt's name.

    A `failure` may have the HTTP status 200. `is_minor`: notifications, pings, polls of a task that works.
    """

    kind: str
    subject: str
    details: tuple[str, ...]
    environments: tuple[str, ...]
    calls: Mapping[str, int]
    failure: str | None
    is_minor: bool = False


def summarize(root: Root) -> Summary:
    """Summarize a request, or an invocation for which nothing waits."""
    event = final_event(root)
    if isinstance(root, HttpExchange):
        request, response = request_message(root), response_message(root)
        is_call = isinstance(request.get("method"), str)
        return Summary(
            kind=request["method"] if is_call else f"{root.request.method} {root.path}",
            subject=_subject(request) if is_call else "",
            details=tuple(_details(root, request, response, event)),
            environments=_environments(root),
            calls=_calls(root),
            failure=_failure(root, response, event),
            is_minor=is_call and _is_minor(request, response),
        )
    is_unclaimed = event.get("message") == "task_not_claimed"
    is_worker = is_unclaimed or event.get("message") == "worker_finished" or "worker" in root.function
    details = [f"task {str(event['task'])[:8]}"] if event.get("task") else []
    return Summary(
        kind=("worker" if is_worker else "invocation") + (" (retry)" if root.trigger == "retry" else ""),
        subject=short_name(root.function),
        details=(*details, *(["not claimed"] if is_unclaimed else [])),
        environments=_environments(root),
        calls=_calls(root),
        failure=_reason(root) if root.failed else None,
    )


def final_event(root: Root) -> dict[str, Any]:
    """Return the library's last log line of the function that did the work; empty if it wrote none."""
    found = [each for each in library_events(root) if each["message"] in FINAL_EVENTS]
    return found[-1] if found else {}


def _is_minor(request: Mapping[str, Any], response: Mapping[str, Any]) -> bool:
    is_working = request["method"] == "tasks/get" and member(response, "result", "status") == "working"
    return "id" not in request or request["method"] == "ping" or is_working


def _subject(request: Mapping[str, Any]) -> str:
    params = request.get("params")
    paths = (("name",), ("uri",), ("ref", "name"), ("ref", "uri"), ("clientInfo", "name"))
    names = [each for path in paths if isinstance(each := member(params, *path), str)]
    task, argument = member(params, "taskId"), member(params, "argument", "name")
    subject = names[0] if names else task[:8] if isinstance(task, str) else ""
    return f"{subject}.{argument}" if subject and isinstance(argument, str) else subject


def _details(
    exchange: HttpExchange, request: Mapping[str, Any], response: Mapping[str, Any], event: Mapping[str, Any]
) -> Iterator[str]:
    version = exchange.request.header("mcp-protocol-version") or member(request, "params", "protocolVersion")
    if isinstance(version, str) and version not in ("", PROTOCOL_VERSION):
        yield version
    outcome, requests = str(event.get("outcome", "")), member(response, "result", "inputRequests")
    asked = event.get("asked") or (list(requests) if isinstance(requests, Mapping) else [])
    if isinstance(number := event.get("round"), int) and (number > 1 or asked):
        yield f"round {number}"
    if isinstance(asked, list) and asked:
        yield "asked " + ", ".join(map(str, asked)) + _CHANNELS.get(outcome, "")
    if is_challenge(exchange):
        yield "asks for a sign-in"
    if outcome == "checkpoint":
        yield "time ran out, the client continues at once"
    elif outcome.startswith("question_page"):
        yield _words(outcome)
    yield from _result(request, response)


def _result(request: Mapping[str, Any], response: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the result says: how many are listed, or the state of a task."""
    result = response.get("result")
    for name in _LISTS:
        if isinstance(listed := member(result, name), list):
            yield _count(len(listed), _words(name))
    if isinstance(values := member(result, "completion", "values"), list):
        yield _count(len(values), "values")
    if isinstance(task := member(result, "taskId"), str):
        name = "" if member(request, "params", "taskId") == task else f"task {task[:8]} "
        yield f"{name}{member(result, 'status')}"


def _environments(root: Root) -> tuple[str, ...]:
    """Return the environment that did the work, and the new ones."""
    found = [*walk(root)]
    shown = [each for each in found[:-1] if each.is_new_environment] + found[-1:]
    return tuple(
        each.environment_id + (" (new)" if each.is_new_environment else "") for each in reversed(shown)
    )


def _calls(root: Root) -> dict[str, int]:
    counts = Counter(call.service for invocation in walk(root) for call in invocation.service_calls)
    return {name: counts[service] for service, name in _SERVICES.items() if counts[service]}


def _failure(exchange: HttpExchange, response: Mapping[str, Any], event: Mapping[str, Any]) -> str | None:
    if is_challenge(exchange):
        return None
    error, result = response.get("error"), response.get("result")
    if isinstance(error, Mapping):
        reason = _state_reason(exchange)
        return _shorten(f"{error.get('code')} {error.get('message')}{reason}")
    if member(result, "isError") is True:
        kind = event.get("outcome") if event.get("outcome") in _FAILURES else "tool_error"
        return _shorten(f"{_words(str(kind))}: {_text_of(result)}")
    if (exchange.status or 0) >= 400:
        failed = [each for each in walk(exchange) if each.failed]
        reason = _reason(failed[-1]) if failed else str(member(response, "message") or "")
        return _shorten(f"{exchange.status} {reason}")
    return None


def _state_reason(exchange: HttpExchange) -> str:
    """Return why a state or a token was refused, which the client does not learn."""
    refused = (
        each for each in library_events(exchange) if each["message"] in ("state_refused", "unauthorized")
    )
    return next((f" ({each.get('reason')})" for each in refused), "")


def _reason(invocation: RecordedInvocation) -> str:
    """Return the error of an invocation without the request id, which Lambda's messages begin with."""
    error_type, _, message = (invocation.error or "").partition(": ")
    return f"{error_type}: {message.partition(' Error: ')[2] or message}"


def _text_of(result: Any) -> str:
    blocks = member(result, "content")
    texts = (member(block, "text") for block in blocks) if isinstance(blocks, list) else ()
    return " ".join(text for text in texts if isinstance(text, str))


def _count(number: int, plural: str) -> str:
    return f"{number} {plural.removesuffix('s') if number == 1 else plural}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON else line[:MAX_REASON] + "…"


def _words(name: str) -> str:
    return {"resourceTemplates": "templates"}.get(name, name.replace("_", " "))
