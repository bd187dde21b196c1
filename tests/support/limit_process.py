"""Processes that compete for the open tasks of one principal.

`limit_process.py <endpoint> <table> <processes> <limit>`: each process creates tasks until it is refused, and
prints a line for each outcome: `created <task id>` or `refused`.
"""

import os
import sys

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.limit import TooManyOpenTasks
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import client


def race(endpoint: str, table: str, limit: int) -> None:
    tasks = Tasks(
        DynamoStore(client(endpoint), table), RecordingDispatcher(), lambda: 1_795_000_000_000, max_open=limit
    )
    call = TaskCall("tools/call", "x", {}, None, None)
    try:
        while True:
            task = tasks.create(call, "alice", Journal("run"), worker="w", capabilities={}, ttl_ms=60_000)
            report(f"created {task.task_id}")
    except TooManyOpenTasks:
        report("refused")


def report(line: str) -> None:
    """Write each line in one call, so that lines of several processes are not mixed."""
    os.write(1, f"{line}\n".encode())


def main(endpoint: str, table: str, processes: str, limit: str) -> None:
    for _ in range(int(processes)):
        if os.fork() == 0:
            race(endpoint, table, int(limit))
            os._exit(0)
    for _ in range(int(processes)):
        _, status = os.wait()
        if status:
            sys.exit("a process failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
