"""Measure tasks per second, from call to result: `task_rate.py memory|dynamodb PIPE`, the numbers on stdin.

Requests are API Gateway events. With DynamoDB the worker is another process, which runs one task after the
other: `task_rate.py worker`. In memory the worker runs within the call.
"""

import json
import marshal
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import payloads
from invocations import LambdaContext
from mcp_roundtrip.entry.server import Server
from mcp_roundtrip_testing.task_table import MemoryStore
from task_server import NullDispatcher, deploy, task_table


@dataclass(frozen=True)
class PipeDispatcher(NullDispatcher):
    """Dispatch tasks to a process that reads one partition key per line."""

    process: subprocess.Popen[str]

    def dispatch(self, worker: str, pk: str) -> None:
        assert self.process.stdin is not None
        print(pk, file=self.process.stdin, flush=True)


@contextmanager
def dynamodb() -> Iterator[Server]:
    """Yield a server whose worker is another process."""
    with subprocess.Popen([sys.executable, __file__, "worker"], stdin=subprocess.PIPE, text=True) as process:
        yield deploy(task_table(), PipeDispatcher(process)).server


def run_tasks() -> None:
    """Run the task of each partition key that is read from stdin."""
    server = deploy(task_table()).server
    for line in sys.stdin:
        server.worker_handler({"task": line.strip()}, LambdaContext())


@contextmanager
def memory() -> Iterator[Server]:
    """Yield a server that runs its workers in the same process."""

    class InlineDispatcher(NullDispatcher):
        def dispatch(self, worker: str, pk: str) -> None:
            server.worker_handler({"task": pk}, LambdaContext())

    server = deploy(MemoryStore(), InlineDispatcher()).server
    yield server


def measure_rate(server: Server, count: int, pause_s: float) -> float:
    """Create `count` tasks, poll each until it is completed, and return tasks per second."""
    started = time.perf_counter()
    ids = [
        _result(server, payloads.task_call("add", {"a": 1, "b": number}))["taskId"] for number in range(count)
    ]
    for number, task_id in enumerate(ids):
        while (task := _result(server, payloads.task_poll(task_id)))["status"] == "working":
            time.sleep(pause_s)
        assert task["result"]["structuredContent"] == 1 + number, task
    return count / (time.perf_counter() - started)


def _result(server: Server, event: dict[str, Any]) -> dict[str, Any]:
    return json.loads(server.lambda_handler(event, LambdaContext())["body"])["result"]


def main(store: str, pipe: int) -> None:
    given = marshal.load(sys.stdin.buffer)
    with {"dynamodb": dynamodb, "memory": memory}[store]() as server:
        measure_rate(server, given["warm_up_tasks"], given["pause_s"])
        found = measure_rate(server, given["count"], given["pause_s"])
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"rate": found}, out)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        run_tasks()
    else:
        main(sys.argv[1], int(sys.argv[2]))
