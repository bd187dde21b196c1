"""How a call continues that runs out of time."""

from __future__ import annotations

from typing import Literal

from mcp_roundtrip.server.channels import may_park
from mcp_roundtrip.server.client_behavior import breaks_on_state_only_rounds
from mcp_roundtrip.server.model import FeatureCall

Way = Literal["state", "app", "task", "parked"]


def way_to_continue(call: FeatureCall) -> Way | None:
    """Return how the call continues; None if it cannot.

    "state": the client sends the state of an InputRequiredResult without questions, which clients are known
    to break on. "app": the question app calls again. "task": the call becomes a task. "parked": the model
    calls again, and the call continues from the task table.
    """
    request = call.context.request
    if call.params.is_in_app:
        return "app"
    if call.follows_state and not breaks_on_state_only_rounds(request.meta.info):
        return "state"
    if call.may_start_task:
        return "task"
    return "parked" if may_park(call) else None
