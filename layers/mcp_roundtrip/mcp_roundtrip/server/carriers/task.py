"""The carrier "task": the call continues in a task, which a worker runs.

A flow becomes one task, also if its rounds are sent again: the client sends a round again if its response was
lost, or sends an earlier one with other answers. A tool that is not a task runs again in such a round. A flow
that has become a task continues there, and the answers in the repetition do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from mcp_roundtrip.auth.principal import caller_binding
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import CallAborted, ItemTooLarge, StoreError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import TASKS
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.carriers.stored import creation_error, session_caller, task_call_of
from mcp_roundtrip.server.errors import ClientError, invalid_state
from mcp_roundtrip.server.model import Reply
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.task_methods import task_members
from mcp_roundtrip.tasks.limit import TooManyOpenTasks
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.parked import DIALECT

# -- load ---------------------------------------------------------------------------------------------------


def find_stored(this_round: Round) -> Task | None:
    """Return the task or the parked call as which the flow continues; None if there is none.

    Raises ProtocolError if the table is not available.
    """
    call, flow = this_round.call, this_round.flow
    assert flow is not None
    call.context.tag(flow=flow.id)
    try:
        return call.context.ports.tasks().tasks.find(flow)
    except StoreError as error:
        raise call.context.table_unavailable(error) from error


def is_parked(stored: Task) -> bool:
    """Return whether a flow continues as a parked call. One that has become a task ends with its result."""
    has_become_task = isinstance(stored.result, Mapping) and stored.result.get("resultType") == "task"
    return stored.dialect == DIALECT and not has_become_task


def reply_again(this_round: Round, task: Task) -> Reply:
    """Return the CreateTaskResult which the first request got: the client reads the status later.

    Raises MissingClientCapability if the client does not declare tasks in this round, and ProtocolError for a
    state of a flow that is a task of the other dialect.
    """
    call = this_round.call
    if call.params.is_in_app:  # a view cannot follow a task
        text = f"{call.name} continues as a task, with other answers. What was sent now was not stored."
        return this_round.error_reply(ClientError(CallAborted(text), "answers_late"))
    if task.dialect != call.context.ports.tasks().tasks.dialect:
        raise invalid_state(call, StateRejected("other_dialect"))
    require_capabilities(call.context, [TASKS], f"The task of this call of {call.name!r}")
    return _reply(this_round, task, "task_repeated")


# -- save ---------------------------------------------------------------------------------------------------


def save(this_round: Round, journal: Journal, ttl_ms: int) -> Reply:
    """Store a task that continues the call, and build the CreateTaskResult. Raises FlowIsStored."""
    try:
        return create(this_round, journal, ttl_ms)
    except (ItemTooLarge, TooManyOpenTasks, StoreError) as error:
        return this_round.error_reply(creation_error(this_round.call, this_round.run, error))


def create(this_round: Round, journal: Journal, ttl_ms: int, parked: Task | None = None) -> Reply:
    """Do the same. Raises FlowIsStored, ItemTooLarge, TooManyOpenTasks and StoreError.

    `parked` is the parked call that becomes the task. It becomes one task, also after a crash.
    """
    return _reply(this_round, _store(this_round, journal, ttl_ms, parked), "task")


def _reply(this_round: Round, task: Task, outcome: str) -> Reply:
    members = task_members(task.as_created)
    body = results.task(this_round.call.server_info, members)
    return this_round.reply(body, outcome, task=members["taskId"], task_ttl_ms=members["ttlMs"])


def _store(this_round: Round, journal: Journal, ttl_ms: int, parked: Task | None) -> Task:
    call = this_round.call
    create = partial(_create, this_round, journal, ttl_ms, parked)
    if (tracer := call.context.ports.tracer) is None:
        return create()
    from mcp_roundtrip.server.spans import traced_creation  # off by default

    return traced_creation(tracer, call, journal, create)


def _create(
    this_round: Round, journal: Journal, ttl_ms: int, parked: Task | None, created_in: str | None = None
) -> Task:
    call, port = this_round.call, this_round.call.context.ports.tasks()
    return port.tasks.create(
        task_call_of(call),
        caller_binding(call.context.principal),
        journal,
        worker=port.worker(),
        capabilities=call.context.request.meta.capabilities,
        ttl_ms=ttl_ms,
        flow=this_round.flow,
        continued=parked,
        created_in=created_in,
        session=session_caller(call),
    )
