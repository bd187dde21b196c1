"""The methods `tasks/get`, `tasks/update` and `tasks/cancel` of the tasks extension, and its Task objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from mcp_roundtrip.auth.callers import caller_binding
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import TASKS
from mcp_roundtrip.protocol.constants import TASKS_CANCEL, TASKS_GET, TASKS_UPDATE
from mcp_roundtrip.protocol.input_responses import MalformedInputResponse
from mcp_roundtrip.protocol.jsonrpc import invalid_params
from mcp_roundtrip.protocol.results import iso_timestamp
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.request_types import Handler, Reply, RequestContext
from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.service import Tasks, UnknownTask

POLL_INTERVAL_MS: Final = 1_000
"""The `pollIntervalMs` of every task."""


def task_members(task: Task, context: RequestContext | None = None) -> dict[str, Any]:
    """Return the members of a Task object. With a `context`, `statusMessage` has the link to the page."""
    members: dict[str, Any] = {
        "taskId": task.task_id,
        "status": task.visible_status.value,
        "createdAt": iso_timestamp(task.created_at_ms),
        "lastUpdatedAt": iso_timestamp(task.updated_at_ms),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": POLL_INTERVAL_MS,
    }
    message = task.message
    if context is not None and task.waits_for_page:
        url = context.question_page_url(task.link)
        message = f"The task has a question for the user, who answers it at {url}"
    return members if message is None else {**members, "statusMessage": message}


def detailed_task_members(task: Task, context: RequestContext) -> dict[str, Any]:
    """Return the members of a DetailedTask: with its input requests, its result or its error."""
    members = task_members(task, context)
    match task.visible_status:
        case Status.INPUT_REQUIRED:
            return {**members, "inputRequests": task.client_requests}
        case Status.COMPLETED:
            return {**members, "result": task.result}
        case Status.FAILED:
            return {**members, "error": task.error}
    return members


def _get(context: RequestContext) -> Reply:
    require_capabilities(context, [TASKS])
    with task_of_caller(context, context.params.get("taskId")) as (tasks, principal, task_id):
        task = tasks.get(principal, task_id)
    result = results.complete(context.options.server_info, **detailed_task_members(task, context))
    return Reply(result, log_fields={"task": task.task_id})


def _update(context: RequestContext) -> Reply:
    require_capabilities(context, [TASKS])
    responses = context.params.get("inputResponses")
    if not isinstance(responses, dict):
        raise invalid_params("inputResponses must be an object")
    with task_of_caller(context, context.params.get("taskId")) as (tasks, principal, task_id):
        tasks.update(principal, task_id, responses)
    return Reply(results.complete(context.options.server_info))


def _cancel(context: RequestContext) -> Reply:
    require_capabilities(context, [TASKS])
    with task_of_caller(context, context.params.get("taskId")) as (tasks, principal, task_id):
        tasks.cancel(principal, task_id)
    return Reply(results.complete(context.options.server_info))


TASK_HANDLERS: Final[Mapping[str, Handler]] = {TASKS_GET: _get, TASKS_UPDATE: _update, TASKS_CANCEL: _cancel}
"""The handlers of the extension's methods, for the tasks of all tools that share a table."""


@contextmanager
def task_of_caller(context: RequestContext, task_id: Any) -> Iterator[tuple[Tasks, str | None, str]]:
    """Yield the tasks, the caller's binding and the task id; turn errors in the block into ProtocolErrors."""
    if not isinstance(task_id, str):
        raise invalid_params("taskId must be a string")
    try:
        yield context.ports.tasks(), caller_binding(context.principal), task_id
    except UnknownTask:
        text = "Unknown task: it does not exist, has expired, or is another caller's"
        raise ProtocolError(INVALID_PARAMS, text) from None
    except MalformedInputResponse as error:
        context.ports.observer.record("answer_refused", task=task_id, key=error.key, reason=error.reason)
        raise
    except ItemTooLarge as error:
        raise MalformedInputResponse(error.key, "", f"at most about {error.limit} bytes of JSON") from None
    except StoreError as error:
        raise context.table_unavailable(error, task=task_id) from error
