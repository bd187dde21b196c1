"""How a call continues that runs out of time."""

from __future__ import annotations

from typing import Literal

from mcp_roundtrip.server.channels import continues_with_state, may_continue_with_state, may_park
from mcp_roundtrip.server.model import FeatureCall

Way = Literal["state", "app", "task", "parked"]


def way_to_continue(call: FeatureCall) -> Way | None:
    """Return how the call continues; None if it cannot.

    "state": the client sends the state of an InputRequiredResult without questions, which clients are known
    to break on; one that answers no input requests gets such a result only as the last resort. "app": the
    question app calls again. "task": the call becomes a task. "parked": the model calls again, and the call
    continues from the task table.
    """
    if call.params.is_in_app:
        return "app"
    if continues_with_state(call):
        return "state"
    if call.may_start_task:
        return "task"
    if call.stays_in_rounds and may_continue_with_state(call):
        return "state"  # the caller has no place for a parked call either
    if may_park(call):
        return "parked"
    return "state" if may_continue_with_state(call) else None
