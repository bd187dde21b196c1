"""The carrier "task": the call continues in a task, which a worker runs.

It also says for `parked_carrier` who the caller is, which call it is, and why a call could not be stored.

A flow becomes one task, also if the client sends a round again, because its response was lost or with other
answers. The flow continues in the task, and these answers do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.auth.callers import caller_binding
from mcp_roundtrip.engine.journal import Journal, keys_of_steps
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.errors import StateRejected, ToolError
from mcp_roundtrip.internal_errors import CallAborted, ItemTooLarge, Refusal, StoreError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import TASKS
from mcp_roundtrip.protocol.jsonrpc import RETRY_AFTER_S, TOO_MANY_REQUESTS
from mcp_roundtrip.protocol.strict_json import canonical_json, compact_json
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.call_errors import ClientError, describe_repeated, internal_error, invalid_state
from mcp_roundtrip.server.pass_and_reply import Round
from mcp_roundtrip.server.request_types import FeatureCall, Reply
from mcp_roundtrip.server.task_methods import task_members
from mcp_roundtrip.tasks.call_and_journal_items import Flow, TaskCall
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.open_task_limit import Owner, TooManyOpenTasks
from mcp_roundtrip.tasks.parked_calls import PARKED, ParkedCaller

_ANONYMOUS: Final = canonical_json(["anonymous"]).decode()
"""What stands for the principal of an anonymous caller in the identity of a call."""

MAX_CAPABILITIES: Final = 16_000
"""The most bytes of JSON that a client's capabilities have in a task. Each poll reads them, and each renewal
of the lease writes them again, at the price of their size."""


def session_caller(call: FeatureCall) -> str | None:
    nonce = call.context.request.meta.session_nonce
    return None if nonce is None else canonical_json(["session", nonce]).decode()


def parked_caller(call: FeatureCall) -> ParkedCaller:
    """Return the caller of a call.

    A call of an anonymous caller belongs to everyone who has its code, which is its random id, and knows its
    tool and arguments. Its session finds it without the code.
    """
    principal = caller_binding(call.context.principal)
    identity = replace(call.binding, principal=principal or _ANONYMOUS).identity()
    assert identity is not None
    if (dialect := call.context.ports.tasks().dialect) != "extension":
        # Another call: its client could not read the task that a call of the extension becomes.
        identity = canonical_json([identity, dialect]).decode()
    if principal is not None:
        return ParkedCaller(principal, principal, identity)
    binding, code = canonical_json(["call", identity]).decode(), call.params.continuation_code
    return ParkedCaller(binding, None, identity, session_caller(call), code)


def task_call_of(call: FeatureCall) -> TaskCall:
    meta, principal = call.context.request.meta, call.context.principal
    return TaskCall(
        call.context.request.method,
        call.feature.name,
        call.params.arguments,
        None if principal is None else astuple(principal),
        meta.info,
        call.server_info,
        meta.trace,
    )


def _owner(call: FeatureCall, flow_id: str) -> Owner:
    return Owner(caller_binding(call.context.principal), session_caller(call), flow_id)


def require_room(call: FeatureCall, run: Run) -> None:
    """Raise ProtocolError if no task can be created for the call now."""
    try:
        call.context.ports.tasks().limit.check(_owner(call, run.history.journal.flow_id))
    except TooManyOpenTasks as error:
        raise _too_many_open_tasks(call, run, error) from None


def not_stored(this_round: Round, error: ItemTooLarge | TooManyOpenTasks | StoreError) -> Reply:
    """Build the reply of a call that could not be stored after a pass, and log the error."""
    call = this_round.call
    if isinstance(error, ItemTooLarge):
        return this_round.error_reply(_too_large(this_round, error))
    if isinstance(error, StoreError):
        call.context.table_unavailable(error, **call.log_identity)
        is_parked = this_round.run.task.recorder is not None  # the table has its steps
        return this_round.error_reply(internal_error(call, "" if is_parked else this_round.repeated))
    refused = _too_many_open_tasks(call, this_round.run, error)
    if call.context.takes_rounds:
        return this_round.error_reply(ClientError(refused))
    # Many clients of earlier versions show no text of a JSON-RPC error, and a model reads no data.
    failure = ClientError(CallAborted(refused.message), "too_many_open_tasks")
    return replace(this_round.error_reply(failure), reason=refused.reason)


def _too_large(this_round: Round, error: ItemTooLarge) -> ClientError:
    """Return the error of a call that does not fit into the table.

    Only what the author can change is logged as an error: the alarm for errors ends deployments in progress,
    so a client must not be able to trigger it.
    """
    call, meta, journal = this_round.call, this_round.call.context.request.meta, this_round.run.to_journal()
    steps = [entry.value for entry in journal.entries if entry.kind.is_effect]
    answers = [entry.value for entry in journal.entries if not entry.kind.is_effect]
    sizes = {
        "steps": max(map(_size, steps), default=0),
        "answers": max(map(_size, [*answers, *journal.unused_responses.values()]), default=0),
        "arguments": _size(call.params.arguments),
        "meta": _size([meta.info, meta.capabilities, meta.trace]),
    }
    largest = max(sizes, key=lambda name: sizes[name])
    if error.limit == MAX_CAPABILITIES:  # other parts may be larger
        largest = "meta"
    elif largest == "steps" or sizes[largest] < error.size // 3:
        call.record_failure("task_too_large", error)
        return internal_error(call, this_round.repeated)
    named = "members of _meta" if largest == "meta" else largest
    text = f"The {named} are too large for a task: at most about {error.limit} bytes of JSON."
    return ClientError(ToolError(text + this_round.repeated), f"{largest}_too_large")


def _size(value: Any) -> int:
    return len(compact_json(value))


def _too_many_open_tasks(call: FeatureCall, run: Run, error: TooManyOpenTasks) -> Refusal:
    """Log the limit, and return the error, which names the steps that have run in vain."""
    call.record("task_limit_reached", limit=error.limit)
    is_stored = run.task.recorder is not None  # a parked call keeps its steps
    again = "make this call again" if call.params.request_state is None else "send this request again"
    text = (
        f"The caller has as many open tasks and waiting calls as the server allows: {error.limit}. "
        f"Wait until one of them has ended, answer one, or cancel a task with tasks/cancel, and {again}."
    )
    if not is_stored:
        text += describe_repeated(keys_of_steps(run.history.new_entries()))
    data = {"maxOpenTasks": error.limit, "retryAfterMs": 1_000 * RETRY_AFTER_S}
    return Refusal("task_limit_reached", TOO_MANY_REQUESTS, text, data, http_status=429)


def flow_of(this_round: Round) -> Flow | None:
    """Return the flow of which the client has a state; None in the first round."""
    call, opened = this_round.call, this_round.opened
    if opened is None:
        return None
    flow_id = this_round.run.history.journal.flow_id
    return Flow(caller_binding(call.context.principal), flow_id, opened.flow_ends_at)


# -- load ---------------------------------------------------------------------------------------------------


def is_parked(stored: Task) -> bool:
    """Return whether a flow continues as a parked call. One that has become a task ends with its result."""
    has_become_task = isinstance(stored.result, Mapping) and stored.result.get("resultType") == "task"
    return stored.dialect == PARKED and not has_become_task


def reply_again(this_round: Round, task: Task) -> Reply:
    """Return the CreateTaskResult that the first request got. Raises ProtocolError for the other dialect."""
    call = this_round.call
    if call.params.is_in_app:  # a view cannot follow a task
        text = f"{call.name} continues as a task, with other answers. What was sent now was not stored."
        return this_round.error_reply(ClientError(CallAborted(text), "answers_late"))
    if task.dialect != call.context.ports.tasks().dialect:
        raise invalid_state(call, StateRejected("other_dialect"))
    require_capabilities(call.context, [TASKS], f"The task of this call of {call.name!r}")
    return _reply(this_round, task, "task_repeated")


# -- save ---------------------------------------------------------------------------------------------------


def create(this_round: Round, journal: Journal, ttl_ms: int, parked: Task | None = None) -> Reply:
    """Store a task that continues the call, or the `parked` one. Raises as `Tasks.create`, and StoreError."""
    call, ports = this_round.call, this_round.call.context.ports
    capabilities = call.context.request.meta.capabilities
    if (size := _size(capabilities)) > MAX_CAPABILITIES:
        raise ItemTooLarge(size, MAX_CAPABILITIES)
    new = partial(
        ports.tasks().create,
        task_call_of(call),
        _owner(call, journal.flow_id),
        journal,
        worker=ports.settings.worker_address(),
        capabilities=capabilities,
        ttl_ms=ttl_ms,
        flow=flow_of(this_round),
        continued=parked,
    )
    task: Task = call.context.invocation.spans.create_task(call, journal, new)
    return _reply(this_round, task, "task")


def _reply(this_round: Round, task: Task, outcome: str) -> Reply:
    members = task_members(task.as_created)
    body = results.result("task", this_round.call.server_info, **members)
    return this_round.reply(body, outcome, task=members["taskId"], task_ttl_ms=members["ttlMs"])
