"""A task whose steps record that they ran, and its workers."""

import os
import secrets
import time
from functools import partial
from pathlib import Path
from typing import Any

from mcp_roundtrip import Context, Server
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
from support.three_steps import take_three_steps

DELIVERY = Delivery("", 50_000, 60_000)
ANSWER = {"action": "accept", "content": {"value": True}}

server = Server("jobs")


def note(record: Path, *words: str) -> None:
    """Append a line to a record. O_APPEND keeps the lines of several threads complete and in order."""
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
    return take_three_steps(ctx, partial(effect, record))


def now_ms() -> int:
    """Return the time of the computer, which workers and clients share."""
    return int(time.time() * 1000)


def make_worker(store: TaskStore) -> Worker:
    """Return a worker of `server` without a deadline."""
    body = TaskRunner(server._tool_methods, make_ports(), Invocation("worker", 1e18))
    return Worker(store, RecordingDispatcher(), body, now_ms, lambda: secrets.token_hex(12))


def create(tasks: Tasks, record: Path) -> Task:
    """Create a task of the tool."""
    call = TaskCall("tools/call", "provision", {"record": str(record)}, None, None)
    capabilities: dict[str, Any] = {"elicitation": {}}
    journal = Journal(record.name)
    return tasks.create(call, None, journal, worker="1", capabilities=capabilities, ttl_ms=600_000)
