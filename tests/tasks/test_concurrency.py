"""Concurrency: eight threads read, answer, cancel and run one task, which ends exactly once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.model import TASK, Status
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import new_table
from support.recorded_steps import ANSWER, DELIVERY, create, lines, make_worker, now_ms

pytest_plugins = ["support.ministack"]

ROUNDS = 20
TIMEOUT_S = 120


@pytest.fixture(params=["memory", "ministack"])
def store(request):
    if request.param == "memory":
        return MemoryStore()
    dynamodb = request.getfixturevalue("ministack_dynamodb")
    return DynamoStore(dynamodb, new_table(dynamodb))


@dataclass
class ConcurrentClients:
    """One task under concurrent use. It is cancelled after `polls_before_cancel` polls, or never (None)."""

    store: object
    record: object
    polls_before_cancel: int | None
    ended: list = field(default_factory=list)
    cancelled: list = field(default_factory=list)
    deliveries: list = field(default_factory=list)

    def __post_init__(self):
        self.tasks = Tasks(self.store, RecordingDispatcher(), now_ms)
        self.task = create(self.tasks, self.record)
        self.worker = make_worker(self.store)
        self.begin = threading.Barrier(8)

    def get(self):
        """Return the task, and record it if it has ended."""
        task = self.tasks.get(None, self.task.task_id)
        if task.is_terminal:
            self.ended.append(task)
        return task

    def repeat_until_end(self, action):
        """Repeat an action until the task has ended, and once more."""
        self.begin.wait()
        deadline = time.monotonic() + TIMEOUT_S
        while not (task := self.get()).is_terminal:
            assert time.monotonic() < deadline, task
            action(task)
        action(task)
        self.get()

    def read(self, task):
        assert task.requests.keys() <= {"go"}

    def update(self, task):
        self.tasks.update(None, task.task_id, {"go": ANSWER, "unknown": ANSWER})

    def deliver(self, task):
        self.deliveries.append(self.worker.work(task.pk, DELIVERY) is not None)

    def cancel(self, task):
        if self.polls_before_cancel is None:
            return
        if self.polls_before_cancel and not task.is_terminal:
            self.polls_before_cancel -= 1
            return
        self.tasks.cancel(None, task.task_id)
        self.cancelled.append(self.get())

    def run_all(self):
        actions = [self.read, self.update, self.update, self.cancel] + 4 * [self.deliver]
        with ThreadPoolExecutor(len(actions)) as threads:
            list(threads.map(self.repeat_until_end, actions))
        return self

    def ran(self, step):
        return sum(words[:2] == ["ran", step] for words in lines(self.record))


def without_lease(task):
    """Return the task without its lease, which a worker releases after a cancellation."""
    return replace(task, lease_owner=None, lease_until_ms=None, lease_delivery=None)


def test_concurrent_clients_and_workers_end_a_task_once_in_a_state_that_never_changes(store, tmp_path):
    seen = set()
    for number in range(ROUNDS):
        polls_before_cancel = None if number % 5 == 0 else number // 5
        clients = ConcurrentClients(store, tmp_path / str(number), polls_before_cancel).run_all()
        end = clients.get()
        seen.add(end.status)
        assert all(without_lease(task) == without_lease(end) for task in clients.ended)
        assert end.lease_owner is None, "the last worker has stopped"
        assert len(clients.ended) > 16, "each of eight threads saw the end twice"
        assert end.status in (
            {Status.COMPLETED} if polls_before_cancel is None else {Status.COMPLETED, Status.CANCELLED}
        )
        assert all(task.is_terminal for task in clients.cancelled), (
            "a cancellation is acknowledged at the end"
        )
        assert bool(clients.cancelled) == (polls_before_cancel is not None)
        assert all(clients.ran(step) <= 1 for step in ("first", "once", "last"))
        if end.status is Status.COMPLETED:
            assert all(clients.ran(step) == 1 for step in ("first", "once", "last"))
            assert sum(clients.deliveries) == 2, "one delivery before the question, one after it"
        item = store.get(end.pk, TASK)
        assert item["rn"] == "D"
        assert not {"lo", "lu", "lr", "wake"} & item.keys()
    assert seen == {Status.COMPLETED, Status.CANCELLED}
