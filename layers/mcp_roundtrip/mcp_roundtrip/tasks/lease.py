"""The lease of one pass: who holds a task, for how long, what its holder may still do, and what it writes.

A worker claims a task for `lease_ms` and renews the lease in a thread (`heartbeat`) after each third of it.
Three times decide who may act; all are epoch milliseconds, and clocks of two environments may differ:

=============================================  ===========================================================
time since the last renewal                    effect
=============================================  ===========================================================
less than half the lease                       the owner writes and starts steps without asking
half the lease or more                         the owner renews first, or stops (`may_continue`)
the whole lease                                any worker may claim the task, with a new owner
=============================================  ===========================================================

So the clocks of two workers may differ by half a lease. A lease never lasts longer than `MARGIN_MS` after the
end of its invocation: after that, its owner no longer exists.

- **A lost worker.** The renewals end with the process. Lambda repeats the invocation with the same request id
  a minute later, SQS delivers the message again `MARGIN_MS` after the lease, and polls dispatch a worker
  after the lease. The first of them claims the task. A worker that replaces a lost one sends a wake-up for
  the end of its lease: Lambda's second retry comes two minutes after the first, and there is no third.
- **Two deliveries at once.** One claim succeeds. The other delivery finds the lease of its own `Delivery.id`
  (`LeaseHeld`), and cannot tell whether that worker is alive until the lease is over or was renewed. It does
  not count as an attempt.
- **A process that was stopped and continues.** The epoch clock advanced, so the owner renews before its next
  write, and learns that it lost the lease. Every write of the item M depends on the owner. So does the result
  of an at-most-once step (`write_as_owner`), because the next worker decides by its absence. Other journal
  entries do not: the first one counts for both workers, and the owner checks again before it continues.
- **A cancelled task.** Its worker keeps the lease until its step ends, because it counts as open until then
  (`open_task_limit`). The next renewal tells the worker to stop.
- **An event loop that is blocked** does not block the thread. Code that holds the interpreter's lock does,
  and the owner then renews before its next write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Final

from msgspec import Struct, field

from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.internal_errors import LeaseLost, StoreError
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.call_and_journal_items import entry_from_item, entry_to_item, read_task
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store_interface import Change, Item, TaskStore, Update

MARGIN_MS: Final = 5_000
"""How much longer a lease lasts than its invocation, at most: clocks differ."""

MAX_LEASE_MS: Final = 900_000
"""The longest lease, which is also Lambda's longest timeout."""

RENEWALS: Final = 3
"""A lease is renewed after this part of its length."""

RETRIES: Final = 12
"""A failed renewal is repeated after this part of the lease's length."""


class LeaseHeld(McpRoundtripError):
    """Another delivery with the same id has the lease, which ends at `until_ms` unless it is renewed."""

    def __init__(self, until_ms: int) -> None:
        super().__init__(f"until {until_ms}")
        self.until_ms = until_ms


class Delivery(Struct, frozen=True):
    """The delivery of a task to a worker.

    `id`: Lambda's request id, or the id of a message. A retry has the same id. "": it is never repeated.
    `remaining_ms`: the time that Lambda leaves the invocation.
    `on_renewed`: called in another thread after each renewal by the heartbeat.
    """

    id: str
    remaining_ms: int
    lease_ms: int
    on_renewed: Callable[[], None] | None = None

    @property
    def is_message(self) -> bool:
        """Whether it is a message: hidden while its worker runs, and delivered again until one succeeds."""
        return self.on_renewed is not None


