"""Make a call a task, or continue it in rounds if no place for its task can be reserved.

A refusal of a call that has run steps would lose them. A tool with task="optional" works without a task, too:
such a call continues as if its client had not declared the extension. Its next round may become a task.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.server.channels import may_continue_with_state
from mcp_roundtrip.server.model import FeatureCall, Reply
from mcp_roundtrip.server.reserved_place import reserve_place
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.task_methods import task_table_unavailable
from mcp_roundtrip.server.unaskable import lost_effects
from mcp_roundtrip.tasks.limit import TooManyOpenTasks


def start_task(
    this_round: Round, journal: Journal, ttl_ms: int, continue_in_rounds: Callable[[FeatureCall], Reply]
) -> Reply:
    """Build the reply of a call that becomes a task, or continue one that may not.

    `continue_in_rounds` takes the call, which stays in rounds, and returns its reply.
    """
    call = this_round.call
    keeps_steps = lost_effects(journal) and may_continue_with_state(call)
    if call.feature.task == "required" or call.reservation.place is not None or not keeps_steps:
        return this_round.start_task(journal, ttl_ms)
    is_reserved = False
    try:
        reserve_place(call)
        is_reserved = True
    except TooManyOpenTasks as error:
        observer = call.context.ports.observer
        observer.record("task_postponed", **call.log_identity, limit=error.limit)
    except StoreError as error:
        task_table_unavailable(error, call.context)
    if is_reserved:  # not in the handler, whose exception would be the context of those of the tool
        return this_round.start_task(journal, ttl_ms)
    return continue_in_rounds(replace(call, stays_in_rounds=True))
