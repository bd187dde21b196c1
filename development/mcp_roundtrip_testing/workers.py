"""Run the workers of tasks, each in a new environment."""

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.server.tools import ServerTools
from mcp_roundtrip.tasks.model import ENTRY, TASK, Status, Task, WorkState
from mcp_roundtrip.tasks.store_interface import TaskStore
from mcp_roundtrip_testing.played_call import NotReplayable, json_diff
from mcp_roundtrip_testing.ports import RecordingObserver, RequestObserver
from mcp_roundtrip_testing.task_table import CrashingStore, FakeClock, MemoryStore, TaskTable, WorkerKilled

NEVER: Final = 1 << 62
"""A call number that no worker reaches."""

RETRY_DELAY_S: Final = 61.0
"""The seconds until Lambda repeats a failed asynchronous invocation: a minute, and its start."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Crash:
    """A worker is lost at call number `call` of the store (from 0, over all workers): after the call if
    `is_done`, otherwise before.

    It is killed, or with `is_suspended` its process stops until another worker has taken the task, and then
    continues with the call. Lambda repeats the invocation, unless `is_retried` is false; then a poll
    dispatches the next worker.
    """

    call: int
    is_done: bool
    is_suspended: bool = False
    is_retried: bool = True


@dataclass(frozen=True, slots=True)
class RepeatedInvocation:
    """A repeated invocation, which has the request id of the one that failed."""

    due_s: float
    pk: str
    request_id: str


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

    `server_tools` and `make_ports` make the tools and the ports of a new environment.

    With `always_replay`, a worker's time ends after its first journal entry, and each waiting task is
    replayed once on a copy, which must wait for the same. `crash` is the next crash; `calls` counts the calls
    of the store, `invocations` those of workers without retries. `retries` has what Lambda will repeat.
    `raised` has the last exception of each task by id; `changed` has the keys of questions that changed.
    """

    server_tools: Callable[[], ServerTools]
    make_ports: Callable[[], Ports]
    table: TaskTable
    observer: RecordingObserver
    remaining_ms: float
    always_replay: bool = False
    crash: Crash | None = None
    calls: int = 0
    invocations: int = 0
    retries: list[RepeatedInvocation] = field(default_factory=list)
    raised: dict[str, BaseException] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)

    def work(self) -> bool:
        """Run the worker that was dispatched first, or is repeated now; return False if there is none."""
        if self.table.dispatcher.sent:
            _, pk = self.table.dispatcher.sent.popleft()
            self.invocations += 1
            self._invoke(pk, f"test-worker-{self.invocations}")
            return True
        if self.retries and self.retries[0].due_s <= self.table.clock():
            retry = self.retries.pop(0)
            self._invoke(retry.pk, retry.request_id)
            return True
        return False

    def pass_time(self, task_id: str) -> None:
        """Advance the clock to the next retry, past the lease of a lost worker, or to the next poll."""
        if self.retries:
            self.table.clock.advance(max(0.0, self.retries[0].due_s - self.table.clock()))
        else:
            self.table.pass_time(task_id)

    def _invoke(self, pk: str, request_id: str) -> None:
        crash = self.crash or Crash(NEVER, is_done=False)
        store = CrashingStore(self.table.store, crash.call - self.calls, crash.is_done)
        if crash.is_suspended:
            store.on_reached = lambda: self._outlast_lease(crash, store, pk, request_id)
        recorded = RecordingObserver()
        observer = RequestObserver(recorded)
        try:
            self._run(pk, self.table, store, observer, request_id)
        except WorkerKilled:
            self._log_crash("killed", crash, store)
            self.crash = None
            if crash.is_retried:
                self.retries.append(RepeatedInvocation(self.table.clock() + RETRY_DELAY_S, pk, request_id))
            return
        finally:
            self.calls += store.calls
        self.observer.extend(recorded)
        if observer.errors:
            self.raised[pk.partition("#")[2]] = observer.errors[-1]
        self.changed += observer.changed
        if self.always_replay:
            self._replay(pk)

    def _outlast_lease(self, crash: Crash, store: CrashingStore, pk: str, request_id: str) -> None:
        """Let another worker take the task of a suspended one, which continues afterwards."""
        self._log_crash("suspended", crash, store)
        self.crash = None
        self.table.clock.advance(RETRY_DELAY_S)
        with ThreadPoolExecutor(1) as other:  # the suspended worker may have a running event loop
            other.submit(self._invoke, pk, request_id).result()

    def _log_crash(self, verb: str, crash: Crash, store: CrashingStore) -> None:
        side = "after" if crash.is_done else "before"
        _log.warning("a worker was %s %s call %d of the store, %s", verb, side, crash.call, store.killed_at)

    def _run(
        self, pk: str, table: TaskTable, store: CrashingStore, observer: RequestObserver, request_id: str
    ) -> None:
        clock = self.table.clock
        context = WorkerContext(clock, clock.monotonic_ms() + self.remaining_ms, request_id)

        def clock_ms() -> float:
            is_over = self.always_replay and store.has_journaled
            return context.deadline_ms if is_over else clock.monotonic_ms()

        ports = replace(
            self.make_ports(), observer=observer, clock_ms=clock_ms, tasks=lambda: table.tasks(store)
        )
        work(self.server_tools(), {"task": pk}, context, ports)

    def _replay(self, pk: str) -> None:
        task = self.table.task(pk.partition("#")[2])
        assert task is not None
        is_over = task.deadline_ms <= self.table.clock() * 1000
        items = self.table.store.query(pk)
        if is_over or task.work_state not in (WorkState.AWAITING, WorkState.SLEEPING) or _polls(items):
            return
        copy = MemoryStore()
        for item in items:
            ready = {"st": Status.WORKING.value, "rn": WorkState.READY.value} if item["sk"] == TASK else {}
            copy.put_new({**item, **ready})
        copied_store = CrashingStore(copy, NEVER, is_done=False)
        observer = RequestObserver(RecordingObserver())
        self._run(pk, TaskTable(self.table.clock, copy), copied_store, observer, "replay")
        left, again = _waiting_state(self.table.store, pk), _waiting_state(copy, pk)
        if again != left:
            seen = _describe_task(self.table.store, pk), _describe_task(copy, pk)
            shown = json_diff(*seen, ("the task", "its replay"))
            cause = next(reversed(observer.errors), None)
            raise NotReplayable(f"a replay left the task in a different state:\n{shown}") from cause


def _polls(items: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a task asks the `done` of a URL, which a replay would ask at another time."""
    names = {str(item["sk"]) for item in items}
    return any(name.endswith("~opened") and name.removesuffix("~opened") not in names for name in names)


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
