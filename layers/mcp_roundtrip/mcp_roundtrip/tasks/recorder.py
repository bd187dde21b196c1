"""What one pass of a worker adds to its task: journal entries, status messages, and requests to the user."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.questions import InputRequest
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.internal_errors import LeaseLost, StoreError
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.items import TaskHistory, entry_from_item, entry_to_item
from mcp_roundtrip.tasks.lease import Lease
from mcp_roundtrip.tasks.model import TASK, OutstandingRequest, Task

MIN_STATUS_INTERVAL_MS: Final = 1_000
"""The least time between two writes of `statusMessage` within a step."""


class TaskRecorder(Struct):
    """Writes the journal entries and the status messages of a worker's pass (`engine.run.Recorder`)."""

    task: Task
    lease: Lease
    next_order: int
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
        present = self.lease.store.put_new(item)
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
        if self.lease.clock_ms() >= self._reported_at_ms + MIN_STATUS_INTERVAL_MS:
            self.flush_status()

    def flush_status(self) -> None:
        """Write the pending status message, if there is one. The pass continues if that fails."""
        if self._message is None or self.lease.is_lost:
            return
        self._reported_at_ms = self.lease.clock_ms()
        change = transitions.set_status_message(
            owner=self.lease.owner, message=self._message, now_ms=self._reported_at_ms
        )
        self._message = None
        try:
            self.lease.store.update(self.task.pk, TASK, change)
        except StoreError as error:
            self.lease.on_error("progress_write_failed", error)


MAX_ASKED: Final = 20
"""How often a question is asked. Each refused answer stays in the table, and every later pass reads it."""


def issue_requests(
    task: Task, recorder: TaskRecorder, run: Run
) -> tuple[dict[str, int], dict[str, OutstandingRequest]]:
    """Return the wire keys issued for each key, and the outstanding requests of a pass by wire key."""
    issued, requests = dict(task.issued_counts), dict[str, OutstandingRequest]()
    outstanding = {asked.key: wire_key for wire_key, asked in task.requests.items()}
    for order, (key, request) in enumerate(run.requests.items(), recorder.next_order):
        present = outstanding.get(key)
        if present is not None and _is_unchanged(task.requests[present], request):
            requests[present] = task.requests[present]
            continue
        issued[key] = issued.get(key, 0) + 1
        # A wire key is used for one request in the task's lifetime. Keys of authors do not contain "~".
        wire_key = key if issued[key] == 1 else f"{key}~{issued[key]}"
        requests[wire_key] = OutstandingRequest(
            key, request.fingerprint, request.to_wire(), order, request.channel
        )
    return issued, requests


def key_asked_too_often(task: Task, run: Run) -> str | None:
    """Return the key of a question that the pass asks again although it was asked `MAX_ASKED` times."""
    open_requests = {asked.key: asked for asked in task.requests.values()}
    for key, request in run.requests.items():
        asked = open_requests.get(key)
        is_new = asked is None or not _is_unchanged(asked, request)
        if is_new and task.issued_counts.get(key, 0) >= MAX_ASKED:
            return key
    return None


def _is_unchanged(asked: OutstandingRequest, request: InputRequest) -> bool:
    return (asked.fingerprint, asked.channel) == (request.fingerprint, request.channel)


def accepted_keys(task: Task, history: TaskHistory, run: Run) -> set[str]:
    """Return the wire keys of the responses that the journal contains."""
    taken = {
        wire_key
        for key, wire_key in history.response_keys.items()
        if (entry := run.history.entry(key)) is not None and entry.kind is Kind.ANSWER
    }
    return taken | set(task.accepted_keys)
