"""Tasks from their call to their result: `task_rate.py memory|dynamodb PIPE`, how many on stdin.

Requests are events with JSON bodies, as a function gets them. With DynamoDB the worker is another process,
that takes one task after the other; in memory the work is done while the call waits.
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
from pathlib import Path
from typing import Any

import payloads
from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.tasks.store import MemoryStore
from probe import Context
from task_server import deployed, table

WORKER = Path(__file__).with_name("task_worker.py")


@dataclass(frozen=True, slots=True)
class Pipe:
    """A dispatcher to a process that reads partition keys, one a line."""

    process: subprocess.Popen[str]

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        assert self.process.stdin is not None
        print(pk, file=self.process.stdin, flush=True)


@contextmanager
def dynamodb() -> Iterator[Server]:
    """A server whose worker is another process."""
    with subprocess.Popen([sys.executable, WORKER], stdin=subprocess.PIPE, text=True) as process:
        yield deployed(table(), Pipe(process)).server


@contextmanager
def memory() -> Iterator[Server]:
    """A server that works on its tasks itself."""

    class Inline:
        def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
            server.worker_handler({"task": pk}, Context())

    server = deployed(MemoryStore(), Inline()).server
    yield server


def rate(server: Server, count: int, pause_s: float) -> float:
    """Tasks per second: `count` calls, then polls of one task after the other until it is completed."""
    started = time.perf_counter()
    ids = [
        _result(server, payloads.as_task("add", {"a": 1, "b": number}))["taskId"] for number in range(count)
    ]
    for number, task_id in enumerate(ids):
        while (task := _result(server, payloads.poll(task_id)))["status"] == "working":
            time.sleep(pause_s)
        assert task["result"]["structuredContent"] == 1 + number, task
    return count / (time.perf_counter() - started)


def _result(server: Server, event: dict[str, Any]) -> dict[str, Any]:
    return json.loads(server.lambda_handler(event, Context())["body"])["result"]


def main(store: str, pipe: int) -> None:
    given = marshal.load(sys.stdin.buffer)
    with {"dynamodb": dynamodb, "memory": memory}[store]() as server:
        rate(server, given["settled"], given["pause_s"])
        found = rate(server, given["count"], given["pause_s"])
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"rate": found}, out)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
