"""Processes that compete for the open tasks of one principal.

`limit_process.py <endpoint> <table> <processes> <limit>`: each process creates tasks and parks calls in turn
until it is refused, and prints a line for each outcome: `created <task id>`, `parked <task id>` or `refused`.
"""

import sys
from itertools import count

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.limit import TooManyOpenTasks
from mcp_roundtrip.tasks.parked import ParkedCaller, ParkedCalls
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import client
from support.forks import print_line, run_in_processes

ALICE = Principal("jwt", "alice").canonical()


def race(endpoint: str, table: str, limit: int, process: int) -> None:
    tasks = Tasks(
        DynamoStore(client(endpoint), table), RecordingDispatcher(), lambda: 1_795_000_000_000, max_open=limit
    )
    call = TaskCall("tools/call", "x", {}, None, None)
    parked_calls = ParkedCalls.of(tasks)
    try:
        for number in count(process):
            if number % 2:
                task = tasks.create(call, ALICE, Journal("run"), worker="w", capabilities={}, ttl_ms=60_000)
                print_line(f"created {task.task_id}")
            else:
                caller = ParkedCaller(ALICE, ALICE, f"call {process} {number}")
                task = parked_calls.create(caller, call, Journal(f"flow {process} {number}"), {}, "client")
                print_line(f"parked {task.task_id}")
    except TooManyOpenTasks:
        print_line("refused")


def main(endpoint: str, table: str, processes: str, limit: str) -> None:
    run_in_processes(int(processes), lambda number: race(endpoint, table, int(limit), number))


if __name__ == "__main__":
    main(*sys.argv[1:])
