"""Count the DynamoDB requests of each task operation, where they are sent: `task_dynamodb_calls.py PIPE`."""

import marshal
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from invocations import LambdaContext
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall
from mcp_roundtrip.tasks.open_task_limit import Owner
from task_server import ANSWER, deploy

ENTRIES = 10
ANSWERS = 2
LARGE = 100_000
MEGABYTE = 1_048_576

MAX_OPEN_TASKS = 10
"""The default of MCP_MAX_OPEN_TASKS."""

sent: Counter[str] = Counter()
"""The requests, including retries, by operation."""

client = AwsClients(on_request=lambda service, operation: sent.update([operation])).client("dynamodb")
deployment = deploy(DynamoStore(client, os.environ["MCP_TASK_TABLE"]), max_open=MAX_OPEN_TASKS)


def requests_of(operation: Callable[[], object]) -> dict[str, int]:
    sent.clear()
    operation()
    return dict(sent)


class BenchmarkTask:
    """A task of a tool, with `entries` in its journal at creation."""

    def __init__(self, tool: str, entries: tuple[Entry, ...] = (), **arguments: Any) -> None:
        self.call = TaskCall("tools/call", tool, arguments, None, None)
        self.journal = Journal("bench", entries)
        self.id = self.pk = ""

    def create(self) -> None:
        task = deployment.tasks.create(
            self.call,
            Owner(None, None, "bench"),
            self.journal,
            worker="worker",
            capabilities={"elicitation": {}},
            ttl_ms=3_600_000,
        )
        self.id, self.pk = task.task_id, task.pk

    def work(self) -> None:
        deployment.server.worker_handler({"task": self.pk}, LambdaContext())

    def poll(self) -> None:
        deployment.tasks.get(None, self.id)

    def answer(self) -> None:
        keys = [f"question-{number}" for number in range(ANSWERS)]
        deployment.tasks.update(None, self.id, dict.fromkeys(keys, ANSWER))

    def cancel(self) -> None:
        deployment.tasks.cancel(None, self.id)


def recorded_steps(count: int, value: Any) -> tuple[Entry, ...]:
    return tuple(Entry(f"step-{number}", Kind.STEP, value) for number in range(count))


def main(pipe: int) -> None:
    asking = BenchmarkTask("questions", recorded_steps(ENTRIES, 0), count=ANSWERS)
    adding = BenchmarkTask("add", a=20, b=22)
    # The other items of the task are smaller than one result.
    count = 2 * MEGABYTE // LARGE - 1
    large = BenchmarkTask("texts", recorded_steps(count, "x" * LARGE), count=count, size=LARGE)
    calls = {
        "create": requests_of(asking.create),
        "pass that ends with questions": requests_of(asking.work),
        "poll": requests_of(asking.poll),
        "update": requests_of(asking.answer),
        "resume": requests_of(asking.work),
    }
    adding.create()
    calls["pass with a new step"] = requests_of(adding.work)
    large.create()
    calls["resume, 2 MB"] = requests_of(large.work)
    asking.create()
    calls["cancel"] = requests_of(asking.cancel)
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"calls": calls, "entries": ENTRIES, "answers": ANSWERS}, out)


if __name__ == "__main__":
    main(int(sys.argv[1]))
