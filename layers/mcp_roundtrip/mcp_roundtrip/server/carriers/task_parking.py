"""End a task that waits for answers on the page, and park its call.

Few clients show the `statusMessage` of a task, so the user may not see a link there. Clients show the
result of a task. It is the reply of a parked call: it names the link, and asks the model to call the tool
again. That call continues from the task's journal, as a new task where the tool calls `ctx.run_as_task`.
"""

from __future__ import annotations

from mcp_roundtrip.engine.outcome import NeedsInput
from mcp_roundtrip.server.carriers.stored import parked_caller
from mcp_roundtrip.server.presenters import page, standing
from mcp_roundtrip.server.presenters.repetition import Repetition
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.tasks.changes import Change
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.model import Task, WorkState
from mcp_roundtrip.tasks.parked import ParkedCalls
from mcp_roundtrip.tasks.question_page_links import PAGE
from mcp_roundtrip.tasks.worker import EndWith


def can_park(this_round: Round, task: Task) -> bool:
    """Return whether an equal call of the task's client would find the call if it were parked."""
    return task.dialect == "extension" and this_round.call.plan.parks


def park(this_round: Round, task: Task, task_call: TaskCall, outcome: NeedsInput, end_with: EndWith) -> bool:
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
            reply = standing.wait(this_round, parked)
        assert isinstance(reply.body, dict)
        return end_with(reply.body)

    parked = calls.move(parked_caller(call), task, task_call, outcome.journal, outcome.requests, end)
    if parked is not None:
        observer, asked = call.context.ports.observer, sorted(outcome.requests)
        observer.record("call_parked", **call.log_identity, asked=asked, channel=PAGE, task=task.task_id)
    return parked is not None
