"""Works on a task: takes its lease, replays the tool against what is stored, and leaves it where it stands.

Nothing is lost with a worker. What it journaled stays, the lease runs out, and the next poll sends for
another one. Two of them at once, which late deliveries and slow clocks can bring about, agree on one value
for each entry, and one of them ends the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.outcome import Done, Failed, NeedsInput, Outcome, OwnershipLost, Sleeping
from mcp_roundtrip.engine.run import Run
from mcp_roundtrip.errors import ItemTooLarge, KeyServiceError, SettingsError, StoreError
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.changes import Change
from mcp_roundtrip.tasks.items import TaskHistory, entry_from_item, entry_to_item, result_items
from mcp_roundtrip.tasks.model import TASK, OutstandingRequest, Task, WorkState
from mcp_roundtrip.tasks.service import MAX_ATTEMPTS, Dispatcher, abandon_if_exhausted, expire_if_overdue
from mcp_roundtrip.tasks.store import TaskStore

MIN_STATUS_INTERVAL_MS: Final = 1_000
"""`statusMessage` is written at most this often between two steps."""

RETRYABLE: Final = (StoreError, KeyServiceError, SettingsError)
"""What a later worker may be spared."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of the request that became the task."""

    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaskError:
    """The JSON-RPC error the request would have ended in."""

    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the tool of a task; without a run if there is no such tool.

    `conclude` says what the request came to, if it ended.
    """

    run: Run | None
    outcome: Outcome
    conclude: Callable[[], Completed | TaskError]


Body = Callable[[Task, TaskHistory, "TaskRecorder"], Pass]


@dataclass(slots=True)
class TaskRecorder:
    """Writes the entries of one worker's pass (see `engine.run.Recorder`), and how far it says it is."""

    store: TaskStore
    task: Task
    owner: str
    next_order: int
    clock_ms: Callable[[], int]
    failed: Callable[[str, Exception], None] = lambda event, error: None
    _message: str | None = None
    _told_at_ms: int = 0

    def record(self, entry: Entry) -> Entry:
        if entry.kind is Kind.ANSWER:  # lies there since the client gave it
            return entry
        item = entry_to_item(self.task, entry, self.next_order)
        self.next_order += 1
        present = self.store.put_new(item)
        return entry if present is None else entry_from_item(present)

    def holds_lease(self) -> bool:
        self.flush_status()
        item = self.store.get(self.task.pk, TASK)
        return item is not None and item.get("lo") == self.owner

    def tell(self, message: str) -> None:
        """Have the client read this: at once, or with the next step if it has just had something to read."""
        self._message = message
        if self.clock_ms() >= self._told_at_ms + MIN_STATUS_INTERVAL_MS:
            self.flush_status()

    def flush_status(self) -> None:
        """Write what is still to be told, if anything is. The work goes on if that fails."""
        if self._message is None:
            return
        self._told_at_ms = self.clock_ms()
        told = transitions.progress(owner=self.owner, message=self._message, now_ms=self._told_at_ms)
        self._message = None
        try:
            self.store.update(self.task.pk, TASK, told)
        except StoreError as error:
            self.failed("progress_write_failed", error)


