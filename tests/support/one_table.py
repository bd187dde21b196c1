"""What processes do in one table at once (`processes.run_at_once`)."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.engine.journal import Fingerprint, Journal
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.limit import TooManyOpenTasks
from mcp_roundtrip.tasks.parked import ParkedCaller, ParkedCalls
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.deployment import Deployment
from support.dynamodb_clients import client

ALICE = Principal("jwt", "alice").canonical()
CALL = TaskCall("tools/call", "x", {}, None, None)


def _tasks(endpoint: str, table: str, limit: int) -> Tasks:
    store = DynamoStore(client(endpoint), table)
    return Tasks(store, RecordingDispatcher(), lambda: 1_795_000_000_000, max_open=limit)


def park(endpoint: str, table: str, number: int) -> str:
    """Park the call that all processes make, and return the id of its task."""
    calls = ParkedCalls.of(_tasks(endpoint, table, limit=3))
    caller = ParkedCaller(ALICE, ALICE, "call")
    return calls.create(caller, CALL, Journal(f"flow-{number}"), {}, "client").task_id


def open_tasks_until_refused(endpoint: str, table: str, limit: int, process: int) -> list[tuple[str, str]]:
    """Create tasks and park other calls in turn, and return what became of each, with the id of its task."""
    tasks = _tasks(endpoint, table, limit)
    outcomes = []
    try:
        for number in count(process):
            flow = f"{process} {number}"
            if number % 2:
                journal = Journal("run")
                task = tasks.create(CALL, ALICE, journal, worker="w", capabilities={}, ttl_ms=60_000)
            else:
                caller = ParkedCaller(ALICE, ALICE, f"call {flow}")
                journal = Journal(f"flow {flow}", outstanding={"size": Fingerprint("message", "form")})
                asked = {"size": {"method": "elicitation/create", "params": {}}}
                task = ParkedCalls.of(tasks).create(caller, CALL, journal, asked, "page")
            outcomes.append(("created" if number % 2 else "parked", task.task_id))
    except TooManyOpenTasks:
        outcomes.append(("refused", ""))
    return outcomes


def order(endpoint: str, table: str, effects: Path, number: int) -> str:
    """Call a tool that asks, and then orders once; return the text of the result.

    The step of the call appends a line to the file `effects`.
    """
    server = Server("processes")

    def append() -> str:
        with effects.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return "ordered"

    @server.tool
    def order(ctx: Context) -> str:
        """Ask, and order once."""
        ctx.elicit("sure", "Order?", bool)
        return ctx.step("order", append)

    store = DynamoStore(client(endpoint), table)
    return Deployment(server, capabilities={}, store=store, stands_still=True).text("order")
