"""Tasks on the wire: how a call becomes one, the methods of the extension, and what their worker runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.engine.host import TaskOptions
from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcome import Done, Failed, Outcome
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import INVALID_PARAMS, MissingClientCapability, ProtocolError, ToolError
from mcp_roundtrip.http import MAX_RESPONSE_BYTES, payload_size
from mcp_roundtrip.internal_errors import (
    ArgumentsError,
    ItemTooLarge,
    ResultTooLarge,
    SettingsError,
    StoreError,
)
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.principal import Principal, caller_binding
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import TASKS, missing_capabilities
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR, RETRY_AFTER_S, TOO_MANY_REQUESTS
from mcp_roundtrip.protocol.methods import PROTOCOL_VERSION, TASKS_CANCEL, TASKS_GET, TASKS_UPDATE
from mcp_roundtrip.protocol.request_validation import ClientMeta, ValidRequest
from mcp_roundtrip.server.inputs import CallParams
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.model import Handler, RequestContext
from mcp_roundtrip.server.round import Call, Reply, internal_error
from mcp_roundtrip.server.tools import Tool, ToolServer
from mcp_roundtrip.tasks.items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.limit import TooManyOpenTasks
from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.service import Tasks, UnknownTask
from mcp_roundtrip.tasks.worker import Completed, Pass, TaskError, TaskRecorder, too_large_error

T = TypeVar("T")

POLL_INTERVAL_MS: Final = 1_000
"""How often a client should ask."""

ENVELOPE: Final = 16_384
"""Bytes of a response that are kept for what is around a task's result."""

MAX_STATUS_MESSAGE: Final = 4_096
"""Characters of a `statusMessage`: every poll reads it."""


def members(task: Task) -> dict[str, Any]:
    """The members of a Task object."""
    told: dict[str, Any] = {
        "taskId": task.task_id,
        "status": task.status.value,
        "createdAt": _iso(task.created_at_ms),
        "lastUpdatedAt": _iso(task.updated_at_ms),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": POLL_INTERVAL_MS,
    }
    return told if task.message is None else {**told, "statusMessage": task.message}


def detailed(task: Task) -> dict[str, Any]:
    """The members of a DetailedTask: with its outstanding requests, its result or its error."""
    match task.status:
        case Status.INPUT_REQUIRED:
            return {**members(task), "inputRequests": input_requests(task)}
        case Status.COMPLETED:
            return {**members(task), "result": task.result}
        case Status.FAILED:
            return {**members(task), "error": task.error}
    return members(task)


def input_requests(task: Task) -> dict[str, Any]:
    """What it waits for."""
    return {key: asked.request for key, asked in task.requests.items()}


def _iso(epoch_ms: int) -> str:
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_task_limit(call: Call) -> None:
    """Raise ProtocolError if the caller cannot create a task now."""
    try:
        call.ports.tasks().tasks.limit.check(caller_binding(call.principal))
    except TooManyOpenTasks as error:
        raise _too_many_open_tasks(call, error) from None
    except StoreError as error:
        raise unavailable(error, call.ports, call.invocation) from error


def _too_many_open_tasks(
    call: Call, error: TooManyOpenTasks, journal: Journal | None = None
) -> ProtocolError:
    """HTTP 429, and what to do about it."""
    call.ports.observer.record("task_limit_reached", **call.named, limit=error.limit)
    text = (
        f"The caller has {error.limit} open tasks, and the server allows no more. Wait until one of them has "
        "ended, or cancel one with tasks/cancel, and call again."
    )
    if journal is not None and any(entry.kind.is_nonrepeatable for entry in journal.entries):
        text += " The call had done part of its work, and a new call does it again."
    return ProtocolError(
        TOO_MANY_REQUESTS,
        text,
        {"maxOpenTasks": error.limit, "retryAfterMs": 1_000 * RETRY_AFTER_S},
        http_status=429,
    )


def become_task(call: Call, journal: Journal, ttl_ms: int) -> Reply:
    """CreateTaskResult for a call that goes on as a task. Raises ProtocolError."""
    try:
        task = members(_created(call, journal, ttl_ms))
    except TooManyOpenTasks as error:
        raise _too_many_open_tasks(call, error, journal) from None
    except ItemTooLarge as error:
        call.ports.observer.failure("task_too_large", error, tool=call.feature.name)
        if len(compact_json(call.call_params.arguments)) < error.size // 2:
            raise internal_error(call.invocation.correlation_id) from error
        text = f"The arguments are too large for a task: at most about {error.limit} bytes of JSON."
        return call.reply(call.feature.refused(call.server_info, ToolError(text)), "arguments_too_large")
    except StoreError as error:
        raise unavailable(error, call.ports, call.invocation) from error
    return call.reply(results.task(call.server_info, task), "task", task=task["taskId"])


def _created(call: Call, journal: Journal, ttl_ms: int) -> Task:
    meta, principal, port = call.route.meta, call.principal, call.ports.tasks()
    frozen = TaskCall(
        call.route.method,
        call.feature.name,
        call.call_params.arguments,
        None if principal is None else astuple(principal),
        meta.info,
        call.server_info,
        meta.trace,
    )
    return port.tasks.create(
        frozen,
        caller_binding(principal),
        journal,
        worker=port.worker(),
        capabilities=meta.capabilities,
        ttl_ms=ttl_ms,
    )


