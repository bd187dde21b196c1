"""Audit the requests of an endpoint, the passes of workers, and the ends of tasks that no worker ends.

Each is an operation with a record of its own. Its `begun` line is stored before code of a feature runs, its
`ended` line once the outcome is known. What happens in between is noted: who calls what. The outcome is that
of the response, or of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import Refusal
from mcp_roundtrip.observing.audit_records import (
    action_of,
    answers_of,
    audit_line,
    client_members,
    hashed_caller,
    plain_caller,
)
from mcp_roundtrip.protocol.constants import (
    FEATURE_KINDS,
    RESOURCES_READ,
    TASKS_CANCEL,
    TASKS_INPUT_RESPONSE,
    TASKS_UPDATE,
)
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.protocol.request_validation import trace_context
from mcp_roundtrip.protocol.results import iso_timestamp
from mcp_roundtrip.server.lambda_invocation import Invocation, Operation, internal_error
from mcp_roundtrip.server.options import META_PARKED_CALL
from mcp_roundtrip.server.request_types import FeatureCall, Reply, RequestContext
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall, read_call
from mcp_roundtrip.tasks.lost_workers import EndReason
from mcp_roundtrip.tasks.model import Status, Task, WorkState, task_partition_key

TASK_CHANGES: Final = frozenset({TASKS_UPDATE, TASKS_CANCEL, TASKS_INPUT_RESPONSE})
"""The methods that change a task. Polls are not recorded."""

QUESTION_PAGE: Final = "question_page"
"""The `method` of a form that was posted on the question page."""

TASK_END: Final = "task_end"
"""The `method` of the end of a task that no worker ends."""

SUPERSEDED: Final = "superseded"
"""Its outcome if the task ended otherwise meanwhile, or a worker has taken it."""

REFUSALS: Final = frozenset({401, 403, 429})
"""The statuses whose refusals are recorded for every method."""


class AuditedOperation(Operation):
    """An operation under way. What begins it raises ProtocolError (503) if the line cannot be stored.

    `members`: those of the record that are known from the start.
    """

    def __init__(self, ports: Ports, correlation_id: str, **members: Any) -> None:
        assert ports.audit is not None
        self._log = ports.audit
        self._ports = ports
        self._began_ms = ports.clock_ms()
        self._has_begun = self._is_dropped = self._is_view = False
        self._principal: Principal | None = None
        self._passes: list[tuple[FeatureCall, Run]] = []
        self._answers: Sequence[Mapping[str, str]] = ()
        header = self._log.trace_header()
        self._record: dict[str, Any] = {
            "record": ports.random_bytes(16).hex(),
            "phase": "begun",
            **self._log.source,
            "correlation_id": correlation_id,
            "xray_trace_id": header.split(";")[0].removeprefix("Root=") if header else None,
            "fields": {},
            **members,
        }

    # -- what is known ------------------------------------------------------------------------------

    def tag(self, **fields: Any) -> None:
        """Note what all log lines of the request have: its flow, its trace, and the fields of hooks."""
        self._record |= {name: fields[name] for name in ("flow", "trace_id") if name in fields}
        self._record["fields"] |= fields.get("fields", {})

    def note_request(self, context: RequestContext, *, is_admitted: bool = True) -> None:
        """Note who sends which request, and begin if it changes a task and is admitted."""
        self._note_caller(context)
        method, uri = context.request.method, context.params.get("uri")
        # Other methods ignore a URI, which the client chooses.
        self._is_view = method == RESOURCES_READ and isinstance(uri, str) and uri.startswith("ui://")
        if method in TASK_CHANGES:
            task_id = context.params.get("taskId")
            is_task_id = isinstance(task_id, str) and task_partition_key("", None, task_id) is not None
            self._record["task"] = task_id if is_task_id else None
            if is_admitted:
                self._begin()

    def note_feature(self, item: Any, required: Sequence[str], context: RequestContext) -> None:
        """Note the feature of the request, the scopes that it requires, and those that satisfy them."""
        self._record.update(
            feature_kind=FEATURE_KINDS.get(self._record.get("method") or ""),
            feature=getattr(item, "name", None),
            scopes_required=tuple(required),
            scopes_used=tuple(
                scope
                for scope in sorted(context.scopes)
                if any(context.options.hierarchy.satisfies({scope}, [each]) for each in required)
            ),
        )

    def _note_caller(self, context: RequestContext) -> None:
        self._principal = context.principal
        request, record = context.request, self._record
        trace = trace_context(request.meta.trace) if request.meta.trace else None
        self._record.update(
            method=request.method,
            client=client_members(request.meta.info),
            protocol_version=None if record.get("worker") else request.meta.protocol_version,
            trace_id=record.get("trace_id") or (None if trace is None else trace.trace_id),
        )

    # -- the first line -----------------------------------------------------------------------------

    def begin(self, call: FeatureCall, flow: str, run: Run | None = None) -> None:
        """Store the `begun` line, unless it is stored, and note the run of a pass that begins."""
        self._note_caller(call.context)
        self._record.update(feature_kind=call.feature.kind, feature=call.feature.name, flow=flow)
        if self._record.get("worker"):
            self._record["task"] = str(call.context.request.id)
        if run is not None:
            self._passes.append((call, run))
        self._begin()

    def begin_task(self, task: Task, call: TaskCall | None) -> None:
        """Store the `begun` line of an operation on a task, with the caller of the call that became it."""
        self._record.update(task=task.task_id, flow=task.flow_id)
        if call is not None:
            self._principal = None if call.principal is None else Principal(*call.principal)
            method = self._record.get("method") or call.method
            client = client_members(call.client)
            self._record.update(method=method, feature_kind="tool", feature=call.name, client=client)
        self._begin()

    def begin_answers(self, tool: str, task: Task, responses: Mapping[str, Any]) -> None:
        task_id = task.task_id if task.worker else None  # a parked call has no worker, and is no task
        self._record.update(
            method=QUESTION_PAGE, feature_kind="tool", feature=tool, task=task_id, flow=task.flow_id
        )
        keys = {wire_key: asked.key for wire_key, asked in task.requests.items()}
        self._answers = [
            {"key": keys.get(wire_key, wire_key), "action": action_of(raw), "via": "page"}
            for wire_key, raw in responses.items()
        ]
        self._begin()

    def _begin(self) -> None:
        if self._has_begun:
            return
        try:
            self._write()
        except Exception as error:  # fail closed, also for a fault of this library
            self._is_dropped = True
            self._log_failure(error)
            refusal = internal_error(self._record["correlation_id"])
            raise ProtocolError(INTERNAL_ERROR, str(refusal), http_status=503) from error
        self._has_begun = True

    # -- the last line ------------------------------------------------------------------------------

    def end_request(self, event: str, fields: Mapping[str, Any], reply: Reply | None = None) -> None:
        """Store the `ended` line of a request if it is one that is recorded."""
        reply, is_refused = reply or Reply({}), event == "request_refused"
        if not (self._has_begun or self._is_recorded(fields.get("status"), is_refused=is_refused)):
            return
        reason = reply.body.reason if isinstance(reply.body, Refusal) else reply.reason
        outcome = fields.get("outcome", "complete")
        if is_refused:
            # Above the limit of tasks, `steps` has all. An owner that did not answer may have run some steps.
            may_have_run = self._has_begun and reason != "task_limit_reached"
            outcome = "error" if may_have_run or reason == "forwarding_failed" else "refused"
        elif outcome != f"{QUESTION_PAGE}_answered":
            self._answers = ()
        self.end(
            reply.asked,
            outcome=outcome,
            reason=reason,
            round=fields.get("round"),
            task=fields.get("task") or self._record.get("task"),
            task_ttl_ms=fields.get("task_ttl_ms"),
            code=fields.get("code"),
            status=fields.get("status"),
        )

    def _is_recorded(self, status: int | None, *, is_refused: bool) -> bool:
        """Whether a request that ran no code of a feature has a record."""
        if is_refused and status in REFUSALS:
            return True
        has_record = self._record.get("method") in FEATURE_KINDS.keys() | TASK_CHANGES
        return has_record and (is_refused or not self._is_view)

    def end_pass(self, left: Task | Exception | None) -> None:
        """Store the `ended` line of a worker's pass, which left the task like this or raised the error."""
        if left is None or not self._has_begun:
            return
        if isinstance(left, Exception):
            self.end(outcome="worker_failed", reason=getattr(left, "reason", None))
            return
        outcome = _task_outcome(left)
        asked = {each.key: (each.request["method"], each.channel) for each in left.requests.values()}
        if outcome == "lease_lost":
            asked = {}  # the questions are those of an earlier pass
        if META_PARKED_CALL in (left.result or {}).get("_meta", {}):  # the parked call asks, not the task
            _, run = self._passes[-1]
            asked = {key: (each.method, each.channel) for key, each in sorted(run.requests.items())}
        self.end(asked, outcome=outcome)

    def end(self, asked: Mapping[str, tuple[str, str]] = MappingProxyType({}), **members: Any) -> None:
        """Store the `ended` line. A failure is logged only. `asked`: see `Reply`."""
        if self._is_dropped:
            return
        try:
            entries = {entry.key: entry for _, run in self._passes for entry in run.history.new_entries()}
            steps = dict.fromkeys(key for _, run in self._passes for key in run.history.finished_steps())
            self._record.update(
                phase="ended",
                asked=[{"key": key, "method": method, "via": via} for key, (method, via) in asked.items()],
                answered=answers_of(entries.values(), self._answer_channels()) or self._answers,
                steps=list(steps),
                duration_ms=round(self._ports.clock_ms() - self._began_ms, 1),
                **members,
            )
            self._write()
        except Exception as error:  # the feature has had its effects, so its answer leaves
            self._log_failure(error)

    def _answer_channels(self) -> dict[str, str]:
        channels = dict[str, str]()
        for call, run in self._passes:
            if call.params.is_in_app:
                channels |= dict.fromkeys(run.inputs.responses, "app")
            channels |= run.inputs.response_channels
            channels |= dict.fromkeys(run.inputs.model_responses, "model")
        return channels

    # -- both lines ---------------------------------------------------------------------------------

    def _write(self) -> None:
        if self._principal is not None:
            key, principal = self._log.hash_key, self._principal
            identity = plain_caller(principal) if key is None else hashed_caller(principal, key())
            self._record["principal"] = identity
        now_ms = int(self._ports.clock() * 1000)
        self._log.write(now_ms, audit_line({**self._record, "time": iso_timestamp(now_ms)}))

    def _log_failure(self, error: Exception) -> None:
        fields = {name: self._record.get(name) for name in ("phase", "record", "outcome")}
        self._ports.observer.record_failure("audit_failed", error, **fields)


