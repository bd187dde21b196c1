"""The state that the environments of a test share: a clock, and the table of tasks in memory."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.call_and_journal_items import TaskHistory
from mcp_roundtrip.tasks.model import ENTRY, TASK, Task, WorkState
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import (
    Above,
    Absent,
    AllOf,
    AnyOf,
    Below,
    Change,
    Condition,
    Equals,
    Item,
    TaskStore,
    Update,
    Value,
    check_item_size,
)

_BOOTED_MS: Final = 1_794_900_000_000.0
"""When the monotonic clock began, in epoch milliseconds: code that mixes the clocks must not work."""


@dataclass(slots=True)
class FakeClock:
    """Wall clock and monotonic clock. `now` is in epoch seconds."""

    now: float = 1_795_000_000.0

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds

    async def pause_ms_async(self, duration_ms: float) -> None:
        """Advance the clock, and let other ready coroutines run."""
        import asyncio  # not needed by synchronous tools

        self.advance(duration_ms / 1000)
        await asyncio.sleep(0)

    def __call__(self) -> float:
        return self.now

    def monotonic_ms(self) -> float:
        """Return the same instant in milliseconds, on a scale of its own."""
        return self.now * 1000 - _BOOTED_MS


def holds(condition: Condition, item: Item) -> bool:
    """Return whether a condition holds for an item, which is empty if it does not exist."""
    match condition:
        case Absent(name):
            return name not in item
        case Equals(name, value):
            return item.get(name) == value
        case Below(name, limit):
            return isinstance(present := item.get(name), int) and present < limit
        case Above(name, limit):
            return isinstance(present := item.get(name), int) and present > limit
        case AllOf(conditions):
            return all(holds(each, item) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, item) for each in conditions)


def apply_change(change: Change, item: Item) -> dict[str, Value] | None:
    """Return the changed item, or None if the condition does not hold."""
    if not holds(change.condition, item):
        return None
    changed = {name: value for name, value in item.items() if name not in change.remove} | dict(change.set)
    for name, amount in change.add.items():
        present = changed.get(name, 0)
        assert isinstance(present, int), name
        changed[name] = present + amount
    return changed


class MemoryStore:
    """A `TaskStore` in memory. Thread-safe."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], Item] = {}
        self._lock = threading.Lock()

    def put_new(self, item: Item) -> Item | None:
        check_item_size(item)
        with self._lock:
            present = self._find(str(item["pk"]), str(item["sk"]))
            if present is None:
                self._write(item)
            return present

    def put_all_new(self, items: Sequence[Item]) -> None:
        for item in items:
            self.put_new(item)

    def get(self, pk: str, sk: str) -> Item | None:
        with self._lock:
            return self._find(pk, sk)

    def query(self, pk: str) -> Sequence[Item]:
        with self._lock:
            sort_keys = [sk for found, sk in self._items if found == pk]
            # DynamoDB orders sort keys by their UTF-8 bytes.
            return [dict(self._items[pk, sk]) for sk in sorted(sort_keys, key=str.encode)]

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        with self._lock:
            changed = self._changed(pk, sk, change)
            if changed is not None:
                self._write(changed)
            return changed

    def put_new_and_update(self, item: Item, *updates: Update) -> Sequence[Update]:
        check_item_size(item)
        with self._lock:
            if self._find(str(item["pk"]), str(item["sk"])) is not None:
                raise StoreError("item_exists")
            written, unmet = [item], list[Update]()
            for update in updates:
                changed = self._changed(update.pk, update.sk, update.change)
                if changed is None:
                    unmet.append(update)
                else:
                    written.append(changed)
            if not unmet:
                for each in written:
                    self._write(each)
            return unmet

    def _find(self, pk: str, sk: str) -> Item | None:
        present = self._items.get((pk, sk))
        return None if present is None else dict(present)

    def _write(self, item: Item) -> None:
        self._items[str(item["pk"]), str(item["sk"])] = dict(item)

    def _changed(self, pk: str, sk: str, change: Change) -> Item | None:
        changed = apply_change(change, self._find(pk, sk) or {})
        if changed is None:
            return None
        changed = {"pk": pk, "sk": sk, **changed}
        check_item_size(changed)
        return changed


T = TypeVar("T")

POLL_S: Final = 5.0
"""The seconds between two polls of a task without a worker."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RecordingDispatcher:
    """Records each dispatch but number `lost_dispatch` (from 0). `pks` are partition keys by task id."""

    sent: deque[tuple[str, str]] = field(default_factory=deque)
    lost_dispatch: int | None = None
    count: int = 0
    pks: dict[str, str] = field(default_factory=dict)

    def dispatch(self, worker: str, pk: str) -> None:
        number, self.count = self.count, self.count + 1
        self.pks[pk.partition("#")[2]] = pk
        if number == self.lost_dispatch:
            _log.warning("dispatch %d of a worker was lost", number)
        else:
            self.sent.append((worker, pk))

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        """Do nothing: the next poll dispatches."""

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None:
        """Do nothing: workers are invoked without a queue."""


class WorkerKilled(BaseException):
    """The worker's process was killed."""


