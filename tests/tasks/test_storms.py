"""Everything at once: eight threads read, answer, cancel and work on one task, and it ends once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.model import TASK, Status
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import new_table
from support.worker_process import ANSWER, LEASE_MS, create, lines, make_worker, now_ms

pytest_plugins = ["support.ministack"]

ROUNDS = 20
PATIENCE_S = 120


@pytest.fixture(params=["memory", "ministack"])
def store(request):
    if request.param == "memory":
        return MemoryStore()
    dynamodb = request.getfixturevalue("ministack_dynamodb")
    return DynamoStore(dynamodb, new_table(dynamodb))


@dataclass
class Storm:
    """One task and what happens to it; `patient` is how many polls its canceller waits, None without one."""

    store: object
    record: object
    patient: int | None
    ended: list = field(default_factory=list)
    cancelled: list = field(default_factory=list)
    worked: list = field(default_factory=list)

    def __post_init__(self):
        self.tasks = Tasks(self.store, RecordingDispatcher(), now_ms)
        self.task = create(self.tasks, self.record)
        self.worker = make_worker(self.store)
        self.begin = threading.Barrier(8)

    def get(self):
        """The task, noted if it has ended."""
        task = self.tasks.get(None, self.task.task_id)
        if task.is_terminal:
            self.ended.append(task)
        return task

    def until_it_ends(self, act):
        """Act again and again, and once more after the end."""
        self.begin.wait()
        patience = time.monotonic() + PATIENCE_S
        while not (task := self.get()).is_terminal:
            assert time.monotonic() < patience, task
            act(task)
        act(task)
        self.get()

    def read(self, task):
        assert task.requests.keys() <= {"go"}

    def update(self, task):
        self.tasks.update(None, task.task_id, {"go": ANSWER, "unknown": ANSWER})

    def deliver(self, task):
        self.worked.append(self.worker.work(task.pk, LEASE_MS))

    def cancel(self, task):
        if self.patient is None:
            return
        if self.patient and not task.is_terminal:
            self.patient -= 1
            return
        self.tasks.cancel(None, task.task_id)
        self.cancelled.append(self.get())

    def rage(self):
        acts = [self.read, self.update, self.update, self.cancel] + 4 * [self.deliver]
        with ThreadPoolExecutor(len(acts)) as threads:
            list(threads.map(self.until_it_ends, acts))
        return self

    def ran(self, step):
        return sum(words[:2] == ["ran", step] for words in lines(self.record))


def without_lease(task):
    """The task without the lease that its worker gives back after a cancellation."""
    return replace(task, lease_owner=None, lease_until_ms=None)


def test_a_storm_ends_in_one_terminal_state_that_never_changes(store, tmp_path):
    seen = set()
    for number in range(ROUNDS):
        patient = None if number % 5 == 0 else number // 5
        storm = Storm(store, tmp_path / str(number), patient).rage()
        end = storm.get()
        seen.add(end.status)
        assert all(without_lease(task) == without_lease(end) for task in storm.ended)
        assert end.lease_owner is None, "the last worker has stopped"
        assert len(storm.ended) > 16, "each of eight threads saw it twice"
        assert end.status in ({Status.COMPLETED} if patient is None else {Status.COMPLETED, Status.CANCELLED})
        assert all(task.is_terminal for task in storm.cancelled), "a cancellation is acknowledged at the end"
        assert bool(storm.cancelled) == (patient is not None)
        assert all(storm.ran(step) <= 1 for step in ("first", "once", "last"))
        if end.status is Status.COMPLETED:
            assert all(storm.ran(step) == 1 for step in ("first", "once", "last"))
            assert sum(storm.worked) == 2, "one delivery before the question, one after it"
        item = store.get(end.pk, TASK)
        assert item["rn"] == "D"
        assert not {"lo", "lu", "wake"} & item.keys()
    assert seen == {Status.COMPLETED, Status.CANCELLED}
