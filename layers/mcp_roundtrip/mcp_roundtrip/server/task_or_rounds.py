"""Make a call a task, or continue it in rounds if no place for its task can be reserved.

A refusal of a call that has run steps would lose them. A tool with task="optional" works without a task, too:
such a call continues as if its client had not declared the extension. Its next round may become a task.
But the call of a concurrent round may have become the task that has the last place.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from mcp_roundtrip.internal_errors import FlowIsStored, StoreError
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.server.channels import plan_of
from mcp_roundtrip.server.model import FeatureCall, Reply
from mcp_roundtrip.server.reserved_place import can_reserve_place, has_run_steps
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.task_methods import task_table_unavailable
from mcp_roundtrip.tasks.call_index import is_stored


def start_task(
    this_round: Round, journal: Journal, ttl_ms: int, continue_in_rounds: Callable[[FeatureCall], Reply]
) -> Reply:
    """Build the reply of a call that becomes a task, or continue one that may not.

    `continue_in_rounds` takes the call, which stays in rounds, and returns its reply. Raises FlowIsStored,
    and ProtocolError if the table is not available.
    """
    call = this_round.call
    keeps_steps = has_run_steps(call, journal) and plan_of(call).state != "fails"
    if call.feature.task == "required" or not keeps_steps or can_reserve_place(call):
        return this_round.start_task(journal, ttl_ms)
    try:
        if is_stored(call.context.ports.tasks().tasks.store, this_round.flow):
            raise FlowIsStored
    except StoreError as error:
        raise task_table_unavailable(error, call.context) from error
    return continue_in_rounds(replace(call, stays_in_rounds=True))
