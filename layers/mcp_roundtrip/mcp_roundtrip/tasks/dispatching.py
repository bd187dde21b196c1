"""Dispatch the worker of a task, and dispatch it again if that invocation seems to be lost."""

from __future__ import annotations

from typing import Any, Final, Protocol

from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.model import TASK, Task, WorkState
from mcp_roundtrip.tasks.store import TaskStore

REDISPATCH_MS: Final = 15_000
MAX_REDISPATCH_MS: Final = 300_000
"""The pause before a worker is dispatched again. It doubles from the first up to the second value."""


class Dispatcher(Protocol):
    """Invokes workers. If an invocation is lost, the next poll dispatches again.

    `worker` is an address that this dispatcher understands. The methods raise StoreError if they fail.
    """

    def dispatch(self, worker: str, pk: str) -> None:
        """Invoke `worker` for the task asynchronously."""
        ...

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        """Have `wake_ups.wake` called with `pk` and `at_ms`, at that time (epoch milliseconds) or earlier.

        A dispatcher without delays does nothing; the next poll dispatches.
        """
        ...


def redispatch_if_stale(store: TaskStore, dispatcher: Dispatcher, task: Task, now_ms: int) -> None:
    """Dispatch a worker again if the task waits for one and the last dispatch is old.

    `now_ms` is in epoch milliseconds. Raises StoreError.
    """
    if task.work_state is WorkState.DONE or not task.worker:
        return
    dispatched_before_ms = now_ms - pause_ms(task)
    change = transitions.record_dispatch(dispatched_before_ms=dispatched_before_ms, now_ms=now_ms)
    if not change.condition.holds(_dispatch_attributes(task)):
        return
    if store.update(task.pk, TASK, change) is not None:
        dispatcher.dispatch(task.worker, task.pk)


def redispatch_or_undo(store: TaskStore, dispatcher: Dispatcher, task: Task, now_ms: int) -> None:
    """Dispatch as `redispatch_if_stale` does. A dispatch that fails leaves no pause.

    Otherwise the wake-up that is delivered again would end without a dispatch. Raises StoreError.
    """
    try:
        redispatch_if_stale(store, dispatcher, task, now_ms)
    except StoreError:
        earlier = (task.dispatched_at_ms, task.dispatch_count)
        store.update(task.pk, TASK, transitions.undo_dispatch(*earlier, now_ms=now_ms))
        raise


def pause_ms(task: Task) -> int:
    """Return the milliseconds between the last dispatch and the next one."""
    return min(REDISPATCH_MS << min(task.dispatch_count, 10), MAX_REDISPATCH_MS)


def _dispatch_attributes(task: Task) -> dict[str, Any]:
    """Return the attributes in the condition of `record_dispatch`.

    The condition rarely holds, so most polls write nothing.
    """
    item = {
        "st": task.status.value,
        "rn": task.work_state.value,
        "kick": task.dispatched_at_ms,
        "lu": task.lease_until_ms,
        "wake": task.wake_at_ms,
    }
    return {name: value for name, value in item.items() if value is not None}
