"""One pass over the tool of a stored call, for a `tasks.worker.Worker`: of a task, or of a parked call.

A task that waits for answers on the page ends, and its call is parked: few clients show the `statusMessage`
of a task, where the link would be, but they show its result. The result is the reply of a parked call: it
names the link, and asks the model to call the tool again. That call continues from the task's journal, as a
new task where the tool calls `ctx.run_as_task`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.journal import keys_of_steps
from mcp_roundtrip.engine.notifications import NotificationBuffer
from mcp_roundtrip.engine.outcomes import Checkpointed, Done, Failed, NeedsInput, Outcome, TaskRequested
from mcp_roundtrip.engine.pass_state import TASK_TTL_MS, TaskOptions
from mcp_roundtrip.engine.question_channels import Channels, ClientInputs
from mcp_roundtrip.errors import Drift, ProtocolError, ToolError
from mcp_roundtrip.internal_errors import CallAborted, ItemTooLarge, ResultTooLarge, StoreError
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from mcp_roundtrip.protocol.http import MAX_RESPONSE_BYTES, RESPONSE_OVERHEAD, payload_size
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.protocol.request_validation import RequestMeta, ValidRequest
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.server import question_presenters, task_carrier
from mcp_roundtrip.server.call_errors import ClientError, describe_open_questions, describe_repeated
from mcp_roundtrip.server.lambda_invocation import Invocation
from mcp_roundtrip.server.pass_and_reply import Round, new_run, parked_channels, run_pass, task_channels
from mcp_roundtrip.server.request_types import CallParams, FeatureCall, Reply, RequestContext
from mcp_roundtrip.server.task_carrier import parked_caller
from mcp_roundtrip.server.tools import ServerTools, Tool
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.lease import TaskRecorder
from mcp_roundtrip.tasks.model import Task, WorkState
from mcp_roundtrip.tasks.open_task_limit import TooManyOpenTasks
from mcp_roundtrip.tasks.parked_calls import ParkedCalls
from mcp_roundtrip.tasks.question_page_tokens import PAGE
from mcp_roundtrip.tasks.store_interface import Change
from mcp_roundtrip.tasks.worker import (
    MAX_ASKED,
    RETRYABLE,
    PassResult,
    UnfinishedPass,
    completion,
    key_asked_too_often,
)

MAX_STATUS_MESSAGE: Final = 4_096
"""Characters of a `statusMessage`: every poll reads it."""


def _run_with_history(
    call: FeatureCall,
    history: TaskHistory,
    find_channels: Callable[[], Channels],
    options: TaskOptions,
    notifications: NotificationBuffer | None = None,
) -> tuple[Round, Outcome]:
    """Run one pass. Raises one of `RETRYABLE` for a fault that a later pass may not have."""
    inputs = ClientInputs(
        history.responses,
        is_resumed=True,
        find_channels=find_channels,
        response_channels=history.response_channels,
    )
    run = new_run(call, history.journal, inputs, options, notifications)
    outcome = run_pass(call, run)
    if isinstance(run.fault, RETRYABLE):
        raise run.fault
    return Round(call, run), outcome


def _final_reply(this_round: Round, task: Task, outcome: Outcome) -> Reply | None:
    """Return the reply of a pass that ends its call, with a result that the table can hold."""
    if isinstance(outcome, NeedsInput) and (key := key_asked_too_often(task, this_round.run)) is not None:
        text = (
            f"This call was ended: its question {key!r} was asked {MAX_ASKED} times, and no answer was "
            f"accepted.{describe_open_questions(this_round.run)} A new call starts from the beginning."
        )
        return this_round.error_reply(ClientError(CallAborted(text), "too_many_answers"))
    if not isinstance(outcome, (Done, Failed)):
        return None
    if isinstance(outcome, Failed) and isinstance(outcome.error, ItemTooLarge):
        this_round.call.record_failure("task_too_large", outcome.error)
        text = f"{outcome.error}.{this_round.repeated}"
        return this_round.reply(ProtocolError(INTERNAL_ERROR, text), None)
    reply = this_round.reply_for(outcome)
    if isinstance(reply.body, ProtocolError):
        return reply
    if payload_size(compact_json(reply.body)) <= MAX_RESPONSE_BYTES - RESPONSE_OVERHEAD:
        return reply
    error = ResultTooLarge(MAX_RESPONSE_BYTES)
    this_round.call.record_failure("result_too_large", error)
    return this_round.error_reply(ClientError(ToolError(f"{error}{reply.repeated}"), "result_too_large"))


# -- parked calls -------------------------------------------------------------------------------------------


class ParkedPass(Struct):
    """Runs a pass in the request that continues a parked call, and keeps its reply.

    `refusal`: the reply of a pass that could not create its task, and has not ended the call.
    `waits_for_url`: the pass waits for what the user does at a URL that they agreed to open.
    """

    call: FeatureCall
    reply: Reply | None = None
    refusal: Reply | None = None
    round: Round | None = None
    waits_for_url: bool = False

    def __call__(self, task: Task, history: TaskHistory, recorder: TaskRecorder) -> PassResult:
        call = self.call
        options = TaskOptions(
            recorder, may_start=call.may_start_task, is_offered=call.feature.task is not None, is_parked=True
        )
        this_round, outcome = _run_with_history(call, history, partial(parked_channels, call), options)
        self.round, self.reply = this_round, _final_reply(this_round, task, outcome)
        if self.reply is not None:
            return self.reply.body
        match outcome:
            case TaskRequested(ttl_ms=ttl_ms):
                return self._become_task(this_round, task, outcome, ttl_ms)
            case Checkpointed() if call.may_start_task:
                return self._become_task(this_round, task, outcome, TASK_TTL_MS)
            case NeedsInput(journal=journal) if this_round.run.requests.waits_for_urls_only:
                # The user is not asked again: the next pass finds out whether they have finished.
                self.waits_for_url = True
                outcome = Checkpointed(journal)
        return UnfinishedPass(this_round.run, outcome)

    def _become_task(
        self, this_round: Round, task: Task, outcome: TaskRequested | Checkpointed, ttl_ms: int
    ) -> PassResult:
        """End the parked call as a task. If no task can be created now, the next call tries it again."""
        try:
            self.reply = task_carrier.create(this_round, outcome.journal, ttl_ms, task)
        except (ItemTooLarge, TooManyOpenTasks, StoreError) as error:
            refusal = task_carrier.not_stored(this_round, error)
            if not isinstance(error, ItemTooLarge):
                self.refusal = refusal
                return UnfinishedPass(this_round.run, Checkpointed(outcome.journal))
            self.reply = refusal
        return self.reply.body


# -- tasks --------------------------------------------------------------------------------------------------


class StatusMessages(NotificationBuffer):
    """Turns progress into the `statusMessage` of the task; log messages are dropped (SEP-2663)."""

    write: Callable[[str], None] = lambda message: None

    def progress(self, done: float, total: float | None, message: str | None, *, is_new: bool) -> None:
        super().progress(done, total, message, is_new=False)  # refuses what cannot be sent
        text = message or (f"{done:g}" if total is None else f"{done:g} of {total:g}")
        if is_new:
            self.write(text[:MAX_STATUS_MESSAGE].encode("utf-8", "replace").decode())


class TaskRunner(Struct, frozen=True):
    """Runs a pass over the tool of a task, in a worker."""

    server_tools: ServerTools
    ports: Ports
    invocation: Invocation

    def __call__(self, task: Task, history: TaskHistory, recorder: TaskRecorder) -> PassResult:
        tool = self.server_tools.tools.get(history.call.name)
        if tool is None:
            self.invocation.operation.begin_task(task, history.call)
            drift = Drift(history.call.name, "the tool does not exist any more")
            self.ports.observer.record_failure("drift", drift)
            repeated = describe_repeated(keys_of_steps(history.journal.entries))
            return ProtocolError(INTERNAL_ERROR, f"The tool of this task does not exist any more.{repeated}")
        call = self._restore_call(tool, task, history.call)
        if task.attempts > 1:  # a process that is killed writes no line that names its task
            call.record("task_retried", attempt=task.attempts)
        principal = call.context.principal
        self.ports.observer.redact(
            lambda: (history.call.arguments, history.call.client, principal and principal.subject)
        )
        options = TaskOptions(
            recorder=recorder,
            is_offered=True,
            created_in=task.created_in,
            outstanding_keys=frozenset(asked.key for asked in task.requests.values()),
        )
        messages = StatusMessages(write=recorder.report_status)
        find_channels = partial(task_channels, call)
        this_round, outcome = _run_with_history(call, history, find_channels, options, messages)
        if (reply := _final_reply(this_round, task, outcome)) is not None:
            return reply.body
        match outcome:
            case NeedsInput(channel="page") if task.dialect == "extension" and call.plan.parks:
                if _park(this_round, task, history.call, outcome, recorder):
                    return None
                outcome = Checkpointed(outcome.journal)  # the task has changed, and a further pass follows
        return UnfinishedPass(this_round.run, outcome)

    def _restore_call(self, tool: Tool, task: Task, task_call: TaskCall) -> FeatureCall:
        """Return the call that became the task. The id of its request is that of the task."""
        meta = RequestMeta(PROTOCOL_VERSION, task.capabilities, task_call.client, trace=task_call.trace)
        context = RequestContext(
            ValidRequest(task.task_id, task_call.method, {}, meta),
            None if task_call.principal is None else Principal(*task_call.principal),
            self.ports,
            self.invocation,
            replace(self.server_tools.options, server_info=task_call.server_info),
        )
        return FeatureCall(tool, tool.name, CallParams(task_call.arguments, {}, None), context)


def _park(
    this_round: Round, task: Task, task_call: TaskCall, outcome: NeedsInput, recorder: TaskRecorder
) -> bool:
    """Park the call, and end the task with the reply that names the link, in one transaction.

    Returns False if the task has changed, or the lease was lost. Raises ItemTooLarge for an entry.
    """
    call = this_round.call
    calls = ParkedCalls.of(call.context.ports.tasks())
    if not recorder.lease.may_continue():
        return False

    def end(parked: Task) -> Change:
        if parked.requests and parked.work_state is WorkState.AWAITING:
            reply = question_presenters.ask_on_page(this_round, parked)
        else:
            reply = question_presenters.wait(this_round, parked)
        assert isinstance(reply.body, dict)
        return completion(calls.tasks, task, recorder.lease.owner, reply.body, version=task.version)

    parked = calls.move(parked_caller(call), task, task_call, outcome.journal, outcome.requests, end)
    if parked is not None:
        call.record("call_parked", asked=sorted(outcome.requests), channel=PAGE)
    return parked is not None
