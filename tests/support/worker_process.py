"""Worker processes that are killed. Each records its actions.

`worker_process.py <endpoint> <table> <folder> <calls>` forks a worker for each partition key that it reads
from stdin. The id of a task is its number. The number determines at which of the <calls> its worker is
killed, and whether before or after it. <folder> has a record for each task, with one line for each event.
"""

import os
import secrets
import signal
import sys
import time
import traceback
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_roundtrip import Context, Server
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.errors import StepInterrupted
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.task_runner import TaskRunner
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.lease import Delivery
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip.tasks.worker import Worker
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import client

LEASE_MS = 60_000
TIMEOUT_S = 50
"""The timeout of a function, which is shorter than its lease."""
DELIVERY = Delivery("", TIMEOUT_S * 1_000, LEASE_MS)
AFTER_DEATH_MS = 2 * LEASE_MS
"""Advance of a task's clock when its worker is killed, so that no test waits for a lease to expire."""
AT_ONCE = 4
ANSWER = {"action": "accept", "content": {"value": True}}
SIDES = ("before", "after")

server = Server("jobs")


def note(record: Path, *words: str) -> None:
    """Append a line to a record. O_APPEND keeps lines of several processes complete and in order."""
    descriptor = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (" ".join(words) + "\n").encode())
    os.close(descriptor)


def lines(record: Path) -> list[list[str]]:
    """Return the words of each line."""
    return [line.split() for line in record.read_text().splitlines()] if record.exists() else []


def effect(record: str, name: str) -> str:
    """Record a visible side effect, and return a value unique to this run."""
    value = secrets.token_hex(8)
    note(Path(record), "ran", name, value)
    return value


@server.tool(task="required")
def provision(ctx: Context, record: str) -> dict[str, str]:
    ctx.run_as_task()
    first = ctx.step("first", effect, record, "first")
    try:
        once = ctx.step("once", effect, record, "once", at_most_once=True)
    except StepInterrupted:
        once = "interrupted"
    ctx.elicit("go", "Go on?", bool)
    return {"first": first, "once": once, "last": ctx.step("last", effect, record, "last")}


def now_ms() -> int:
    """Return the time of the computer, which workers and clients share."""
    return int(time.time() * 1000)


def clock_of(record: Path) -> Callable[[], int]:
    """Return the clock of the task with this record, advanced for each killed worker."""
    return lambda: now_ms() + AFTER_DEATH_MS * sum(words[0] == "killed" for words in lines(record))


def make_worker(store: TaskStore, clock_ms: Callable[[], int] = now_ms) -> Worker:
    """Return a worker of `server` without a deadline."""
    body = TaskRunner(server._tool_methods, make_ports(), Invocation("worker", 1e18))
    return Worker(store, RecordingDispatcher(), body, clock_ms, lambda: secrets.token_hex(12))


def create(tasks: Tasks, record: Path) -> Task:
    """Create a task of the tool."""
    call = TaskCall("tools/call", "provision", {"record": str(record)}, None, None)
    capabilities: dict[str, Any] = {"elicitation": {}}
    journal = Journal(record.name)
    return tasks.create(call, None, journal, worker="1", capabilities=capabilities, ttl_ms=600_000)


def id_of(number: int) -> str:
    """Return the id of the task with this number."""
    return urlsafe_b64encode(number.to_bytes(24, "big")).decode()


def number_of(pk: str) -> int:
    """Return the number of the task with this partition key."""
    return int.from_bytes(urlsafe_b64decode(pk.partition("#")[2]), "big")


@dataclass(frozen=True)
class KillingStore:
    """A store that records calls, and kills its process once, at call `killed_at` (from 0).

    Calls are counted over all workers of the task. Without `killed_at` it only records.
    """

    store: TaskStore
    record: Path
    killed_at: int | None = None
    side: str = "before"

    def put_new(self, item: Any) -> Any:
        return self._call(f"put_new:{item['sk']}", lambda: self.store.put_new(item))

    def get(self, pk: str, sk: str) -> Any:
        return self._call(f"get:{sk}", lambda: self.store.get(pk, sk))

    def query(self, pk: str) -> Any:
        return self._call("query", lambda: self.store.query(pk))

    def update(self, pk: str, sk: str, change: Any) -> Any:
        return self._call(f"update:{sk}", lambda: self.store.update(pk, sk, change))

    def put_new_and_update(self, item: Any, *updates: Any) -> Any:
        name = ":".join(["put_new_and_update", item["sk"], *(each.sk for each in updates)])
        return self._call(name, lambda: self.store.put_new_and_update(item, *updates))

    def _call(self, name: str, operation: Callable[[], Any]) -> Any:
        past = lines(self.record)
        number = sum(words[0] == "call" for words in past)
        is_last = number == self.killed_at and all(words[0] != "killed" for words in past)
        note(self.record, "call", name)
        if is_last and self.side == "before":
            self._kill(name)
        result = operation()
        note(self.record, "done", name)
        if is_last:
            self._kill(name)
        return result

    def _kill(self, name: str) -> None:
        note(self.record, "killed", self.side, name)
        os.kill(os.getpid(), signal.SIGKILL)


def main(endpoint: str, table: str, folder: str, calls: str) -> None:
    dynamodb = client(endpoint, timeout_s=TIMEOUT_S)
    store, alive = DynamoStore(dynamodb, table), 0
    dynamodb.describe_table(TableName=table)  # workers inherit what the first request initializes
    dynamodb.close()  # except the connection: each has its own
    for line in sys.stdin:
        if alive == AT_ONCE:
            os.wait()
            alive -= 1
        pk = line.strip()
        number = number_of(pk)
        record = Path(folder, str(number))
        doomed = KillingStore(store, record, number // 2 % int(calls), SIDES[number % 2])
        worker = make_worker(doomed, clock_of(record))
        if os.fork() == 0:
            _work(worker, pk)
        alive += 1
    for _ in range(alive):
        os.wait()


def _work(worker: Worker, pk: str) -> None:
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    try:
        worker.work(pk, DELIVERY)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(0)  # inherited connections belong to the parent


if __name__ == "__main__":
    main(*sys.argv[1:])
