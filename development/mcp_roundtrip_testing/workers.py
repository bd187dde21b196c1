"""Run the workers of tasks, each in a new environment."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.server.tools import ToolMethods
from mcp_roundtrip.tasks.model import ENTRY, TASK, Status, Task, WorkState
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip_testing.clock import FakeClock
from mcp_roundtrip_testing.observers import RecordingObserver, RequestObserver
from mcp_roundtrip_testing.played_call import NotReplayable, json_diff
from mcp_roundtrip_testing.task_table import CrashingStore, TaskTable, WorkerKilled

NEVER: Final = 1 << 62
"""A call number that no worker reaches."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Crash:
    """A worker is killed at call number `call` of the store (from 0, over all workers): after the call if
    `is_done`, otherwise before."""

    call: int
    is_done: bool


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """A Lambda context. `deadline_ms` is compared with the clock's `monotonic_ms`."""

    clock: FakeClock
    deadline_ms: float
    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int(self.deadline_ms - self.clock.monotonic_ms()))


@dataclass(slots=True)
class Workers:
    """The workers of a test. Each has a new environment and `remaining_ms`.

    `tool_methods` and `make_ports` make the tools and the ports of a new environment.

    With `always_replay`, a worker's time ends after its first journal entry, and each waiting task is
    replayed once on a copy, which must wait for the same. `crash` is the next crash; `calls` counts the calls
    of the store. `raised` has the last exception of each task by id; `changed` has the keys of questions that
    changed.
    """

    tool_methods: Callable[[], ToolMethods]
    make_ports: Callable[[], Ports]
    table: TaskTable
    observer: RecordingObserver
    remaining_ms: float
    always_replay: bool = False
    crash: Crash | None = None
    calls: int = 0
    raised: dict[str, BaseException] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)

    def work(self) -> bool:
        """Run the worker that was dispatched first; return False if there is none."""
        if not self.table.dispatcher.sent:
            return False
        _, pk = self.table.dispatcher.sent.popleft()
        crash = self.crash or Crash(NEVER, is_done=False)
        store = CrashingStore(self.table.store, crash.call - self.calls, crash.is_done)
        recorded = RecordingObserver()
        observer = RequestObserver(recorded)
        with suppress(WorkerKilled):
            self._run(pk, self.table, store, observer)
        self.calls += store.calls
        if store.is_dead:
            side = "after" if crash.is_done else "before"
            _log.warning("a worker was killed %s call %d of the store, %s", side, crash.call, store.killed_at)
            self.crash = None
            return True
        self.observer.extend(recorded)
        if observer.errors:
            self.raised[pk.partition("#")[2]] = observer.errors[-1]
        self.changed += observer.changed
        if self.always_replay:
            self._replay(pk)
        return True

    def _run(self, pk: str, table: TaskTable, store: CrashingStore, observer: RequestObserver) -> None:
        clock = self.table.clock
        context = WorkerContext(clock, clock.monotonic_ms() + self.remaining_ms, f"test-worker-{self.calls}")

        def clock_ms() -> float:
            is_over = self.always_replay and store.has_journaled
            return context.deadline_ms if is_over else clock.monotonic_ms()

        ports = replace(
            self.make_ports(), observer=observer, clock_ms=clock_ms, tasks=lambda: table.port(store)
        )
        work(self.tool_methods(), {"task": pk}, context, lambda: ports)

    def _replay(self, pk: str) -> None:
        task = self.table.task(pk.partition("#")[2])
        assert task is not None
        is_over = task.deadline_ms <= self.table.clock() * 1000
        if is_over or task.work_state not in (WorkState.AWAITING, WorkState.SLEEPING):
            return
        copy = MemoryStore()
        for item in self.table.store.query(pk):
            ready = {"st": Status.WORKING.value, "rn": WorkState.READY.value} if item["sk"] == TASK else {}
            copy.put_new({**item, **ready})
        copied_store = CrashingStore(copy, NEVER, is_done=False)
        observer = RequestObserver(RecordingObserver())
        self._run(pk, TaskTable(self.table.clock, copy), copied_store, observer)
        left, again = _waiting_state(self.table.store, pk), _waiting_state(copy, pk)
        if again != left:
            seen = _describe_task(self.table.store, pk), _describe_task(copy, pk)
            shown = json_diff(*seen, ("the task", "its replay"))
            cause = next(reversed(observer.errors), None)
            raise NotReplayable(f"a replay left the task in a different state:\n{shown}") from cause


def _describe_task(store: TaskStore, pk: str) -> dict[str, Any]:
    """Return the state of a task as JSON data, with the questions instead of their digests."""
    task = Task.from_item({str(item["sk"]): item for item in store.query(pk)}[TASK])
    asked = {asked.key: asked.request for asked in task.requests.values()}
    return {**_waiting_state(store, pk), "running": task.work_state.name.lower(), "asked": asked}


def _waiting_state(store: TaskStore, pk: str) -> dict[str, Any]:
    """Return the events that a task waits for, and its journal keys."""
    items = {str(item["sk"]): item for item in store.query(pk)}
    task = Task.from_item(items[TASK])
    return {
        "running": task.work_state,
        "asked": {asked.key: asked.fingerprint for asked in task.requests.values()},
        "wake_at_ms": task.wake_at_ms,
        "done": [name for name in items if name.startswith(ENTRY)],
    }