@dataclass(frozen=True, slots=True)
class Worker:
    """`clock_ms` returns epoch milliseconds, `owner` names this worker as no other is named. `failed` is told
    what went wrong that nobody else hears of, `on_abandoned` the id of a task that was given up.
    """

    store: TaskStore
    dispatcher: Dispatcher
    body: Body
    clock_ms: Callable[[], int]
    owner: Callable[[], str]
    failed: Callable[[str, Exception], None] = lambda event, error: None
    on_abandoned: Callable[[str], None] = lambda task_id: None

    def work(self, pk: str, lease_ms: int) -> bool:
        """Work on a task for as long as its lease; False if it was not to be had.

        Whatever is raised (StoreError), the lease is given back if that is possible: whoever delivered the
        kick may try again.
        """
        owner, now_ms = self.owner(), self.clock_ms()
        claim = transitions.claim(
            owner=owner, until_ms=now_ms + lease_ms, now_ms=now_ms, max_attempts=MAX_ATTEMPTS
        )
        item = self.store.update(pk, TASK, claim)
        if item is None:
            self._on_unclaimable(pk)
            return False
        try:
            self._pass(Task.from_item(item), owner)
        except Exception:
            self._release(pk, owner)
            raise
        return True

    def _pass(self, task: Task, owner: str) -> None:
        try:
            past = TaskHistory.read(task, self.store.query(task.pk))
            if task.attempts > 1 and past.next_order > task.seen:
                ahead = transitions.reset_attempts(owner=owner, seen=past.next_order)
                self.store.update(task.pk, TASK, ahead)
            recorder = TaskRecorder(self.store, task, owner, past.next_order, self.clock_ms, self.failed)
            over = self.body(task, past, recorder)
            if over.run is not None and isinstance(over.run.fault, RETRYABLE):
                raise over.run.fault
            recorder.flush_status()
            self._leave(task, past, recorder, over)
        except ItemTooLarge as error:
            self.failed("task_too_large", error)
            self.store.update(task.pk, TASK, _failed(owner, self.clock_ms(), too_large_error(error)))

    def _on_unclaimable(self, pk: str) -> None:
        """What can be done about a task that was not to be had: often nothing, for it has ended."""
        item, now_ms = self.store.get(pk, TASK), self.clock_ms()
        task = None if item is None else Task.from_item(item)
        if task is None or task.is_terminal:
            return
        if expire_if_overdue(self.store, task, now_ms) is not None:
            return
        if abandon_if_exhausted(self.store, task, now_ms) is not None:
            self.on_abandoned(task.task_id)
        else:
            self._go_on(task)

    def _leave(self, task: Task, past: TaskHistory, recorder: TaskRecorder, over: Pass) -> None:
        owner, now_ms, run = recorder.owner, self.clock_ms(), over.run
        item = None
        match over.outcome:
            case OwnershipLost():
                return
            case NeedsInput() if run is not None:
                item = self.store.update(task.pk, TASK, _parked(task, past, recorder, run, now_ms))
            case Sleeping(wake_at_ms) if run is not None:
                change = transitions.sleep(
                    owner=owner,
                    version=task.version,
                    accepted=_accepted(task, past, run),
                    wake_at_ms=wake_at_ms,
                    now_ms=now_ms,
                )
                item = self.store.update(task.pk, TASK, change)
            case Done() | Failed():
                self.store.update(task.pk, TASK, self._ended(task, owner, over.conclude()))
                return
        if item is None and run is not None:  # time is up; or an answer came that this pass did not know
            change = transitions.checkpoint(owner=owner, accepted=_accepted(task, past, run))
            item = self.store.update(task.pk, TASK, change)
        if item is not None:
            self._go_on(Task.from_item(item))

    def _go_on(self, task: Task) -> None:
        """Send for the next worker, for when the task can have one; what waits for answers alone needs none.

        A dispatcher that can wait does so for less time than a task may sleep, and a message that comes while
        another worker has the lease may be the last one there is: so both are sent on.
        """
        delay_ms = 0
        if task.work_state is WorkState.LEASED and task.lease_until_ms is not None:
            delay_ms = task.lease_until_ms + 1 - self.clock_ms()
        elif task.wake_at_ms is not None:
            delay_ms = task.wake_at_ms - self.clock_ms()
        elif task.work_state is WorkState.PARKED:
            return
        self.dispatcher.dispatch(task.worker, task.pk, delay_ms=max(delay_ms, 0))

    def _ended(self, task: Task, owner: str, conclusion: Completed | TaskError) -> Change:
        if isinstance(conclusion, TaskError):
            return _failed(owner, self.clock_ms(), conclusion)
        told, chunks = result_items(task, owner, conclusion.result)
        for chunk in chunks:
            self.store.put_new(chunk)
        return transitions.complete(owner=owner, now_ms=self.clock_ms(), told=told)

    def _release(self, pk: str, owner: str) -> None:
        try:
            self.store.update(pk, TASK, transitions.release(owner=owner))
        except StoreError:
            return  # the lease runs out


def too_large_error(error: ItemTooLarge) -> TaskError:
    """What a task ends in that has more to remember than an item holds: the author can mend that."""
    return TaskError({"code": INTERNAL_ERROR, "message": str(error)})


def _failed(owner: str, now_ms: int, broken: TaskError) -> Change:
    message = str(broken.error["message"]).encode("utf-8", "replace").decode()  # an attribute is UTF-8
    return transitions.fail(owner=owner, now_ms=now_ms, error=broken.error, message=message)


def _parked(task: Task, past: TaskHistory, recorder: TaskRecorder, run: Run, now_ms: int) -> Change:
    issued, requests = dict(task.issued), {}
    outstanding = {asked.key: wire_key for wire_key, asked in task.requests.items()}
    for order, (key, pending) in enumerate(run.pending.items(), recorder.next_order):
        present = outstanding.get(key)
        if present is not None and task.requests[present].fingerprint == pending.fingerprint:
            requests[present] = task.requests[present]
            continue
        issued[key] = issued.get(key, 0) + 1
        # A key on the wire means one request for the task's whole life; "~" is in no key of an author's.
        wire_key = key if issued[key] == 1 else f"{key}~{issued[key]}"
        requests[wire_key] = OutstandingRequest(key, pending.fingerprint, pending.to_wire(), order)
    return transitions.park(
        owner=recorder.owner,
        version=task.version,
        requests=requests,
        issued=issued,
        accepted=_accepted(task, past, run),
        now_ms=now_ms,
        wake_at_ms=run.wake_at_ms,
    )


def _accepted(task: Task, past: TaskHistory, run: Run) -> set[str]:
    """The wire keys of the answers that the journal rests on."""
    taken = {
        wire_key
        for key, wire_key in past.answers.items()
        if (entry := run.entry(key)) is not None and entry.kind is Kind.ANSWER
    }
    return taken | set(task.accepted)
