"""The methods, statuses and log events that audited operations know, and the words of their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.protocol.constants import TASKS_CANCEL, TASKS_INPUT_RESPONSE, TASKS_UPDATE
from mcp_roundtrip.protocol.trace import TraceContext
from mcp_roundtrip.tasks.model import Status, Task

TASK_CHANGES: Final = frozenset({TASKS_UPDATE, TASKS_CANCEL, TASKS_INPUT_RESPONSE})
"""The methods that change a task. Polls are not recorded."""

TASK_END: Final = "task_end"
"""The `method` of the end of a task that no worker ends."""

QUESTION_PAGE: Final = "question_page"
"""The `method` of a form that was posted on the question page."""

REFUSALS: Final = frozenset({401, 403, 429})
"""The statuses whose refusals are recorded for every method."""

TASK_LIMIT_REACHED: Final = "task_limit_reached"
FORWARDING_FAILED: Final = "forwarding_failed"

REASONS: Final = frozenset(
    {"state_refused", "unauthorized", "insufficient_scope", TASK_LIMIT_REACHED, FORWARDING_FAILED}
)
"""The events that say why a request was refused."""

CHANNELS: Final[Mapping[str, str]] = {"asked_through_model": "model", "asked_in_app": "app"}
"""The outcomes of replies that repeat questions, with their channels. Others have a link to the page."""

TAGGED: Final = "tagged"
"""What `observe` is given for fields of all following lines of the log. It is no event of the log."""

ASKING: Final = frozenset({"request_completed", "url_elicitation_required", "call_parked"})


def task_outcome(task: Task) -> str:
    """Return how a pass left its task."""
    if task.status is not Status.COMPLETED:
        return task.status.value
    return "tool_error" if isinstance(task.result, Mapping) and task.result.get("isError") else "complete"


def client_trace_id(trace: Mapping[str, Any]) -> str | None:
    """Return the id of the trace that the client sent."""
    return TraceContext.from_meta(trace).trace_id if trace else None


def xray_trace_id_of(header: str | None) -> str | None:
    """Return the id in an X-Ray trace header."""
    return header.split(";")[0].removeprefix("Root=") if header else None
