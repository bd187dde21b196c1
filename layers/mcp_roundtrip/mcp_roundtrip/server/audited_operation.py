"""An audited operation: a request or a pass of a worker, and what its record says.

Its `begun` line is stored before code of a feature runs, its `ended` line once the outcome is known. The
outcome is that of the log, whose events `auditing` hands to the operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcp_roundtrip.auth.principal import Principal
from mcp_roundtrip.deployment.ports import AuditLog, Ports
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.observing.audit import (
    Answer,
    AskedQuestion,
    AuditRecord,
    action_of,
    answers_of,
    client_members,
    steps_of,
)
from mcp_roundtrip.protocol.constants import FEATURE_KINDS, RESOURCES_READ
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.server.audit_vocabulary import (
    ASKING,
    CHANNELS,
    FORWARDING_FAILED,
    QUESTION_PAGE,
    REASONS,
    REFUSALS,
    TAGGED,
    TASK_CHANGES,
    TASK_LIMIT_REACHED,
    client_trace_id,
    task_outcome,
    xray_trace_id_of,
)
from mcp_roundtrip.server.invocation import internal_error
from mcp_roundtrip.server.model import FeatureCall, RequestContext
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.model import Task, task_partition_key

if TYPE_CHECKING:
    from mcp_roundtrip.engine.run import Run  # a front door has no engine


class AuditedOperation:
    """An operation under way, and what is known about it."""

    def __init__(self, log: AuditLog, ports: Ports, correlation_id: str, *, is_worker: bool = False) -> None:
        self._log = log
        self._ports = ports
        self._began_ms = ports.clock_ms()
        self._has_begun = self._is_dropped = False
        self._method: str | None = None
        self._principal: Principal | None = None
        self._runs: list[Run] = []
        self._channels: dict[str, str] = {}
        self._asked_keys: Sequence[str] = ()
        self._asked: Sequence[AskedQuestion] = ()
        self._answered: Sequence[Answer] = ()
        self._fields: dict[str, Any] = {}
        self._end_event: str | None = None
        self._is_view = False
        self._line = AuditRecord(
            ports.random_bytes(16).hex(),
            "begun",
            0,
            log.source,
            correlation_id=correlation_id,
            xray_trace_id=xray_trace_id_of(log.trace_header()),
            is_worker=is_worker,
        )

    # -- what is known ------------------------------------------------------------------------------

    def admit(self, context: RequestContext) -> None:
        """Note who sends which request. Raises ProtocolError if a change of a task cannot be recorded."""
        self.note(context)
        if self._method in TASK_CHANGES:
            self._begin()

    def note(self, context: RequestContext) -> None:
        """Note who sends which request, and store nothing."""
        self._take_context(context)
        uri = context.params.get("uri")
        is_read = self._method == RESOURCES_READ  # other methods ignore the URI, which the client chooses
        self._is_view = is_read and isinstance(uri, str) and uri.startswith("ui://")
        if self._method in TASK_CHANGES:
            task_id = context.params.get("taskId")
            is_task_id = isinstance(task_id, str) and task_partition_key("", None, task_id) is not None
            self._set(task=task_id if is_task_id else None)

    def find(
        self, item: Any, required: Sequence[str], granted: frozenset[str], options: ServerOptions
    ) -> None:
        """Note the feature of the request, the scopes that it requires, and those that satisfy them."""
        used = (
            scope
            for scope in sorted(granted)
            if any(options.satisfies(frozenset({scope}), [each]) for each in required)
        )
        self._set(
            feature_kind=FEATURE_KINDS.get(self._method or ""),
            feature=getattr(item, "name", None),
            scopes_required=tuple(required),
            scopes_used=tuple(used),
        )

    def add_fields(self, fields: Mapping[str, Any]) -> None:
        """Add the fields of a hook."""
        self._fields |= fields

    def begin(self, call: FeatureCall, flow: str) -> None:
        """Store the `begun` line, unless it is stored. Raises ProtocolError (503) if that fails."""
        self._take_context(call.context)
        self._set(feature_kind=call.feature.kind, feature=call.feature.name, flow=flow or None)
        self._begin()

    def begin_pass(self, call: FeatureCall, run: Run) -> None:
        """Note a pass, and store the `begun` line before it. Raises ProtocolError (503) if that fails."""
        self._runs.append(run)
        if call.params.is_in_app:
            self._channels |= dict.fromkeys(run.inputs.responses, "app")
        self._channels |= run.inputs.response_channels
        self._channels |= dict.fromkeys(run.inputs.model_responses, "model")
        if self._line.is_worker:
            self._set(task=str(call.context.request.id))
        self.begin(call, run.history.journal.flow_id)

    def begin_task(self, task: Task, call: TaskCall | None) -> None:
        """Store the `begun` line of an operation on a task, with the caller of the call that became the task.

        Raises ProtocolError if that fails.
        """
        self._set(task=task.task_id, flow=task.flow_id or None)
        if call is not None:
            self._principal = None if call.principal is None else Principal(*call.principal)
            self._set(feature_kind="tool", feature=call.name, client=client_members(call.client))
            self._set(method=self._line.method or call.method)
        self._begin()

    def begin_answers(self, tool: str, task: Task, responses: Mapping[str, Any]) -> None:
        """Store the `begun` line of a form of the question page. Raises ProtocolError if that fails."""
        self._method = QUESTION_PAGE
        flow = task.flow_id or None
        task_id = task.task_id if task.worker else None  # a parked call has no worker, and is no task
        self._set(method=QUESTION_PAGE, feature_kind="tool", feature=tool, task=task_id, flow=flow)
        keys = {wire_key: asked.key for wire_key, asked in task.requests.items()}
        self._answered = [
            Answer(keys.get(wire_key, wire_key), action_of(raw), "page")
            for wire_key, raw in responses.items()
        ]
        self._begin()

    def observe(self, event: str, fields: Mapping[str, Any]) -> None:
        """Take the outcome from an event of the log."""
        if event == TAGGED:
            self._set(**{name: fields[name] for name in ("flow", "trace_id") if name in fields})
        if event in REASONS:
            self._set(reason=fields.get("reason") or event)
        if event in ASKING and "asked" in fields:
            self._asked_keys = fields["asked"]
        if event == "request_forwarded":
            self._is_dropped = True  # the owner has the record
        if event == "lease_lost":
            self._set(outcome=event)
        if event not in ("request_completed", "request_refused"):
            return
        self._end_event = event
        reason = self._line.reason
        # No step has run above the limit of tasks. An owner that did not answer may have run some.
        has_run = reason == FORWARDING_FAILED or (self._has_begun and reason != TASK_LIMIT_REACHED)
        refused = "error" if has_run else "refused"
        self._set(
            outcome=refused if event == "request_refused" else fields.get("outcome", "complete"),
            round=fields.get("round"),
            task=fields.get("task") or self._line.task,
            task_ttl_ms=fields.get("task_ttl_ms"),
            code=fields.get("code"),
            status=fields.get("status"),
        )

    def _take_context(self, context: RequestContext) -> None:
        self._method, self._principal = context.request.method, context.principal
        meta = context.request.meta
        self._set(
            method=self._method,
            client=client_members(meta.info),
            protocol_version=None if self._line.is_worker else meta.protocol_version,
            trace_id=self._line.trace_id or client_trace_id(meta.trace),
        )

    def _set(self, **members: Any) -> None:
        self._line = replace(self._line, **members)

    # -- the lines ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._has_begun:
            return
        try:
            self._identify()
            self._write("begun", self._line)
        except Exception as error:  # fail closed, also for a fault of this library
            self._is_dropped = True
            self._log_failure(error, "begun")
            refusal = internal_error(self._line.correlation_id or "")
            raise ProtocolError(INTERNAL_ERROR, str(refusal), http_status=503) from error
        self._has_begun = True

    def end(self) -> None:
        """Store the `ended` line if the operation is one that is recorded. A failure is logged only."""
        if self._is_dropped or not (self._has_begun or self._is_recorded):
            return
        try:
            self._identify()
            self._write("ended", self._final_line())
        except Exception as error:  # the feature has had its effects, so its answer leaves
            self._log_failure(error, "ended")

    @property
    def _is_recorded(self) -> bool:
        """Whether a request that ran no code of a feature has a record."""
        if self._end_event == "request_refused" and self._line.status in REFUSALS:
            return True
        if self._method not in FEATURE_KINDS.keys() | TASK_CHANGES or self._end_event is None:
            return False
        return self._end_event == "request_refused" or not self._is_view

    def end_pass(self, task: Task | None, error: Exception | None = None) -> None:
        """Store the `ended` line of a worker's pass, which left the task like this or raised the error."""
        if error is not None:
            self._set(outcome="worker_failed", reason=getattr(error, "reason", None))
        elif task is not None and self._line.outcome is None:
            self._set(outcome=task_outcome(task))
            asked = task.requests.values()
            self._asked = [AskedQuestion(each.key, each.request["method"], each.channel) for each in asked]
        self.end()

    def _final_line(self) -> AuditRecord:
        entries = {entry.key: entry for run in self._runs for entry in run.history.new_entries()}
        is_answered = self._line.outcome == f"{QUESTION_PAGE}_answered"
        return replace(
            self._line,
            phase="ended",
            asked=self._asked or self._questions(),
            answered=answers_of(entries.values(), self._channels) or (self._answered if is_answered else ()),
            steps=steps_of(entries.values()),
            fields=self._fields,
            duration_ms=round(self._ports.clock_ms() - self._began_ms, 1),
        )

    def _questions(self) -> list[AskedQuestion]:
        """Return the questions that the reply asks.

        Without a pass, the reply repeats questions of a parked call, which are always elicitations.
        """
        requests = {key: request for run in self._runs for key, request in run.requests.items()}
        channel = CHANNELS.get(self._line.outcome or "", "page")
        return [
            AskedQuestion(key, requests[key].method, requests[key].channel)
            if key in requests
            else AskedQuestion(key, "elicitation/create", channel)
            for key in self._asked_keys
        ]

    def _identify(self) -> None:
        if self._principal is not None and self._line.principal is None:
            self._set(principal=self._log.identify(self._principal))

    def _write(self, phase: str, line: AuditRecord) -> None:
        now_ms = int(self._ports.clock() * 1000)
        self._log.write(now_ms, replace(line, phase=phase, time_ms=now_ms).to_line())

    def _log_failure(self, error: Exception, phase: str) -> None:
        record, outcome = self._line.record, self._line.outcome
        self._ports.observer.record_failure(
            "audit_failed", error, phase=phase, record=record, outcome=outcome
        )
