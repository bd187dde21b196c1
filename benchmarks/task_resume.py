"""What a worker's pass over recorded steps costs: `task_resume.py STEPS... PIPE`.

A pass reads the task's items and replays the tool against them, up to its result: first from memory, then
from the table that the environment names. What every resume takes besides are two updates, of lease and end.
"""

import marshal
import os
import sys
import time
from collections.abc import Callable
from statistics import median

from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcome import Done
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.task_runner import TaskRunner
from mcp_roundtrip.tasks.items import TaskCall, TaskHistory
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store import MemoryStore, TaskStore
from mcp_roundtrip.tasks.worker import TaskRecorder
from probe import Context
from task_server import ANSWER, Deployment, deployed, table

RUNS = 15


def answered(steps: int) -> tuple[MemoryStore, str]:
    """A task whose steps are recorded and whose question is answered, and its partition key."""
    store = MemoryStore()
    ours = deployed(store)
    call = TaskCall("tools/call", "steps", {"count": steps}, None, None)
    task = ours.tasks.create(
        call, None, Journal("bench"), worker="worker", capabilities={"elicitation": {}}, ttl_ms=3_600_000
    )
    ours.server.worker_handler({"task": task.pk}, Context())
    ours.tasks.update(None, task.task_id, {"go": ANSWER})
    return store, task.pk


def copied(source: TaskStore, target: TaskStore, pk: str) -> None:
    for item in source.query(pk):
        target.put_new(item)


def resume(ours: Deployment, store: TaskStore, pk: str, steps: int) -> Callable[[], None]:
    """A pass without its updates: it can be repeated."""
    body = TaskRunner(ours.server._tool_methods, ours.ports, Invocation("bench", sys.maxsize))
    item = store.get(pk, TASK)
    assert item is not None
    task = Task.from_item(item)

    def again() -> None:
        past = TaskHistory.read(task, store.query(pk))
        over = body(task, past, TaskRecorder(store, task, "bench", past.next_order, ours.tasks.clock_ms))
        assert over.outcome == Done(steps), over

    return again


def cost_ms(call: Callable[[], None]) -> float:
    call()
    return median(_timed_ms(call) for _ in range(RUNS))


def _timed_ms(call: Callable[[], None]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def main(lengths: list[int], pipe: int) -> None:
    remote = table()
    figures: dict[str, list[float]] = {"store in memory": [], "DynamoDB, emulated": []}
    for steps in lengths:
        store, pk = answered(steps)
        copied(store, remote, pk)
        for name, kept in zip(figures, (store, remote), strict=True):
            figures[name].append(cost_ms(resume(deployed(kept), kept, pk, steps)))
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"resumes": figures}, out)


if __name__ == "__main__":
    *given, last = map(int, sys.argv[1:])
    main(given, last)
