"""Time a worker's pass over recorded steps: `task_resume.py STEPS... PIPE`.

A pass reads the task's items and replays the tool up to its result, from memory and from the table in
MCP_TASK_TABLE. The two updates of a resume, for the lease and for the result, are not included.
"""

import marshal
import os
import sys
import time
from collections.abc import Callable
from statistics import median

from invocations import LambdaContext
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.server.lambda_invocation import Invocation
from mcp_roundtrip.server.stored_call_passes import TaskRunner
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.lease import Delivery, Lease, TaskRecorder
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.open_task_limit import Owner
from mcp_roundtrip.tasks.store_interface import TaskStore
from mcp_roundtrip_testing.task_table import MemoryStore
from task_server import ANSWER, Deployment, deploy, task_table

RUNS = 15


def create_answered_task(steps: int) -> tuple[MemoryStore, str]:
    """Create a task with recorded steps and an answered question. Return its store and partition key."""
    store = MemoryStore()
    deployment = deploy(store)
    call = TaskCall("tools/call", "steps", {"count": steps}, None, None)
    task = deployment.tasks.create(
        call,
        Owner(None, None, "bench"),
        Journal("bench"),
        worker="worker",
        capabilities={"elicitation": {}},
        ttl_ms=3_600_000,
    )
    deployment.server.worker_handler({"task": task.pk}, LambdaContext())
    deployment.tasks.update(None, task.task_id, {"go": ANSWER})
    return store, task.pk


def copy_items(source: TaskStore, target: TaskStore, pk: str) -> None:
    for item in source.query(pk):
        target.put_new(item)


def prepare_pass(deployment: Deployment, store: TaskStore, pk: str, steps: int) -> Callable[[], None]:
    """Return a function that runs a pass without its updates, so that it can be repeated."""
    run_pass = TaskRunner(deployment.server._server_tools, deployment.ports, Invocation("bench", sys.maxsize))
    item = store.get(pk, TASK)
    assert item is not None
    task, clock_ms = Task.from_item(item), deployment.tasks.clock_ms

    def resume() -> None:
        history = TaskHistory.from_items(task, store.query(pk))
        lease = Lease(store, pk, "bench", Delivery("", 900_000, 60_000), clock_ms)
        result = run_pass(task, history, TaskRecorder(task, lease, history.next_order))
        assert isinstance(result, dict), result

    return resume


def median_ms(call: Callable[[], None]) -> float:
    call()
    return median(_timed_ms(call) for _ in range(RUNS))


def _timed_ms(call: Callable[[], None]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def main(lengths: list[int], pipe: int) -> None:
    remote = task_table()
    figures: dict[str, list[float]] = {"memory": [], "DynamoDB emulator": []}
    for steps in lengths:
        store, pk = create_answered_task(steps)
        copy_items(store, remote, pk)
        for name, each in zip(figures, (store, remote), strict=True):
            figures[name].append(median_ms(prepare_pass(deploy(each), each, pk, steps)))
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"resumes": figures}, out)


if __name__ == "__main__":
    *given, last = map(int, sys.argv[1:])
    main(given, last)
