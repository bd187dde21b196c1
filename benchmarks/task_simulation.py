"""Run many tasks on the store in memory and on virtual time, and count what each of them costs.

The code is that of the product: the service that creates and polls tasks, the worker's entry with the engine,
leases, transitions and wake-ups. Simulated are the time, clients, and Lambda: it invokes workers
asynchronously, repeats an invocation whose process was killed a minute later with the same request id, and
delivers wake-ups. A killed worker claims the task, renews its lease some times, and does nothing more.
"""

import argparse
import heapq
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import msgspec

from markdown_tables import markdown_table
from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.entry.worker import work
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall
from mcp_roundtrip.tasks.lease import Delivery, Lease
from mcp_roundtrip.tasks.model import TASK, Status, Task
from mcp_roundtrip.tasks.open_task_limit import Owner
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import Change, Item, Update
from mcp_roundtrip_testing import FakeClock, make_ports
from mcp_roundtrip_testing.task_table import MemoryStore
from measure import BenchmarkError

TASKS = 10_000

START_MS = 1_795_000_000_000
ARRIVAL_MS = 1
"""The time between two new tasks: a thousand a second."""

TASKS_PER_CALLER = 5
POLL_MS, ANSWER_MS, SLEEP_MS = 5_000, 8_000, 30_000
START_WORKER_MS, RETRY_MS, MAX_DELAY_MS = 50, 60_000, 900_000
LEASE_MS, TIMEOUT_MS = 60_000, 900_000
INVOCATION_MS = 15_000
"""The time that Lambda leaves an invocation whose pass is short: too little for a heartbeat."""

TTL_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task.

    `renewals`: the renewals before its first worker is lost; None if none is. `is_repeated`: whether Lambda
    repeats that invocation; otherwise a poll has to dispatch the next worker.
    """

    tool: str
    is_polled: bool = True
    renewals: int | None = None
    is_repeated: bool = True


KINDS = (
    *[Kind("quick")] * 12,
    *[Kind("sleeps")] * 2,
    Kind("sleeps", is_polled=False),
    *[Kind("asks")] * 2,
    Kind("quick", renewals=0),
    Kind("quick", is_polled=False, renewals=2),
    Kind("quick", renewals=0, is_repeated=False),
)
"""The kinds of twenty tasks in a row."""

server = Server("simulation")


@server.tool(task="required")
def quick(ctx: Context) -> int:
    """Run one step."""
    ctx.run_as_task(ttl_ms=TTL_MS)
    return ctx.step("work", int)


@server.tool(task="required")
def sleeps(ctx: Context) -> int:
    """Sleep between two steps."""
    ctx.run_as_task(ttl_ms=TTL_MS)
    ctx.step("before", int)
    ctx.sleep("pause", SLEEP_MS)
    return ctx.step("after", int)


@server.tool(task="required")
def asks(ctx: Context) -> int:
    """Ask a question."""
    ctx.run_as_task(ttl_ms=TTL_MS)
    return 1 if ctx.elicit("go", "Go on?", bool) else ctx.step("stop", int)


class CountingStore(MemoryStore):
    """Counts requests, and those of each partition in each second of `now_ms`."""

    def __init__(self, counts: Counter[str], now_ms: Callable[[], int]) -> None:
        super().__init__()
        self.counts = counts
        self.busiest = 0
        self._now_ms = now_ms
        self._second, self._requests = 0, Counter[str]()

    def put_new(self, item: Item) -> Item | None:
        self._count("write", str(item["pk"]))
        return super().put_new(item)

    def get(self, pk: str, sk: str) -> Item | None:
        self._count("read", pk)
        return super().get(pk, sk)

    def query(self, pk: str) -> Sequence[Item]:
        self._count("read", pk)
        return super().query(pk)

    def update(self, pk: str, sk: str, change: Change) -> Item | None:
        self._count("write", pk)
        return super().update(pk, sk, change)

    def put_new_and_update(self, item: Item, *updates: Update) -> Sequence[Update]:
        for pk in (str(item["pk"]), *(each.pk for each in updates)):
            self._count("write", pk, 2)  # DynamoDB counts a write of a transaction twice
        return super().put_new_and_update(item, *updates)

    def _count(self, kind: str, pk: str, units: int = 1) -> None:
        self.counts[kind] += units
        second = self._now_ms() // 1000
        if second != self._second:
            self._second, self._requests = second, Counter()
        self._requests[pk] += units
        self.busiest = max(self.busiest, self._requests[pk])


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """The context of one invocation."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        return INVOCATION_MS


