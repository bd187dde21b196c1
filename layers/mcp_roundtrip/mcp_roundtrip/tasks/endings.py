"""How a task ends that no worker finishes: its time to live is over, or its workers were lost repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.changes import Change
from mcp_roundtrip.tasks.model import TASK, Status, Task, WorkState
from mcp_roundtrip.tasks.store import TaskStore

MAX_ATTEMPTS: Final = 10
"""A task is abandoned after this number of workers in a row without progress."""

EndReason = Literal["expired", "abandoned"]

OnEnding = Callable[[Task, EndReason], Callable[[bool], None]]
"""Is called before a task is ended here, and prevents that by an error. What it returns is called afterwards.

It takes whether the task has ended for this reason, by this process or by another one at the same time.
"""

EXPIRED_MESSAGE: Final = "The task did not finish within its time to live."
ABANDONED_MESSAGE: Final = "The task was abandoned because its workers failed repeatedly."

_MESSAGES: Final[Mapping[EndReason, str]] = {"expired": EXPIRED_MESSAGE, "abandoned": ABANDONED_MESSAGE}


def expire_if_overdue(
    store: TaskStore, task: Task, now_ms: int, on_ending: OnEnding | None = None
) -> Task | None:
    """End a task after its time to live; return None if it is not over, or if the task has ended.

    Raises StoreError, and what `on_ending` raises.
    """
    if now_ms < task.deadline_ms or task.is_terminal:
        return None
    error = {"code": INTERNAL_ERROR, "message": EXPIRED_MESSAGE}
    change = transitions.expire(now_ms=now_ms, error=error, message=EXPIRED_MESSAGE)
    return _end(store, task, change, on_ending, "expired")


def abandon_if_exhausted(
    store: TaskStore, task: Task, now_ms: int, on_ending: OnEnding | None = None
) -> Task | None:
    """End a task with too many lost workers; return None for any other task.

    Raises StoreError, and what `on_ending` raises.
    """
    if task.attempts < MAX_ATTEMPTS or task.is_terminal or not _is_lost(task, now_ms):
        return None
    error = {"code": INTERNAL_ERROR, "message": ABANDONED_MESSAGE}
    change = transitions.abandon(
        now_ms=now_ms, max_attempts=MAX_ATTEMPTS, error=error, message=ABANDONED_MESSAGE
    )
    return _end(store, task, change, on_ending, "abandoned")


def _is_lost(task: Task, now_ms: int) -> bool:
    """Return whether no worker has the task, or one whose lease is over, as the change requires."""
    until_ms = task.lease_until_ms
    return task.work_state is WorkState.READY or (until_ms is not None and until_ms < now_ms)


def _has_ended_so(task: Task, reason: EndReason) -> bool:
    return task.status is Status.FAILED and task.message == _MESSAGES[reason]


def _end(
    store: TaskStore, task: Task, change: Change, on_ending: OnEnding | None, reason: EndReason
) -> Task | None:
    on_ended = None if on_ending is None else on_ending(task, reason)
    item = store.update(task.pk, TASK, change)
    if on_ended is not None:
        present = store.get(task.pk, TASK) if item is None else item
        on_ended(present is not None and _has_ended_so(Task.from_item(present), reason))
    return None if item is None else Task.from_item(item)
