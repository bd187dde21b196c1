"""Processes that park the same call at once.

`parking_process.py <endpoint> <table> <processes>`: each process parks the call and prints the id of the task
that it got: `parked <task id>`.
"""

import sys

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.parked import ParkedCaller, ParkedCalls
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import client
from support.forks import print_line, run_in_processes

ALICE = Principal("jwt", "alice").canonical()


def park(endpoint: str, table: str, number: int) -> None:
    store = DynamoStore(client(endpoint), table)
    calls = ParkedCalls.of(Tasks(store, RecordingDispatcher(), lambda: 1_795_000_000_000, max_open=3))
    call = TaskCall("tools/call", "x", {}, None, None)
    task = calls.create(ParkedCaller(ALICE, ALICE, "call"), call, Journal(f"flow-{number}"), {}, "client")
    print_line(f"parked {task.task_id}")


def main(endpoint: str, table: str, processes: str) -> None:
    run_in_processes(int(processes), lambda number: park(endpoint, table, number))


if __name__ == "__main__":
    main(*sys.argv[1:])
