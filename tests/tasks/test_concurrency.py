"""Concurrent use of one task by its clients and workers, over every store."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from msgspec.structs import replace

from mcp_roundtrip import Context, Server
from mcp_roundtrip.tasks.model import TASK, Status
from support.client_requests import accepted
from support.deployment import Deployment
from support.stored_tasks import CALL, StoredTasks
from support.task_tools import ran, run_step, take_three_steps

pytest_plugins = ["support.task_stores"]


server = Server("jobs")


@server.tool(task="required")
def provision(ctx: Context) -> dict[str, str]:
    return take_three_steps(ctx, run_step)


@dataclass
class ConcurrentClients:
    """One task under concurrent use. It is cancelled after `polls_before_cancel` polls, or never (None)."""

    deployment: Deployment
    polls_before_cancel: int | None
    ended: list = field(default_factory=list)
    cancelled: list = field(default_factory=list)

    def __post_init__(self):
        self.stored = StoredTasks(self.deployment.table)
        call = replace(CALL, name="provision", arguments={})
        self.task = self.stored.create(call, capabilities={"elicitation": {}})
        self.begin = threading.Barrier(8)

    def get(self):
        """Return the task, and record it if it has ended."""
        task = self.stored.get(self.task)
        if task.is_terminal:
            self.ended.append(task)
        return task

    def repeat_until_end(self, action):
        """Repeat an action until the task has ended, and once more."""
        self.begin.wait()
        while not (task := self.get()).is_terminal:
            action(task)
        action(task)
        self.get()

    def read(self, task):
        assert task.requests.keys() <= {"go"}

    def update(self, task):
        self.stored.tasks.update("alice", task.task_id, dict.fromkeys(["go", "unknown"], accepted(True)))

    def deliver(self, task):
        self.deployment.work({"task": task.pk})

    def cancel(self, task):
        if self.polls_before_cancel is None:
            return
        if self.polls_before_cancel and not task.is_terminal:
            self.polls_before_cancel -= 1
            return
        self.stored.tasks.cancel("alice", task.task_id)
        self.cancelled.append(self.get())

    def run_all(self):
        actions = [self.read, self.update, self.update, self.cancel] + 4 * [self.deliver]
        with ThreadPoolExecutor(len(actions)) as threads:
            list(threads.map(self.repeat_until_end, actions))
        return self


def without_lease(task):
    """Return the task without its lease, which a worker releases after a cancellation."""
    return replace(task, lease_owner=None, lease_until_ms=None, lease_delivery=None)


def test_concurrent_clients_and_workers_end_a_task_once_in_a_state_that_never_changes(task_store):
    seen = set()
    for number in range(20):
        ran.clear()
        polls_before_cancel = None if number % 5 == 0 else number // 5
        deployment = Deployment(server, store=task_store)
        clients = ConcurrentClients(deployment, polls_before_cancel).run_all()
        end = clients.get()
        seen.add(end.status)
        assert all(without_lease(task) == without_lease(end) for task in clients.ended)
        assert end.lease_owner is None, "the last worker has stopped"
        assert len(clients.ended) > 16, "each of eight threads saw the end twice"
        if polls_before_cancel is None:
            assert end.status is Status.COMPLETED
        assert end.status in (Status.COMPLETED, Status.CANCELLED)
        assert all(task.is_terminal for task in clients.cancelled), "acknowledged at the end"
        assert bool(clients.cancelled) == (polls_before_cancel is not None)
        assert all(ran.count(step) <= 1 for step in ("first", "once", "last"))
        if end.status is Status.COMPLETED:
            assert sorted(ran) == ["first", "last", "once"]
            worked = deployment.events.count("worker_finished")
            assert worked == 2, "one delivery before the question, one after it"
        item = task_store.get(end.pk, TASK)
        assert item["rn"] == "D"
        assert not {"lo", "lu", "lr", "wake"} & item.keys()
    assert seen == {Status.COMPLETED, Status.CANCELLED}
