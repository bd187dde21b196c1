"""The dialect of tasks in SEP-2322, for clients of 2025-11-25: an adapter over the tasks of the extension.

The client requests a task with `params.task`, reads input requests and the result with `tasks/result`, and
sends input responses with `tasks/input_response` (SEP-2322 "Persistent Tool Workflow"; 2025-11-25,
basic/utilities/tasks).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.auth.callers import caller_binding
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.protocol import constants
from mcp_roundtrip.protocol.capabilities import version_has_tasks
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, invalid_params
from mcp_roundtrip.protocol.results import call_tool_result
from mcp_roundtrip.server.admission import find_by_name
from mcp_roundtrip.server.lists import ListedTool
from mcp_roundtrip.server.options import ANSWER_TOOL
from mcp_roundtrip.server.request_types import Handler, Reply, RequestContext
from mcp_roundtrip.server.task_methods import task_members, task_of_caller
from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.service import Tasks

DIALECT: Final = "sep-2322"

ASSUMED_CAPABILITIES: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
"""The capabilities of a client that requests a task and declares none: the dialect has no member for them."""

TTL_MS: Final = 3_600_000
"""Time to live of a task for a call that completed at once; the same as the default of `run_as_task`."""

WAIT_MS: Final = 20_000
"""How long `tasks/result` waits for a working task: an HTTP API has a timeout of 30 seconds."""

PAUSE_MS: Final = 500
"""The pause before the second read of the task; each pause doubles, up to `MAX_PAUSE_MS`."""

MAX_PAUSE_MS: Final = 4_000


# -- tools/call -----------------------------------------------------------------------------------------


def call_tool(
    handler: Handler, tools: Mapping[str, ListedTool], context: RequestContext
) -> Reply | HttpResponse:
    """Call the handler of `tools/call`: the client decides whether the call becomes a task."""
    if context.params.get("name") == ANSWER_TOOL:  # it continues a call that has asked before
        return handler(context)
    adapted = _adapt_context(find_by_name(tools, context), context)
    reply = handler(adapted)
    return reply if isinstance(reply, HttpResponse) else _adapt_reply(adapted, reply)


def _adapt_context(tool: ListedTool, context: RequestContext) -> RequestContext:
    """Return the context of a call that becomes a task if, and only if, the client has asked for one."""
    meta = context.request.meta
    if _is_for_task(context):
        ttl_ms = _ttl_ms(context.params["task"])
        if tool.task is None:
            raise ProtocolError(METHOD_NOT_FOUND, "This tool cannot be called as a task")
        declared = meta.capabilities if meta.knows_capabilities else ASSUMED_CAPABILITIES
        return _in_dialect(_with_capabilities(context, declared, tasks=True), ttl_ms)
    if tool.task == "required":
        raise ProtocolError(METHOD_NOT_FOUND, "This tool must be called as a task: add params.task")
    if context.params.get("_meta", {}).get(constants.META_CLIENT_CAPABILITIES) is None:
        return context
    # Such a client supports rounds as the SEP describes them.
    return _with_capabilities(context, meta.capabilities)


def _adapt_reply(context: RequestContext, reply: Reply) -> Reply:
    """Return the reply to a call: a task if the client asked for one, also if the call has ended."""
    if not _is_for_task(context) or isinstance(reply.body, ProtocolError):
        return reply
    match reply.body["resultType"]:
        case "task":
            return replace(reply, body={"task": _rename_members(reply.body)})
        case "complete":
            task = _dialect_members(_store_completed(context, reply.body), context)
            return replace(
                reply, body={"task": task}, log_fields={**reply.log_fields, "task": task["taskId"]}
            )
    return reply  # a round before the task (SEP-2322 "Interactions Between ...")


def _is_for_task(context: RequestContext) -> bool:
    return "task" in context.params and version_has_tasks(context.request.meta.protocol_version)


def _ttl_ms(task: Any) -> float:
    match task:
        case {"ttl": int(ttl)} if ttl > 0 and not isinstance(ttl, bool):
            return ttl
        case dict() if task.get("ttl") is None:
            return float("inf")
    raise invalid_params("task must be an object, its ttl milliseconds")


def _with_capabilities(
    context: RequestContext, capabilities: Mapping[str, Any], *, tasks: bool = False
) -> RequestContext:
    declared = capabilities.get("extensions")
    extensions = dict(declared) if isinstance(declared, dict) else {}
    extensions.pop(constants.TASKS_EXTENSION, None)
    if tasks:
        extensions[constants.TASKS_EXTENSION] = {}
    declaring = context.with_capabilities({**capabilities, "extensions": extensions})
    return replace(declaring, uses_dialect=True)


def _in_dialect(context: RequestContext, max_ttl_ms: float = float("inf")) -> RequestContext:
    def dialect_tasks() -> Tasks:
        return replace(context.ports.tasks(), dialect=DIALECT, max_ttl_ms=max_ttl_ms)

    return replace(context, ports=replace(context.ports, tasks=dialect_tasks))


def _store_completed(context: RequestContext, result: Mapping[str, Any]) -> Task:
    try:
        principal = caller_binding(context.principal)
        return context.ports.tasks().create_completed(principal, result, ttl_ms=TTL_MS)
    except StoreError as error:
        raise context.table_unavailable(error) from error


# -- tasks/* --------------------------------------------------------------------------------------------


def _dialect_members(task: Task, context: RequestContext) -> dict[str, Any]:
    """Return the members of a Task; in this dialect a task whose tool reported an error has failed."""
    members = _rename_members(task_members(task, context))
    has_failed = task.status is Status.COMPLETED and task.result.get("isError")
    return {**members, "status": Status.FAILED.value} if has_failed else members


_TASK_MEMBERS: Final = {
    **{name: name for name in ("taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt")},
    "ttlMs": "ttl",
    "pollIntervalMs": "pollInterval",
}
"""The name of each member of a Task in the extension, and in this dialect."""


def _rename_members(members: Mapping[str, Any]) -> dict[str, Any]:
    return {_TASK_MEMBERS[name]: member for name, member in members.items() if name in _TASK_MEMBERS}


def _get(context: RequestContext) -> Reply:
    with task_of_caller(_in_dialect(context), context.params.get("taskId")) as (tasks, principal, task_id):
        task = tasks.get(principal, task_id)
    return Reply(_dialect_members(task, context), log_fields={"task": task.task_id})


def _result(context: RequestContext) -> Reply:
    task = _wait_for_task(_in_dialect(context))
    match task.visible_status:
        case Status.INPUT_REQUIRED:
            result: dict[str, Any] = {
                "resultType": "input_required",
                "inputRequests": task.client_requests,
            }
        case Status.COMPLETED:
            result = call_tool_result(task.result)
        case Status.FAILED if task.error is not None:
            raise ProtocolError(**task.error)
        case _:
            raise ProtocolError(INVALID_PARAMS, "The task was cancelled: it has no result")
    meta = {**result.get("_meta", {}), **_related_task_meta(task.task_id)}
    return Reply({**result, "_meta": meta}, log_fields={"task": task.task_id})


def _wait_for_task(context: RequestContext) -> Task:
    """Wait until the task is not working any more, for `WAIT_MS` at most. Raises ProtocolError."""
    ports = context.ports
    until_ms = min(ports.clock_ms() + WAIT_MS, context.invocation.deadline_ms)
    pause_ms = PAUSE_MS
    while True:
        with task_of_caller(context, context.params.get("taskId")) as (tasks, principal, task_id):
            task = tasks.get(principal, task_id)
        if task.visible_status is not Status.WORKING:
            return task
        left_ms = until_ms - ports.clock_ms()
        if left_ms < PAUSE_MS:
            raise ProtocolError(INTERNAL_ERROR, "The task is still working. Ask for its result again.")
        ports.pause_ms(min(pause_ms, left_ms))
        pause_ms = min(2 * pause_ms, MAX_PAUSE_MS)


def _input_response(context: RequestContext) -> Reply:
    params = context.params
    responses = params.get("inputResponses")
    if not isinstance(responses, dict) or not all(isinstance(raw, dict) for raw in responses.values()):
        raise invalid_params("inputResponses must be an object of objects")
    related = params.get("_meta", {}).get(constants.META_RELATED_TASK)
    if not isinstance(related, dict):
        raise invalid_params(f"{constants.META_RELATED_TASK} must be an object in _meta")
    with task_of_caller(_in_dialect(context), related.get("taskId")) as (tasks, principal, task_id):
        tasks.update(principal, task_id, responses)
    return Reply({"_meta": _related_task_meta(task_id)}, log_fields={"task": task_id})


def _cancel(context: RequestContext) -> Reply:
    with task_of_caller(_in_dialect(context), context.params.get("taskId")) as (tasks, principal, task_id):
        task = tasks.cancel(principal, task_id)
    if task is None:
        raise ProtocolError(INVALID_PARAMS, "The task has ended: it cannot be cancelled")
    return Reply(_dialect_members(task, context), log_fields={"task": task.task_id})


def _related_task_meta(task_id: Any) -> dict[str, Any]:
    return {constants.META_RELATED_TASK: {"taskId": task_id}}


TASK_HANDLERS: Final[Mapping[str, Handler]] = {
    constants.TASKS_GET: _get,
    constants.TASKS_RESULT: _result,
    constants.TASKS_INPUT_RESPONSE: _input_response,
    constants.TASKS_CANCEL: _cancel,
}
