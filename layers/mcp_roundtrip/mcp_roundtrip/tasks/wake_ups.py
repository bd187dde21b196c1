"""Dispatch the worker of a task when a message of a queue asks for it."""

from __future__ import annotations

from mcp_roundtrip.tasks.dispatching import pause_ms, redispatch_or_undo
from mcp_roundtrip.tasks.endings import expire_if_overdue
from mcp_roundtrip.tasks.model import WorkState
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.stored_items import read_task


def wake(tasks: Tasks, pk: str, at_ms: int) -> None:
    """Dispatch the worker of a task that can be claimed at `at_ms`, as a poll at that time would.

    Of a poll and a wake-up, only one dispatches. A wake-up that is early is sent again. A wake-up that finds
    the task leased is sent again for the end of the lease. Every other change of the task ends the wake-up,
    because the change has a wake-up or a poll of its own. Raises StoreError.
    """
    task, now_ms = read_task(tasks.store, pk), tasks.clock_ms()
    if task is None:
        return
    due_at_ms = task.claimable_at_ms
    if task.work_state is WorkState.LEASED and due_at_ms is not None:  # its worker may be lost
        if at_ms <= task.dispatched_at_ms and due_at_ms > now_ms:
            return  # a poll has dispatched this worker; otherwise each sleep would leave a wake-up
        due_at_ms = max(due_at_ms, task.dispatched_at_ms + pause_ms(task) + 1)
    elif due_at_ms != at_ms:
        return
    if task.deadline_ms <= now_ms:
        expire_if_overdue(tasks.store, task, now_ms, tasks.on_ending)
    elif due_at_ms > now_ms:
        tasks.dispatcher.dispatch_at(task.worker, pk, due_at_ms)
    else:
        redispatch_or_undo(tasks.store, tasks.dispatcher, task, now_ms)


def redispatch(tasks: Tasks, pk: str) -> None:
    """Dispatch the worker of a task as a poll would. Raises StoreError."""
    task, now_ms = read_task(tasks.store, pk), tasks.clock_ms()
    if task is None:
        return
    if task.deadline_ms <= now_ms:
        expire_if_overdue(tasks.store, task, now_ms, tasks.on_ending)
    else:
        redispatch_or_undo(tasks.store, tasks.dispatcher, task, now_ms)
