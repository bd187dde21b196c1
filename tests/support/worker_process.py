"""Worker processes that are killed; each records what it does.

`worker_process.py <endpoint> <table> <folder> <calls>` forks a worker for each partition key that it reads
from stdin. The id of a task is its number. The number says at which of the <calls> of a run its worker is
killed, and on which side of it. Records are in <folder>, one for each task, with one line for each event.
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
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.errors import StepInterrupted
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.task_runner import TaskRunner
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip.tasks.worker import Worker
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import client

LEASE_MS = 60_000
TIMEOUT_S = 50
"""A function's time is over before its lease is, and then Lambda ends it."""
AFTER_DEATH_MS = 2 * LEASE_MS
"""How far a task's clock advances when its worker is killed, so that no test waits for a lease to end."""
AT_ONCE = 4
ANSWER = {"action": "accept", "content": {"value": True}}
SIDES = ("before", "after")

server = Server("jobs")


def note(record: Path, *words: str) -> None:
    """Add a line to a record. O_APPEND: lines of several processes stand whole, and in their order."""
    descriptor = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (" ".join(words) + "\n").encode())
    os.close(descriptor)


def lines(record: Path) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in record.read_text().splitlines()] if record.exists() else []


def effect(record: str, name: str) -> str:
    """Something that can be seen from outside; returns what no other run of it returns."""
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
    """The computer's clock, on which workers and clients agree."""
    return int(time.time() * 1000)


def clock_of(record: Path) -> Callable[[], int]:
    """The clock of the task with this record: the computer's, advanced when a worker was killed."""
    return lambda: now_ms() + AFTER_DEATH_MS * sum(words[0] == "killed" for words in lines(record))


def make_worker(store: TaskStore, clock_ms: Callable[[], int] = now_ms) -> Worker:
    """A worker of `server`, without a deadline."""
    body = TaskRunner(server._tool_methods, make_ports(), Invocation("worker", 1e18))
    return Worker(store, RecordingDispatcher(), body, clock_ms, lambda: secrets.token_hex(12))


def create(tasks: Tasks, record: Path) -> Task:
    """A new task of the tool."""
    call = TaskCall("tools/call", "provision", {"record": str(record)}, None, None)
    capabilities: dict[str, Any] = {"elicitation": {}}
    journal = Journal(record.name)
    return tasks.create(call, None, journal, worker="1", capabilities=capabilities, ttl_ms=600_000)


def id_of(number: int) -> str:
    """The id of the task with this number."""
    return urlsafe_b64encode(number.to_bytes(24, "big")).decode()


def number_of(pk: str) -> int:
    """The number of the task with this partition key."""
    return int.from_bytes(urlsafe_b64decode(pk.partition("#")[2]), "big")


@dataclass(frozen=True)
class Doomed:
    """A store that keeps the record of a task, and at its call `dies_at` (from 0) kills its process, once.

    Calls are counted over all workers of the task. Without `dies_at` it only keeps the record.
    """

    store: TaskStore
    record: Path
    dies_at: int | None = None
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
        is_last = number == self.dies_at and all(words[0] != "killed" for words in past)
        note(self.record, "call", name)
        if is_last and self.side == "before":
            self._die(name)
        result = operation()
        note(self.record, "done", name)
        if is_last:
            self._die(name)
        return result

    def _die(self, name: str) -> None:
        note(self.record, "killed", self.side, name)
        os.kill(os.getpid(), signal.SIGKILL)


def main(endpoint: str, table: str, folder: str, calls: str) -> None:
    dynamodb = client(endpoint, timeout_s=TIMEOUT_S)
    store, alive = DynamoStore(dynamodb, table), 0
    dynamodb.describe_table(TableName=table)  # what a first request prepares, workers find prepared
    dynamodb.close()  # but for the connection: each has its own
    for line in sys.stdin:
        if alive == AT_ONCE:
            os.wait()
            alive -= 1
        pk = line.strip()
        number = number_of(pk)
        record = Path(folder, str(number))
        doomed = Doomed(store, record, number // 2 % int(calls), SIDES[number % 2])
        worker = make_worker(doomed, clock_of(record))
        if os.fork() == 0:
            _work(worker, pk)
        alive += 1
    for _ in range(alive):
        os.wait()


def _work(worker: Worker, pk: str) -> None:
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    try:
        worker.work(pk, LEASE_MS)
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(0)  # what the process has inherited is its parent's


if __name__ == "__main__":
    main(*sys.argv[1:])