class Lease(Struct):
    """The lease of one worker on the task `pk`. Thread-safe. The methods raise StoreError.

    `clock_ms` returns epoch milliseconds. `on_error` takes a log event and the error of a failed renewal.
    """

    store: TaskStore
    pk: str
    owner: str
    delivery: Delivery
    clock_ms: Callable[[], int]
    on_error: Callable[[str, Exception], None] = lambda event, error: None
    _lock: Lock = field(default_factory=Lock)
    _renewed_at_ms: int = 0
    _invocation_ends_ms: int = 0
    _is_owner: bool = True
    _is_open: bool = True
    _is_closed: bool = False

    def __post_init__(self) -> None:
        self._renewed_at_ms = self.clock_ms()
        self._invocation_ends_ms = self._renewed_at_ms + self.delivery.remaining_ms

    @property
    def renewal_interval_ms(self) -> float:
        return self.delivery.lease_ms / RENEWALS

    @property
    def is_lost(self) -> bool:
        """Whether the worker has to stop, as far as it knows: it lost the lease, or the task has ended."""
        return not (self._is_owner and self._is_open)

    def claim(self) -> Item | None:
        """Acquire the lease; return the task's item, or None if it cannot be claimed."""
        now_ms = self._renewed_at_ms
        claim = transitions.claim(
            owner=self.owner,
            delivery=self.delivery.id,
            until_ms=self._until_ms(now_ms),
            now_ms=now_ms,
        )
        return self.store.update(self.pk, TASK, claim)

    def owns(self) -> bool:
        """Return whether the worker has the lease, also of a task that has ended; renew an old one first."""
        if not self._is_trusted():
            self.renew()
        return self._is_owner

    def may_continue(self) -> bool:
        """Return whether the worker may continue; renew an old lease first."""
        return self.owns() and self._is_open

    def verify(self) -> bool:
        """Return whether the worker may continue, by a request to the table: it notices a cancellation."""
        if self.is_lost or not self._is_trusted():
            return self.may_continue()
        task = read_task(self.store, self.pk)
        is_held = task is not None and task.lease_owner == self.owner and not task.is_terminal
        return is_held and self.may_continue()  # the process may have been stopped during the request

    def write_as_owner(self, item: Item) -> bool:
        """Write an item and renew the lease in one transaction; False if it was lost. Raises ItemTooLarge."""
        with self._lock:
            now_ms, renewal = self._renewal()
            self._is_owner = not self.store.put_new_and_update(item, Update(self.pk, TASK, renewal))
            self._renewed_at_ms = now_ms
            return self._is_owner

    def renew(self) -> None:
        """Extend the lease, or learn that it is lost or that the task has ended. Raises StoreError."""
        with self._lock:
            if not self._is_owner or self._is_closed:
                return
            now_ms, renewal = self._renewal()
            item = self.store.update(self.pk, TASK, renewal)
            self._is_owner = item is not None
            self._is_open = item is not None and not Task.from_item(item).is_terminal
            self._renewed_at_ms = now_ms

    def beat(self) -> float | None:
        """Renew the lease; return the milliseconds until the next renewal, or None if there is none."""
        try:
            self.renew()
            if not self._is_owner or self._is_closed:
                return None
            if self.delivery.on_renewed is not None:
                self.delivery.on_renewed()
        except Exception as error:  # without renewals, another worker would take over a worker that runs
            if self._is_closed:
                return None
            with suppress(Exception):  # a log line must not end the renewals
                self.on_error("lease_renewal_failed", error)
            return self.delivery.lease_ms / RETRIES
        return self.renewal_interval_ms

    def close(self) -> None:
        """End the renewals: the pass has ended."""
        self._is_closed = True

    def _is_trusted(self) -> bool:
        now_ms, renewed_at_ms = self.clock_ms(), self._renewed_at_ms
        half_ms = renewed_at_ms + self.delivery.lease_ms // 2
        return renewed_at_ms <= now_ms < min(half_ms, self._invocation_ends_ms)

    def _renewal(self) -> tuple[int, Change]:
        now_ms = self.clock_ms()
        return now_ms, transitions.renew(owner=self.owner, until_ms=self._until_ms(now_ms))

    def _until_ms(self, now_ms: int) -> int:
        return min(now_ms + self.delivery.lease_ms, self._invocation_ends_ms + MARGIN_MS)


MIN_STATUS_INTERVAL_MS: Final = 1_000
"""The least time between two writes of `statusMessage` within a step."""


class TaskRecorder(Struct):
    """The `pass_state.Recorder` of a worker: writes journal entries and status messages."""

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
        """Write the pending status message. The pass continues if that fails."""
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


WaitMs = Callable[[Event, float], bool]
"""Waits for an event for so many milliseconds, and returns whether it was set."""

JOIN_TIMEOUT_S: Final = 1.0
"""The time for which the end of a pass waits for a renewal under way, which then has no effect."""


@contextmanager
def heartbeat(lease: Lease, wait: WaitMs) -> Iterator[None]:
    """Renew the lease until the block ends. A pass that ends before the first renewal makes no request."""
    if lease.delivery.remaining_ms <= lease.renewal_interval_ms:
        yield
        return
    has_ended = Event()

    def renew_repeatedly() -> None:
        pause_ms: float | None = lease.renewal_interval_ms
        while pause_ms is not None and not wait(has_ended, pause_ms):
            pause_ms = lease.beat()

    thread = Thread(target=renew_repeatedly, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        lease.close()
        has_ended.set()
        thread.join(JOIN_TIMEOUT_S)
