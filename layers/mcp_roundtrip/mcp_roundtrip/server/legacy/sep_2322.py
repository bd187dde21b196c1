"""The dialect of tasks that SEP-2322 describes, for clients of 2025-11-25: an adapter over the same tasks.

The client asks for a task (`params.task`), reads what a task asks for and comes to with `tasks/result`, and
answers with `tasks/input_response` (SEP-2322 "Persistent Tool Workflow"; 2025-11-25, basic/utilities/tasks).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.ports import TaskPort
from mcp_roundtrip.principal import caller_binding
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND
from mcp_roundtrip.protocol.methods import (
    META_CLIENT_CAPABILITIES,
    META_RELATED_TASK,
    TASKS_CANCEL,
    TASKS_EXTENSION,
    TASKS_GET,
    TASKS_INPUT_RESPONSE,
    TASKS_RESULT,
)
from mcp_roundtrip.server.legacy.methods import call_tool_result, has_tasks
from mcp_roundtrip.server.model import Handler, RequestContext
from mcp_roundtrip.server.round import Call, Reply
from mcp_roundtrip.server.task_methods import input_requests, members, on_task, unavailable
from mcp_roundtrip.server.tools import ToolServer
from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.service import Tasks

DIALECT: Final = "sep-2322"

ASSUMED: Final[Mapping[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""What a client that asks for a task can do, unless it says: the dialect has no place to say it."""

TTL_MS: Final = 3_600_000
"""How long the result of a call is kept that ended before it became a task, as `run_as_task` has it."""

WAIT_MS: Final = 20_000
"""How long `tasks/result` waits for a task that works: an HTTP API gives up after 30 seconds."""

PAUSE_MS: Final = 500
"""Before the second read of the task; each pause is twice the one before it, up to `MAX_PAUSE_MS`."""

MAX_PAUSE_MS: Final = 4_000


def task_methods() -> dict[str, Handler]:
    """The handler of each method for tasks."""
    return {
        TASKS_GET: _get,
        TASKS_RESULT: _result,
        TASKS_INPUT_RESPONSE: _input_response,
        TASKS_CANCEL: _cancel,
    }


# -- tools/call -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """`tools/call` over a set of tools: the client decides whether it gets a task."""

    server: ToolServer

    def answer(self, context: RequestContext) -> Reply:
        """The result, or CreateTaskResult. Raises ProtocolError or InsufficientScope."""
        params = context.route.params
        tool = self.server.tool(context)
        if "task" in params and has_tasks(context.route.meta.protocol_version):
            ttl_ms = _ttl_ms(params["task"])
            if tool.task is None:
                raise ProtocolError(METHOD_NOT_FOUND, "This tool cannot be called as a task")
            return self._as_task(context, ttl_ms)
        if tool.task == "required":
            raise ProtocolError(METHOD_NOT_FOUND, "This tool must be called as a task: add params.task")
        if _declares(context):  # it says what it can be asked, and so knows rounds as the SEP has them
            context = _as_today(context, context.route.meta.capabilities, tasks=False)
        return self.server.call(context).answer()

    def _as_task(self, context: RequestContext, ttl_ms: float) -> Reply:
        capabilities = context.route.meta.capabilities if _declares(context) else ASSUMED
        context = _of_dialect(_as_today(context, capabilities, tasks=True), ttl_ms)
        reply = self.server.call(context).answer()
        match reply.result["resultType"]:
            case "task":
                return replace(reply, result={"task": _renamed(reply.result)})
            case "complete":
                task = _task(_kept(context, reply.result))
                return replace(reply, result={"task": task}, fields={**reply.fields, "task": task["taskId"]})
        return reply  # a round before the task (SEP-2322 "Interactions Between ...")


def _ttl_ms(task: Any) -> float:
    match task:
        case {"ttl": int(ttl)} if ttl > 0 and not isinstance(ttl, bool):
            return ttl
        case dict() if "ttl" not in task:
            return float("inf")
    raise ProtocolError(INVALID_PARAMS, "Invalid params: task must be an object, its ttl milliseconds")


def _declares(context: RequestContext) -> bool:
    return META_CLIENT_CAPABILITIES in context.route.params.get("_meta", {})


def _as_today(context: RequestContext, capabilities: Mapping[str, Any], *, tasks: bool) -> RequestContext:
    """Carried out as a call of today, with these capabilities.

    Whether it may become a task is said by nothing but `params.task`.
    """
    declared = capabilities.get("extensions")
    extensions = dict(declared) if isinstance(declared, dict) else {}
    extensions.pop(TASKS_EXTENSION, None)
    if tasks:
        extensions[TASKS_EXTENSION] = {}
    meta = replace(context.route.meta, capabilities={**capabilities, "extensions": extensions})
    return replace(context, route=replace(context.route, meta=meta), call=Call)


