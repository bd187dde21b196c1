"""Runs the tool of a task for a worker: one pass over its function, and the conclusion once it has ended.

A task that waits for answers on the page ends, and its call is parked. Few clients show the `statusMessage`
of a task, so the user may not see a link there. Clients show the result of a task. It is the reply of a
parked call: it names the link, and asks the model to call the tool again. That call continues from the task's
journal, as a new task where the tool calls `ctx.run_as_task`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.auth.principal import Principal
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.channels import ClientInputs
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.replay import Done, Failed, NeedsInput
from mcp_roundtrip.engine.run import TaskOptions
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.protocol.request_validation import RequestMeta, ValidRequest
from mcp_roundtrip.server.carriers.ending import conclusion_of, final_reply, too_many_answers
from mcp_roundtrip.server.carriers.stored import parked_caller
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.model import CallParams, FeatureCall, RequestContext
from mcp_roundtrip.server.presenters import page
from mcp_roundtrip.server.presenters.page import Repetition
from mcp_roundtrip.server.round import Round, new_run, run_pass
from mcp_roundtrip.server.tools import Tool, ToolMethods
from mcp_roundtrip.tasks.items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.model import Task, WorkState
from mcp_roundtrip.tasks.parked import ParkedCalls
from mcp_roundtrip.tasks.question_page_links import PAGE
from mcp_roundtrip.tasks.recorder import TaskRecorder, key_asked_too_often
from mcp_roundtrip.tasks.store import Change
from mcp_roundtrip.tasks.worker import RETRYABLE, EndWith, OpenPass, PassResult, TaskError

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
            return TaskError(error)
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
                return conclusion_of(final_reply(this_round, outcome))
            case NeedsInput() if (key := key_asked_too_often(task, run)) is not None:
                return conclusion_of(too_many_answers(this_round, key))
            case NeedsInput(channel="page"):
                if _can_park(this_round, task):
                    move = partial(_park, this_round, task, history.call, outcome)
                    return OpenPass(run, outcome, move)
        return OpenPass(run, outcome)

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


def _can_park(this_round: Round, task: Task) -> bool:
    """Return whether an equal call of the task's client would find the call if it were parked."""
    return task.dialect == "extension" and this_round.call.plan.parks


def _park(this_round: Round, task: Task, task_call: TaskCall, outcome: NeedsInput, end_with: EndWith) -> bool:
    """Park the call, and end the task with the reply that names the link, in one transaction.

    Returns False if the task has changed. Raises StoreError, and ItemTooLarge for an entry.
    """
    call = this_round.call
    calls = ParkedCalls.of(call.context.ports.tasks().tasks)

    def end(parked: Task) -> Change:
        if parked.requests and parked.work_state is WorkState.AWAITING:
            requests = {key: asked.request for key, asked in parked.requests.items()}
            reply = page.ask(this_round, requests, Repetition.of(call, parked))
        else:
            reply = page.wait(this_round, parked)
        assert isinstance(reply.body, dict)
        return end_with(reply.body)

    parked = calls.move(parked_caller(call), task, task_call, outcome.journal, outcome.requests, end)
    if parked is not None:
        observer, asked = call.context.ports.observer, sorted(outcome.requests)
        observer.record("call_parked", **call.log_identity, asked=asked, channel=PAGE, task=task.task_id)
    return parked is not None
