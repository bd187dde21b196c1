"""Runs the tool of a task for a worker: one pass over its function, and the conclusion once it has ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.engine.channels import Channels
from mcp_roundtrip.engine.host import TaskOptions
from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcome import Done, Failed, NeedsInput
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import ProtocolError, ToolError
from mcp_roundtrip.http import MAX_RESPONSE_BYTES, payload_size
from mcp_roundtrip.internal_errors import CallAborted, ItemTooLarge, ResultTooLarge
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.protocol.request_validation import RequestMeta, ValidRequest
from mcp_roundtrip.server.channels import task_channels
from mcp_roundtrip.server.errors import describe_open_questions
from mcp_roundtrip.server.execution import host_services, run_pass
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.model import CallParams, FeatureCall, Reply, RequestContext
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.tools import Tool, ToolMethods
from mcp_roundtrip.tasks.issued_requests import MAX_ASKED, key_asked_too_often
from mcp_roundtrip.tasks.items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.recorder import TaskRecorder
from mcp_roundtrip.tasks.worker import (
    RETRYABLE,
    Completed,
    PassResult,
    TaskError,
)

RESPONSE_OVERHEAD: Final = 16_384
"""Bytes of a response that are reserved for what surrounds the result of a task."""

MAX_STATUS_MESSAGE: Final = 4_096
"""Characters of a `statusMessage`: every poll reads it."""


class StatusMessages(NotificationBuffer):
    """Turns progress into the `statusMessage` of the task; log messages are dropped (SEP-2663)."""

    write: Callable[[str], None] = lambda message: None

    def progress(self, done: float, total: float | None, message: str | None, *, is_new: bool) -> None:
        super().progress(done, total, message, is_new=False)  # refuses what cannot be sent
        text = message or (f"{done:g}" if total is None else f"{done:g} of {total:g}")
        if is_new:
            self.write(text[:MAX_STATUS_MESSAGE].encode("utf-8", "replace").decode())


class TaskRunner(Struct, frozen=True):
    """Runs passes over the tools of a server. `channels` returns those through which a pass can ask."""

    tool_methods: ToolMethods
    ports: Ports
    invocation: Invocation
    channels: Callable[[FeatureCall], Channels] = task_channels

    def __call__(self, task: Task, history: TaskHistory, recorder: TaskRecorder) -> PassResult:
        """Run one pass. Raises one of `RETRYABLE` for a fault that a later worker may not have."""
        tool = self.tool_methods.tools.get(history.call.name)
        if tool is None:
            if (operation := self.invocation.operation) is not None:
                operation.begin_task(task, history.call)
            error = {"code": INTERNAL_ERROR, "message": "The tool of this task does not exist any more."}
            return PassResult(None, Failed(LookupError(history.call.name)), TaskError(error))
        call = self._restore_call(tool, task, history.call)
        principal = call.context.principal
        self.ports.observer.redact(
            lambda: (history.call.arguments, history.call.client, principal and principal.subject)
        )
        run = Run(
            history.journal,
            ClientInputs(
                history.responses,
                is_resumed=True,
                find_channels=partial(self.channels, call),
                response_channels=history.response_channels,
            ),
            host_services(call),
            StatusMessages(write=recorder.report_status),
            TaskOptions(
                recorder=recorder,
                is_offered=True,
                created_in=task.created_in,
                outstanding_keys=frozenset(asked.key for asked in task.requests.values()),
            ),
        )
        outcome = run_pass(call, run)
        if isinstance(run.fault, RETRYABLE):
            raise run.fault
        this_round = Round(call, run)
        match outcome:
            case Done() | Failed():
                return PassResult(run, outcome, conclusion_of(final_reply(this_round, outcome)))
            case NeedsInput() if (key := key_asked_too_often(task, run)) is not None:
                return PassResult(run, outcome, conclusion_of(too_many_answers(this_round, key)))
            case NeedsInput(channel="page"):
                from mcp_roundtrip.server import task_parking  # most clients show questions

                if task_parking.can_park(this_round, task, outcome):
                    move = partial(task_parking.park, this_round, task, history.call, outcome)
                    return PassResult(run, outcome, move=move)
        return PassResult(run, outcome)

    def _restore_call(self, tool: Tool, task: Task, task_call: TaskCall) -> FeatureCall:
        """Restore the call that became the task."""
        meta = RequestMeta(PROTOCOL_VERSION, task.capabilities, task_call.client, trace=task_call.trace)
        context = RequestContext(
            ValidRequest(task.task_id, task_call.method, {}, meta),
            None if task_call.principal is None else Principal(*task_call.principal),
            self.ports,
            self.invocation,
        )
        params = CallParams(task_call.arguments, {}, None)
        options = replace(self.tool_methods.options, server_info=task_call.server_info)
        return FeatureCall(tool, tool.name, params, context, options)


def final_reply(this_round: Round, outcome: Done | Failed) -> Reply:
    """Return the reply of a pass that ended its task, with a result that the table can hold."""
    call = this_round.call
    observer = call.context.ports.observer
    if isinstance(outcome, Failed) and isinstance(outcome.error, ItemTooLarge):
        observer.record_failure("task_too_large", outcome.error, tool=call.feature.name)
        return this_round.reply(ProtocolError(INTERNAL_ERROR, str(outcome.error)), None)
    reply = this_round.reply_for(outcome)
    if isinstance(reply.body, ProtocolError):
        return reply
    if payload_size(compact_json(reply.body)) <= MAX_RESPONSE_BYTES - RESPONSE_OVERHEAD:
        return reply
    error = ResultTooLarge(MAX_RESPONSE_BYTES)
    observer.record_failure("result_too_large", error, tool=call.feature.name)
    return this_round.error_reply(ToolError(str(error)), "result_too_large")


def too_many_answers(this_round: Round, key: str) -> Reply:
    """Return the reply that ends a call whose question had no accepted answer."""
    text = (
        f"This call was ended: its question {key!r} was asked {MAX_ASKED} times, and no answer was accepted."
        f"{describe_open_questions(this_round.run)} A new call starts from the beginning."
    )
    return this_round.error_reply(CallAborted(text), "too_many_answers")


def conclusion_of(reply: Reply) -> Completed | TaskError:
    """Return the result of the task, or the JSON-RPC error in which it ends."""
    body = reply.body
    if not isinstance(body, ProtocolError):
        return Completed(body)
    error = {"code": body.code, "message": body.message}
    return TaskError(error if body.data is None else {**error, "data": dict(body.data)})
