"""Writes what one pass of a worker adds to its task: journal entries and status messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from mcp_roundtrip.internal_errors import LeaseLost, StoreError
from mcp_roundtrip.journal import Entry, Kind
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.items import entry_from_item, entry_to_item
from mcp_roundtrip.tasks.lease import Lease
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store import TaskStore

MIN_STATUS_INTERVAL_MS: Final = 1_000
"""The least time between two writes of `statusMessage` within a step."""


class TaskRecorder(Struct):
    """Writes the journal entries and the status messages of one worker's pass (see `engine.host.Recorder`).

    `on_error` is called with a log event and an error that does not end the pass.
    """

    store: TaskStore
    task: Task
    lease: Lease
    next_order: int
    clock_ms: Callable[[], int]
    on_error: Callable[[str, Exception], None] = lambda event, error: None
    _message: str | None = None
    _reported_at_ms: int = 0

    def record(self, entry: Entry, *, as_owner: bool = False) -> Entry:
        if entry.kind is Kind.ANSWER:  # stored when the client sent the response
            return entry
        self._check_lease()
        item = entry_to_item(self.task, entry, self.next_order)
        self.next_order += 1
        if as_owner:
            if not self.lease.write_as_owner(item):
                raise LeaseLost
            return entry
        present = self.store.put_new(item)
        self._check_lease()  # the process may have been stopped during the request
        return entry if present is None else entry_from_item(present)

    def holds_lease(self) -> bool:
        self.flush_status()
        return self.lease.verify()

    def _check_lease(self) -> None:
        if not self.lease.owns():
            raise LeaseLost

    def report_status(self, message: str) -> None:
        """Set the status message: at once, or with the next step if the last message was just written."""
        self._message = message
        if self.clock_ms() >= self._reported_at_ms + MIN_STATUS_INTERVAL_MS:
            self.flush_status()

    def flush_status(self) -> None:
        """Write the pending status message, if there is one. The pass continues if that fails."""
        if self._message is None or self.lease.is_lost:
            return
        self._reported_at_ms = self.clock_ms()
        change = transitions.set_status_message(
            owner=self.lease.owner, message=self._message, now_ms=self._reported_at_ms
        )
        self._message = None
        try:
            self.store.update(self.task.pk, TASK, change)
        except StoreError as error:
            self.on_error("progress_write_failed", error)
