"""Runs the tool of a task for a worker: one pass over its function, and the conclusion once it has ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.auth.principal import Principal
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.host import TaskOptions
from mcp_roundtrip.engine.inputs import ClientInputs
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcome import Done, Failed, NeedsInput
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.protocol.request_validation import RequestMeta, ValidRequest
from mcp_roundtrip.server.carriers.ending import conclusion_of, final_reply, too_many_answers
from mcp_roundtrip.server.execution import new_run, run_pass
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.model import CallParams, FeatureCall, RequestContext
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.tools import Tool, ToolMethods
from mcp_roundtrip.tasks.issued_requests import key_asked_too_often
from mcp_roundtrip.tasks.items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.recorder import TaskRecorder
from mcp_roundtrip.tasks.worker import RETRYABLE, PassResult, TaskError

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
    """Runs passes over the tools of a server."""

    tool_methods: ToolMethods
    ports: Ports
    invocation: Invocation

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
        inputs = ClientInputs(
            history.responses,
            is_resumed=True,
            find_channels=call.task_channels,
            response_channels=history.response_channels,
        )
        options = TaskOptions(
            recorder=recorder,
            is_offered=True,
            created_in=task.created_in,
            outstanding_keys=frozenset(asked.key for asked in task.requests.values()),
        )
        run = new_run(call, history.journal, inputs, options, StatusMessages(write=recorder.report_status))
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
                from mcp_roundtrip.server.carriers import task_parking  # most clients show questions

                if task_parking.can_park(this_round, task):
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