@dataclass(slots=True)
class CrashingStore:
    """A store that kills its worker at call number `killed_call` (from 0), before it is performed or after.

    Every later call raises WorkerKilled. With `on_reached`, it calls that instead, and continues.
    """

    store: TaskStore
    killed_call: int
    is_done: bool
    calls: int = 0
    killed_at: str = ""
    has_journaled: bool = False
    on_reached: Callable[[], None] | None = None

    def put_new(self, item: Item) -> Item | None:
        self._note_entry(item)
        return self._call(f"put_new {item['sk']!s}", lambda: self.store.put_new(item))

    def put_all_new(self, items: Sequence[Item]) -> None:
        for item in items:
            self.put_new(item)

    def get(self, pk: str, sk: str) -> Item | None:
        return self._call(f"get {sk}", lambda: self.store.get(pk, sk))

    def query(self, pk: str) -> Sequence[Item]:
        return self._call("query", lambda: self.store.query(pk))

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        return self._call(f"update {sk}", lambda: self.store.update(pk, sk, change))

    def put_new_and_update(self, item: Item, *updates: Update) -> Sequence[Update]:
        self._note_entry(item)
        name = " ".join(["put_new_and_update", str(item["sk"]), *(each.sk for each in updates)])
        return self._call(name, lambda: self.store.put_new_and_update(item, *updates))

    def _note_entry(self, item: Item) -> None:
        self.has_journaled = self.has_journaled or str(item["sk"]).startswith(ENTRY)

    def _call(self, name: str, operation: Callable[[], T]) -> T:
        number, self.calls = self.calls, self.calls + 1
        if number < self.killed_call or (number > self.killed_call and self.on_reached is not None):
            return operation()
        if number > self.killed_call:
            raise WorkerKilled
        self.killed_at = name
        result = operation() if self.is_done else None
        if self.on_reached is None:
            raise WorkerKilled
        self.on_reached()
        return cast(T, result) if self.is_done else operation()


@dataclass(slots=True)
class TaskTable:
    """The state that the environments of one test share."""

    clock: FakeClock
    store: TaskStore = field(default_factory=MemoryStore)
    dispatcher: RecordingDispatcher = field(default_factory=RecordingDispatcher)
    max_open: int = 0

    def tasks(self, store: TaskStore | None = None) -> Tasks:
        """Return the tasks of an environment. A worker that will be killed has a `store` of its own."""
        store = store or self.store
        now_ms = lambda: int(self.clock() * 1000)  # noqa: E731 - as short as its use
        return Tasks(store, self.dispatcher, now_ms, max_open=self.max_open)

    def task(self, task_id: str) -> Task | None:
        """Return the stored task; None if no worker was dispatched for it."""
        pk = self.dispatcher.pks.get(task_id)
        item = None if pk is None else self.store.get(pk, TASK)
        return None if item is None else Task.from_item(item)

    def journal(self, task_id: str) -> Journal | None:
        """Return what the task has recorded; None if it is not stored."""
        task = self.task(task_id)
        if task is None:
            return None
        return TaskHistory.from_items(task, self.store.query(self.dispatcher.pks[task_id])).journal

    def is_at_rest(self, task_id: str) -> bool:
        """Whether the task needs no worker now: it waits for input, sleeps, or has ended."""
        task = self.task(task_id)
        if task is None:
            return True
        if task.wake_at_ms is not None:
            return task.wake_at_ms > self.clock() * 1000
        return task.work_state in (WorkState.AWAITING, WorkState.DONE)

    def pass_time(self, task_id: str) -> None:
        """Advance the clock past the lease of a lost worker, or to the next poll."""
        task = self.task(task_id)
        if task is not None and task.lease_until_ms is not None:
            self._pass_until(task.lease_until_ms)
        self.clock.advance(POLL_S)

    def end_sleep(self, task_id: str) -> None:
        """Advance the clock to the end of a task's sleep, if it sleeps."""
        task = self.task(task_id)
        if task is not None and task.wake_at_ms is not None:
            self._pass_until(task.wake_at_ms)

    def _pass_until(self, epoch_ms: int) -> None:
        """Advance the clock to one millisecond after that, because float seconds are inexact."""
        self.clock.advance(max(0.0, (epoch_ms + 1) / 1000 - self.clock()))
