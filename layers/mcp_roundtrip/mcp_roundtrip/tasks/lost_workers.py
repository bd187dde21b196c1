"""What is due for a task that has no worker: the task ends, or a worker is dispatched again.

A poll looks after its task, and so do a wake-up of the queue and a worker that cannot claim the task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol

from msgspec import Struct

from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.call_and_journal_items import read_task
from mcp_roundtrip.tasks.model import TASK, Task, WorkState
from mcp_roundtrip.tasks.store_interface import Change, TaskStore

REDISPATCH_MS: Final = 15_000
MAX_REDISPATCH_MS: Final = 300_000
"""The pause before a worker is dispatched again. It doubles from the first up to the second value."""

EndReason = Literal["expired", "abandoned"]
"""The time to live of a task is over, or its workers were lost repeatedly."""

OnEnding = Callable[[Task, EndReason], Callable[[bool], None]]
"""Called before a task is ended here; an error prevents that. The returned function is called afterwards,
with whether the task has ended for this reason, in this process or in another one at the same time."""

_EXPIRED: Final = {
    "code": INTERNAL_ERROR,
    "message": "The task did not finish within its time to live.",
}
_ABANDONED: Final = {
    "code": INTERNAL_ERROR,
    "message": "The task was abandoned because its workers failed repeatedly.",
}


class Dispatcher(Protocol):
    """Invokes workers: `aws.lambda_and_sqs.AwsDispatcher`. The next poll repeats a lost invocation.

    `worker` is an address that this dispatcher understands. The methods raise StoreError if they fail.
    """

    def dispatch(self, worker: str, pk: str) -> None:
        """Invoke `worker` for the task asynchronously."""

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        """Have `wake` called at `at_ms` (epoch milliseconds) or earlier. Without delays, it does nothing."""

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None:
        """Hide a received message for so many seconds from now on; do nothing without queues."""


class Watchdog(Struct, frozen=True):
    """Looks after the tasks of a store. The methods raise StoreError, and what `on_ending` raises.

    `clock_ms` returns epoch milliseconds. `on_abandoned` takes each abandoned task.
    """

    store: TaskStore
    dispatcher: Dispatcher
    clock_ms: Callable[[], int]
    on_abandoned: Callable[[Task], None] = lambda task: None
    on_ending: OnEnding | None = None

    def end_if_due(self, task: Task) -> Task | None:
        """End a task after its time to live, or after too many lost workers; return it if it has ended."""
        now_ms = self.clock_ms()
        if task.is_terminal:
            return None
        if task.deadline_ms <= now_ms:
            return self._end(task, "expired", transitions.expire(now_ms=now_ms, error=_EXPIRED))
        if task.attempts < transitions.MAX_ATTEMPTS or not _is_lost(task, now_ms):
            return None
        return self._end(task, "abandoned", transitions.abandon(now_ms=now_ms, error=_ABANDONED))

    def _end(self, task: Task, reason: EndReason, change: Change) -> Task | None:
        on_ended = None if self.on_ending is None else self.on_ending(task, reason)
        item = self.store.update(task.pk, TASK, change)
        present = read_task(self.store, task.pk) if item is None else Task.from_item(item)
        if on_ended is not None:
            ended = (change.set["st"], change.set["msg"])
            on_ended(present is not None and (present.status, present.message) == ended)
        if item is not None and reason == "abandoned":
            self.on_abandoned(task)
        return present if present is not None and present.is_terminal else None

    def redispatch_if_stale(self, task: Task, now_ms: int) -> None:
        """Dispatch a worker again if the task waits for one and the last dispatch is old."""
        due_at_ms, before_ms = task.claimable_at_ms, now_ms - _pause_ms(task)
        is_due = due_at_ms is not None and due_at_ms <= now_ms
        if not task.worker or not is_due or task.dispatched_at_ms >= before_ms:
            return  # most polls write nothing
        change = transitions.record_dispatch(dispatched_before_ms=before_ms, now_ms=now_ms)
        if self.store.update(task.pk, TASK, change) is not None:
            self.dispatcher.dispatch(task.worker, task.pk)

    def wake(self, pk: str, at_ms: int) -> None:
        """Dispatch the worker of a task that can be claimed at `at_ms`, as a poll at that time would.

        Of a poll and a wake-up, only one dispatches. A wake-up that is early is sent again. A wake-up that
        finds the task leased is sent again for the end of the lease. Every other change of the task ends the
        wake-up, because the change has a wake-up or a poll of its own.
        """
        task = read_task(self.store, pk)
        if task is not None:
            self._wake(task, at_ms)

    def _wake(self, task: Task, at_ms: int) -> None:
        due_at_ms, now_ms = task.claimable_at_ms, self.clock_ms()
        if task.work_state is WorkState.LEASED and due_at_ms is not None:  # its worker may be lost
            if at_ms <= task.dispatched_at_ms and due_at_ms > now_ms:
                return  # a poll has dispatched this worker; otherwise each sleep would leave a wake-up
            due_at_ms = max(due_at_ms, task.dispatched_at_ms + _pause_ms(task) + 1)
        elif due_at_ms != at_ms:
            return
        if now_ms < min(due_at_ms, task.deadline_ms):
            self.dispatcher.dispatch_at(task.worker, task.pk, due_at_ms)
        else:
            self._end_or_redispatch(task)

    def redispatch(self, pk: str) -> bool:
        """Dispatch the worker of a task as a poll would; return False if that has to be tried again.

        During the pause after a dispatch it does nothing, and Lambda may have given up that dispatch, too.
        """
        task, now_ms = read_task(self.store, pk), self.clock_ms()
        if task is None:
            return True
        due_at_ms = task.claimable_at_ms
        if due_at_ms is not None and due_at_ms > now_ms:  # it sleeps, or its worker may be lost
            self._wake(task, due_at_ms)
            return True
        self._end_or_redispatch(task)
        return due_at_ms is None or task.dispatched_at_ms < now_ms - _pause_ms(task)

    def _end_or_redispatch(self, task: Task) -> None:
        if self.end_if_due(task) is not None:
            return
        now_ms = self.clock_ms()
        try:
            self.redispatch_if_stale(task, now_ms)
        except StoreError:
            # Otherwise the wake-up that is delivered again would find a pause, and end without a dispatch.
            earlier = (task.dispatched_at_ms, task.dispatch_count)
            self.store.update(task.pk, TASK, transitions.undo_dispatch(*earlier, now_ms=now_ms))
            raise


def _is_lost(task: Task, now_ms: int) -> bool:
    """Return whether no worker has the task, or one whose lease is over, as the change requires."""
    until_ms = task.lease_until_ms
    return task.work_state is WorkState.READY or (until_ms is not None and until_ms < now_ms)


def _pause_ms(task: Task) -> int:
    return min(REDISPATCH_MS << min(task.dispatch_count, 10), MAX_REDISPATCH_MS)
