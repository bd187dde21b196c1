"""Tasks in tests: a store in memory, and workers that run when the test says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mcp_roundtrip.server.ports import TaskPort
from mcp_roundtrip.tasks.changes import Change, Item
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip.testing.clock import FakeClock

T = TypeVar("T")


@dataclass(slots=True)
class Kicks:
    """A dispatcher that remembers who was sent for: (worker, partition key). It cannot wait, as Lambda."""

    sent: deque[tuple[str, str]] = field(default_factory=deque)

    def kick(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        if not delay_ms:
            self.sent.append((worker, pk))


class Killed(BaseException):
    """The process is gone, as after SIGKILL."""


@dataclass(slots=True)
class Dying:
    """A store whose process is killed at its call number `dies_at` (from 0), before or after it is done.

    From then on every call raises Killed: whatever the code does with the first one, nothing is written.
    """

    store: TaskStore
    dies_at: int
    is_done: bool
    calls: int = 0

    def put_new(self, item: Item) -> Item | None:
        return self._call(lambda: self.store.put_new(item))

    def get(self, pk: str, sk: str) -> Item | None:
        return self._call(lambda: self.store.get(pk, sk))

    def query(self, pk: str) -> Sequence[Item]:
        return self._call(lambda: self.store.query(pk))

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        return self._call(lambda: self.store.update(pk, sk, change))

    def _call(self, operation: Callable[[], T]) -> T:
        number, self.calls = self.calls, self.calls + 1
        if number == self.dies_at and self.is_done:
            operation()
        if number >= self.dies_at:
            raise Killed
        return operation()


@dataclass(slots=True)
class TaskTable:
    """What the environments of one test share."""

    clock: FakeClock
    store: TaskStore = field(default_factory=MemoryStore)
    kicks: Kicks = field(default_factory=Kicks)
    gone: list[str] = field(default_factory=list)

    def port(self, store: TaskStore | None = None) -> TaskPort:
        """For `testing.make_ports`; on a store of its own for an environment that is to die."""
        store = store or self.store
        tasks = Tasks(store, self.kicks, lambda: int(self.clock() * 1000), gone=self.gone.append)
        return TaskPort(tasks, store, self.kicks, lambda: "worker:1")