def _task_outcome(task: Task) -> str:
    """Return how a pass left its task. A pass releases the lease, unless another worker has taken it."""
    if task.work_state is WorkState.LEASED:
        return "lease_lost"
    if task.status is not Status.COMPLETED:
        return task.status.value
    return "tool_error" if isinstance(task.result, Mapping) and task.result.get("isError") else "complete"


# -- requests, passes of workers, and ends of tasks ---------------------------------------------------------


def with_audit(ports: Ports, invocation: Invocation) -> tuple[Ports, Invocation]:
    operation = AuditedOperation(ports, invocation.correlation_id)
    return with_audited_ends(ports, invocation.correlation_id), replace(invocation, operation=operation)


def work_with_audit(
    work: Callable[[Invocation], Task | None], ports: Ports, invocation: Invocation
) -> Task | None:
    """Run a pass of a worker, and record its operation. Raises as `work`."""
    operation = AuditedOperation(ports, invocation.correlation_id, worker=True)
    try:
        task = work(replace(invocation, operation=operation))
    except Exception as error:
        operation.end_pass(error)
        raise
    operation.end_pass(task)
    return task


def with_audited_ends(ports: Ports, correlation_id: str) -> Ports:
    """Return ports that record the end of each task that no worker ends (see `tasks.lost_workers.OnEnding`).

    The process that notices the end writes the record: a poll, a wake-up or a worker. All processes that
    notice it at the same time write the same record id and outcome. If the `begun` line cannot be stored, the
    task does not end then.
    """

    def begin(task: Task, reason: EndReason) -> Callable[[bool], None]:
        # A task that a worker took, and was not abandoned, may be abandoned later. A task expires once.
        version = task.version if reason == "abandoned" else 0
        named = f"mcp-rs/v1/audit-task-end:{task.pk}:{reason}:{version}"
        record = sha256(named.encode()).hexdigest()[:32]
        operation = AuditedOperation(ports, correlation_id, record=record, method=TASK_END)
        operation.begin_task(task, read_call(ports.tasks().store, task.pk))
        return lambda has_ended: operation.end(outcome=reason if has_ended else SUPERSEDED)

    return replace(ports, tasks=lambda: replace(ports.tasks(), on_ending=begin))