@dataclass
class Simulation:
    """Tasks, their clients and their workers, on one virtual clock.

    `counts` has the requests to the store, and what clients and Lambda did. `busiest` is the largest number
    of requests to a partition in a second.
    """

    counts: Counter[str] = field(default_factory=Counter)
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._now_ms = START_MS
        self._loses_worker: dict[str, Kind] = {}
        self.store = CountingStore(self.counts, self.now_ms)
        self.tasks = Tasks(self.store, self, self.now_ms, max_open=10)
        ports = make_ports(clock=self.clock)
        assert ports.settings.task_lease_s * 1000 == LEASE_MS
        self._ports: Ports = msgspec.structs.replace(ports, tasks=lambda: self.tasks)

    def now_ms(self) -> int:
        return self._now_ms

    def run(self, tasks: int) -> list[str]:
        """Create so many tasks, and run until nothing happens any more; return their partition keys."""
        pks: list[str] = []
        for number in range(tasks):
            self._at(START_MS + number * ARRIVAL_MS, partial(self._create, number, pks))
        while self._events:
            self._now_ms, _, event = heapq.heappop(self._events)
            # Half a millisecond more, because float seconds are inexact and are rounded down.
            self.clock.now = (self._now_ms + 0.5) / 1000
            event()
        return pks

    def check(self, pks: Sequence[str]) -> None:
        """Raise BenchmarkError unless all tasks are completed. This is not counted."""
        for pk in pks:
            item = MemoryStore.get(self.store, pk, TASK)
            if item is None or Task.from_item(item).status is not Status.COMPLETED:
                raise BenchmarkError(f"the task {pk} is not completed: {item}")

    # -- as Lambda and SQS ------------------------------------------------------------------------------

    def dispatch(self, worker: str, pk: str) -> None:
        self.counts["invocation"] += 1
        request_id = f"request-{next(self._numbers)}"
        self._after(START_WORKER_MS, partial(self._invoke, pk, request_id))

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        self.counts["wake-up"] += 1
        due_ms = -(-at_ms // 1000) * 1000
        self._at(min(due_ms, self._now_ms + MAX_DELAY_MS), partial(self.tasks.wake, pk, at_ms))

    def hide_message(self, queue: str, receipt_handle: str, duration_s: int) -> None:
        """Do nothing: Lambda invokes the workers."""

    def _invoke(self, pk: str, request_id: str) -> None:
        kind = self._loses_worker.pop(pk, None)
        if kind is None:
            work(server._server_tools, {"task": pk}, LambdaContext(request_id), self._ports)
        else:
            self._run_lost_worker(pk, request_id, kind)

    def _run_lost_worker(self, pk: str, request_id: str, kind: Kind) -> None:
        """Claim the task, renew the lease, and be killed."""
        self.counts["lost worker"] += 1
        lease = Lease(self.store, pk, request_id, Delivery(request_id, TIMEOUT_MS, LEASE_MS), self.now_ms)
        if lease.claim() is None:
            raise BenchmarkError("the first worker could not claim its task")
        interval_ms, renewals = round(lease.renewal_interval_ms), kind.renewals or 0
        for number in range(1, renewals + 1):
            self._after(interval_ms * number, partial(self._beat, lease))
        if kind.is_repeated:
            self._after(interval_ms * renewals + 1_000 + RETRY_MS, partial(self._repeat, pk, request_id))

    def _beat(self, lease: Lease) -> None:
        self.counts["renewal"] += 1
        if lease.beat() is None:
            raise BenchmarkError("a living worker lost its lease")

    def _repeat(self, pk: str, request_id: str) -> None:
        self.counts["retry"] += 1
        self._invoke(pk, request_id)

    # -- as clients -------------------------------------------------------------------------------------

    def _create(self, number: int, pks: list[str]) -> None:
        kind = KINDS[number % len(KINDS)]
        principal = Principal("jwt", f"user-{number // TASKS_PER_CALLER}").canonical()
        task = self.tasks.create(
            TaskCall("tools/call", kind.tool, {}, None, None),
            Owner(principal, None, f"flow-{number}"),
            Journal(f"flow-{number}"),
            worker="worker:1",
            capabilities={"elicitation": {}},
            ttl_ms=TTL_MS,
        )
        pks.append(task.pk)
        if kind.renewals is not None:
            self._loses_worker[task.pk] = kind
        if kind.is_polled:
            self._after(POLL_MS, partial(self._poll, principal, task.task_id))

    def _poll(self, principal: str, task_id: str) -> None:
        self.counts["poll"] += 1
        task = self.tasks.get(principal, task_id)
        if task.is_terminal:
            return
        if task.client_requests:
            answers = {key: {"action": "accept", "content": {"value": True}} for key in task.client_requests}
            self._after(ANSWER_MS, partial(self.tasks.update, principal, task_id, answers))
            self._after(ANSWER_MS + POLL_MS, partial(self._poll, principal, task_id))
        else:
            self._after(POLL_MS, partial(self._poll, principal, task_id))

    # -- time -------------------------------------------------------------------------------------------

    def _after(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._at(self._now_ms + delay_ms, event)

    def _at(self, at_ms: int, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at_ms, next(self._numbers), event))


# -- results --------------------------------------------------------------------------------------------

COLUMNS = {
    "polls": "poll",
    "reads": "read",
    "writes": "write",
    "invocations": "invocation",
    "repeated invocations": "retry",
    "lost workers": "lost worker",
    "renewals": "renewal",
    "wake-ups": "wake-up",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a simulation counted."""

    tasks: int
    counts: Mapping[str, int]
    busiest: int

    def row(self) -> list[str]:
        """Return the row of the table: figures per task, and the busiest second of a partition."""
        per_task = [f"{self.counts[name] / self.tasks:.3f}" for name in COLUMNS.values()]
        return [f"{self.tasks:,}", *per_task, str(self.busiest)]


def simulate(tasks: int) -> Result:
    """Run a simulation in this process. Raises BenchmarkError if a task is not completed."""
    simulation = Simulation()
    simulation.check(simulation.run(tasks))
    return Result(tasks, simulation.counts, simulation.store.busiest)


def simulate_in_parallel(tasks: int, processes: int) -> Result:
    """Run a simulation in each of several processes, which share nothing, and add up the results."""
    with ProcessPoolExecutor(processes) as pool:
        results = list(pool.map(simulate, [tasks // processes] * processes))
    counts = sum((Counter(each.counts) for each in results), Counter[str]())
    return Result(tasks, counts, max(each.busiest for each in results))


def report(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table."""
    header = ["tasks", *COLUMNS, "requests in the busiest second of a partition"]
    return markdown_table(header, (each.row() for each in results), right=range(len(header)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="task_simulation.py", description=__doc__)
    parser.add_argument("--tasks", type=int, nargs="+", default=[TASKS], help="multiples of 20 × processes")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    results = [simulate_in_parallel(tasks, options.processes) for tasks in options.tasks]
    print(report(results), end="")


if __name__ == "__main__":
    main()