def _of_dialect(context: RequestContext, max_ttl_ms: float = float("inf")) -> RequestContext:
    """With this dialect's tasks in place of the extension's."""

    def port() -> TaskPort:
        there = context.ports.tasks()
        return replace(there, tasks=replace(there.tasks, dialect=DIALECT, max_ttl_ms=max_ttl_ms))

    return replace(context, ports=replace(context.ports, tasks=port))


def _kept(context: RequestContext, result: Mapping[str, Any]) -> Task:
    """A task that has ended: who asked for a task reads nothing else."""
    try:
        return context.ports.tasks().tasks.create_completed(
            caller_binding(context.principal), result, ttl_ms=TTL_MS
        )
    except StoreError as error:
        raise unavailable(error, context.ports, context.invocation) from error


# -- tasks/* --------------------------------------------------------------------------------------------


def _task(task: Task) -> dict[str, Any]:
    """The members of a Task: a tool that ended in an error has failed."""
    told = _renamed(members(task))
    return {**told, "status": Status.FAILED.value} if _is_error(task) else told


def _is_error(task: Task) -> bool:
    return task.status is Status.COMPLETED and bool(task.result.get("isError"))


_TASK_MEMBERS: Final = {
    **{name: name for name in ("taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt")},
    "ttlMs": "ttl",
    "pollIntervalMs": "pollInterval",
}
"""The extension's name of each member of a Task, and this dialect's."""


def _renamed(members: Mapping[str, Any]) -> dict[str, Any]:
    return {_TASK_MEMBERS[name]: member for name, member in members.items() if name in _TASK_MEMBERS}


def _get(context: RequestContext) -> Reply:
    task = on_task(_of_dialect(context), context.route.params.get("taskId"), Tasks.get)
    return Reply(_task(task), fields={"task": task.task_id})


def _result(context: RequestContext) -> Reply:
    task = _settled(_of_dialect(context))
    match task.status:
        case Status.INPUT_REQUIRED:
            result: dict[str, Any] = {
                "resultType": "input_required",
                "inputRequests": input_requests(task),
            }
        case Status.COMPLETED:
            result = call_tool_result(task.result)
        case Status.FAILED if task.error is not None:
            raise ProtocolError(task.error["code"], task.error["message"], task.error.get("data"))
        case _:
            raise ProtocolError(INVALID_PARAMS, "The task was cancelled: it has no result")
    meta = {**result.get("_meta", {}), **_related(task.task_id)}
    return Reply({**result, "_meta": meta}, fields={"task": task.task_id})


def _settled(context: RequestContext) -> Task:
    """The task when there is something to say about it: waits for that, but not for long."""
    ports = context.ports
    until_ms = min(ports.clock_ms() + WAIT_MS, context.invocation.deadline_ms)
    pause_ms = PAUSE_MS
    while True:
        task = on_task(context, context.route.params.get("taskId"), Tasks.get)
        if task.status is not Status.WORKING:
            return task
        left_ms = until_ms - ports.clock_ms()
        if left_ms < PAUSE_MS:
            raise ProtocolError(INTERNAL_ERROR, "The task is still working. Ask for its result again.")
        ports.pause_ms(min(pause_ms, left_ms))
        pause_ms = min(2 * pause_ms, MAX_PAUSE_MS)


def _input_response(context: RequestContext) -> Reply:
    params = context.route.params
    responses = params.get("inputResponses")
    if not isinstance(responses, dict) or not all(isinstance(raw, dict) for raw in responses.values()):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: inputResponses must be an object of objects")
    related = params.get("_meta", {}).get(META_RELATED_TASK)
    if not isinstance(related, dict):
        raise ProtocolError(INVALID_PARAMS, f"Invalid params: {META_RELATED_TASK} must be an object in _meta")
    task_id = related.get("taskId")
    on_task(_of_dialect(context), task_id, lambda tasks, who, which: tasks.update(who, which, responses))
    return Reply({"_meta": _related(task_id)}, fields={"task": task_id})


def _cancel(context: RequestContext) -> Reply:
    task = on_task(_of_dialect(context), context.route.params.get("taskId"), Tasks.cancel)
    if task is None:
        raise ProtocolError(INVALID_PARAMS, "The task has ended: it cannot be cancelled")
    return Reply(_task(task), fields={"task": task.task_id})


def _related(task_id: Any) -> dict[str, Any]:
    return {META_RELATED_TASK: {"taskId": task_id}}
