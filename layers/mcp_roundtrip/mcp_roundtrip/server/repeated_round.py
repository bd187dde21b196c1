"""Reply to a round whose flow continues in the task table, because an earlier request has stored it.

The client sends a round again if its response was lost, or sends an earlier one with other answers. A tool
that is not a task runs again in such a round. A flow that has become a task, or that was parked, continues
there, and the answers in the repetition do not count.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp_roundtrip.engine.channels import Channels
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import CallAborted, StoreError
from mcp_roundtrip.protocol.capabilities import TASKS
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.errors import invalid_state
from mcp_roundtrip.server.model import Reply
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.task_methods import task_members, task_table_unavailable
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.parked import DIALECT


def reply_if_stored(this_round: Round, channels: Channels) -> Reply | None:
    """Return the reply of the task or the parked call as which the flow continues; None if there is none.

    That of a task is the CreateTaskResult which the first request got: the client reads the status later.
    Raises ProtocolError if the table is not available, MissingClientCapability if the client does not declare
    tasks in this round, and ProtocolError for a state of a flow that is a task of the other dialect.
    """
    call = this_round.call
    flow, tasks = this_round.flow, call.context.ports.tasks().tasks
    assert flow is not None
    call.context.ports.observer.tag(flow=flow.id)
    try:
        task = tasks.find(flow)
    except StoreError as error:
        raise task_table_unavailable(error, call.context) from error
    if task is None:
        return None
    if task.dialect == DIALECT and not _has_become_task(task):
        from mcp_roundtrip.server.parked_calls import resume_task  # few calls are parked

        return resume_task(this_round, task, channels)
    if call.params.is_in_app:  # a view cannot follow a task
        text = f"{call.name} continues as a task, with other answers. What was sent now was not stored."
        return this_round.error_reply(CallAborted(text), "answers_late")
    if task.dialect != tasks.dialect:
        raise invalid_state(call, StateRejected("other_dialect"))
    require_capabilities(call.context, [TASKS], f"The task of this call of {call.name!r}")
    return this_round.reply_with_task(task_members(task.as_created), "task_repeated")


def _has_become_task(parked: Task) -> bool:
    """Return whether a parked call has become a task. `find` returns that task if it has this dialect."""
    return isinstance(parked.result, Mapping) and parked.result.get("resultType") == "task"
