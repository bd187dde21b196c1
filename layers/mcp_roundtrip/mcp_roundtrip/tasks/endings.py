"""How a task ends that no worker finishes: its time to live is over, or its workers were lost repeatedly."""

from __future__ import annotations

from typing import Final

from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store import TaskStore

MAX_ATTEMPTS: Final = 10
"""A task is abandoned after this number of workers in a row without progress."""

EXPIRED_MESSAGE: Final = "The task did not finish within its time to live."
ABANDONED_MESSAGE: Final = "The task was abandoned because its workers failed repeatedly."


def expire_if_overdue(store: TaskStore, task: Task, now_ms: int) -> Task | None:
    """End a task after its time to live; return None if it is not over, or if the task has ended.

    Raises StoreError.
    """
    if now_ms < task.deadline_ms:
        return None
    error = {"code": INTERNAL_ERROR, "message": EXPIRED_MESSAGE}
    change = transitions.expire(now_ms=now_ms, error=error, message=EXPIRED_MESSAGE)
    item = store.update(task.pk, TASK, change)
    return None if item is None else Task.from_item(item)


def abandon_if_exhausted(store: TaskStore, task: Task, now_ms: int) -> Task | None:
    """End a task with too many lost workers; return None for any other task. Raises StoreError."""
    if task.attempts < MAX_ATTEMPTS or task.is_terminal:
        return None
    error = {"code": INTERNAL_ERROR, "message": ABANDONED_MESSAGE}
    change = transitions.abandon(
        now_ms=now_ms, max_attempts=MAX_ATTEMPTS, error=error, message=ABANDONED_MESSAGE
    )
    item = store.update(task.pk, TASK, change)
    return None if item is None else Task.from_item(item)