# -- for clients ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskMethods:
    """The methods of the extension, for the tasks of all tools whose table they share."""

    server_info: Mapping[str, Any]

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {TASKS_GET: self._get, TASKS_UPDATE: self._update, TASKS_CANCEL: self._cancel}

    def _get(self, context: RequestContext) -> Reply:
        task = _declared(context, Tasks.get)
        return Reply(results.complete(self.server_info, **detailed(task)), fields={"task": task.task_id})

    def _update(self, context: RequestContext) -> Reply:
        responses = context.route.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise ProtocolError(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
        _declared(context, lambda tasks, principal, task_id: tasks.update(principal, task_id, responses))
        return Reply(results.complete(self.server_info))

    def _cancel(self, context: RequestContext) -> Reply:
        _declared(context, Tasks.cancel)
        return Reply(results.complete(self.server_info))


def _declared(context: RequestContext, operation: Callable[[Tasks, str | None, str], T]) -> T:
    required = missing_capabilities(context.route.meta.capabilities, [TASKS])
    if required:
        raise MissingClientCapability(required, needed_by=context.route.method)
    return on_task(context, context.route.params.get("taskId"), operation)


def on_task(context: RequestContext, task_id: Any, operation: Callable[[Tasks, str | None, str], T]) -> T:
    """What `operation` comes to for the caller's task of this id. Raises ProtocolError."""
    if not isinstance(task_id, str):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: taskId must be a string")
    try:
        return operation(context.ports.tasks().tasks, caller_binding(context.principal), task_id)
    except UnknownTask:
        raise ProtocolError(INVALID_PARAMS, "Unknown task") from None
    except ItemTooLarge as error:
        text = f"Invalid params: an answer is too large to be kept, at most about {error.limit} bytes"
        raise ProtocolError(INVALID_PARAMS, text) from None
    except StoreError as error:
        raise unavailable(error, context.ports, context.invocation) from error


def unavailable(error: StoreError, ports: Ports, invocation: Invocation) -> ProtocolError:
    """What a client gets when the table does not do its part; why it did not is in the log."""
    ports.observer.failure("task_table_unavailable", error)
    return internal_error(invocation.correlation_id)


# -- for the worker -------------------------------------------------------------------------------------


@dataclass(slots=True)
class StatusMessages(NotificationBuffer):
    """Progress becomes the task's `statusMessage`; log messages have nowhere to go (SEP-2663)."""

    told: Callable[[str], None] = lambda message: None

    def progress(self, done: float, total: float | None, message: str | None, *, is_new: bool) -> None:
        NotificationBuffer.progress(self, done, total, message, is_new=False)  # refuses what cannot be sent
        text = message or (f"{done:g}" if total is None else f"{done:g} of {total:g}")
        if is_new:
            self.told(text[:MAX_STATUS_MESSAGE].encode("utf-8", "replace").decode())


@dataclass(frozen=True, slots=True)
class TaskBody:
    """Passes over the tools of a server, for its worker."""

    server: ToolServer
    ports: Ports
    invocation: Invocation

    def __call__(self, task: Task, past: TaskHistory, recorder: TaskRecorder) -> Pass:
        """One pass over the tool that the task is of."""
        tool = self.server.tools.get(past.call.name)
        if tool is None:
            error = {"code": INTERNAL_ERROR, "message": "The tool of this task does not exist any more."}
            return Pass(None, Failed(LookupError(past.call.name)), lambda: TaskError(error))
        call = self._call(tool, task, past.call)
        self.ports.observer.tag(flow=task.flow_id)
        self.ports.observer.redact(
            lambda: (past.call.arguments, past.call.client, call.principal and call.principal.subject)
        )
        run = self._run(call, task, past, recorder)
        outcome: Outcome
        try:
            outcome = call.replay(tool.parameters.validate(past.call.arguments), run)
        except ArgumentsError as refused:  # a later deployment takes others
            outcome = Failed(refused)
        return Pass(run, outcome, lambda: _conclusion(call, outcome))

    def _call(self, tool: Tool, task: Task, made: TaskCall) -> Call:
        meta = ClientMeta(PROTOCOL_VERSION, task.capabilities, made.client, trace=made.trace)
        return Call(
            tool,
            tool.name,
            CallParams(made.arguments, {}, None),
            ValidRequest(task.task_id, made.method, {}, meta),
            None if made.principal is None else Principal(*made.principal),
            self.ports,
            self.invocation,
            replace(self.server.options, server_info=made.server_info),
        )

    def _run(self, call: Call, task: Task, past: TaskHistory, recorder: TaskRecorder) -> Run:
        return Run(
            past.journal,
            ClientInputs(past.responses, is_resumed=True, capabilities=task.capabilities),
            call.host_services(),
            StatusMessages(told=recorder.report_status),
            TaskOptions(recorder=recorder, is_offered=True),
        )


def _conclusion(call: Call, outcome: Outcome) -> Completed | TaskError:
    assert isinstance(outcome, Done | Failed), outcome
    if isinstance(outcome, Failed) and isinstance(outcome.error, ItemTooLarge):
        call.ports.observer.failure("task_too_large", outcome.error, tool=call.feature.name)
        return too_large_error(outcome.error)
    try:
        result = call.ended(outcome).result
        if payload_size(compact_json(result)) <= MAX_RESPONSE_BYTES - ENVELOPE:
            return Completed(result)
        error = ResultTooLarge(MAX_RESPONSE_BYTES)
        call.ports.observer.failure("result_too_large", error, tool=call.feature.name)
        return Completed(call.feature.refused(call.server_info, ToolError(str(error))))
    except ProtocolError as refusal:
        failure = refusal
    except SettingsError as wrong:
        call.ports.observer.failure("misconfigured", wrong)
        failure = internal_error(call.invocation.correlation_id)
    broken = {"code": failure.code, "message": failure.message}
    return TaskError(broken if failure.data is None else {**broken, "data": dict(failure.data)})
