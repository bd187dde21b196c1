"""How often each operation calls DynamoDB, counted where requests are sent: `task_calls.py PIPE`."""

import marshal
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mcp_roundtrip.aws.clients import dynamodb_client
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.tasks.items import TaskCall
from probe import Context
from task_server import ANSWER, deployed

ENTRIES = 10
ANSWERS = 2
LARGE = 100_000
MEGABYTE = 1_048_576

client = dynamodb_client()
ours = deployed(
    DynamoStore(client, os.environ["MCP_TASK_TABLE"]), max_open=10
)  # the default of MCP_MAX_OPEN_TASKS


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """The requests that are sent in the block, repeated ones included, by operation."""
    sent: Counter[str] = Counter()

    def note(event_name: str, **_: Any) -> None:
        sent[event_name.rpartition(".")[2]] += 1

    client.meta.events.register("before-send.dynamodb", note)
    try:
        yield sent
    finally:
        client.meta.events.unregister("before-send.dynamodb", note)


def calls_of(operation: Callable[[], object]) -> dict[str, int]:
    with counted() as sent:
        operation()
    return dict(sent)


class Life:
    """A task of a tool, whose journal begins with `entries`."""

    def __init__(self, tool: str, entries: tuple[Entry, ...] = (), **arguments: Any) -> None:
        self.call = TaskCall("tools/call", tool, arguments, None, None)
        self.journal = Journal("bench", entries)
        self.id = self.pk = ""

    def create(self) -> None:
        task = ours.tasks.create(
            self.call,
            None,
            self.journal,
            worker="worker",
            capabilities={"elicitation": {}},
            ttl_ms=3_600_000,
        )
        self.id, self.pk = task.task_id, task.pk

    def work(self) -> None:
        ours.server.worker_handler({"task": self.pk}, Context())

    def poll(self) -> None:
        ours.tasks.get(None, self.id)

    def answer(self) -> None:
        keys = [f"question-{number}" for number in range(ANSWERS)]
        ours.tasks.update(None, self.id, dict.fromkeys(keys, ANSWER))

    def cancel(self) -> None:
        ours.tasks.cancel(None, self.id)


def recorded(count: int, value: Any) -> tuple[Entry, ...]:
    return tuple(Entry(f"step-{number}", Kind.STEP, value) for number in range(count))


def main(pipe: int) -> None:
    asks = Life("questions", recorded(ENTRIES, 0), count=ANSWERS)
    adds = Life("add", a=20, b=22)
    # What lies there besides the results takes less than one of them.
    count = 2 * MEGABYTE // LARGE - 1
    large = Life("texts", recorded(count, "x" * LARGE), count=count, size=LARGE)
    calls = {
        "create": calls_of(asks.create),
        "pass that asks": calls_of(asks.work),
        "poll": calls_of(asks.poll),
        "update": calls_of(asks.answer),
        "resume": calls_of(asks.work),
    }
    adds.create()
    calls["pass with a new step"] = calls_of(adds.work)
    large.create()
    calls["resume, 2 MB"] = calls_of(large.work)
    asks.create()
    calls["cancel"] = calls_of(asks.cancel)
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"calls": calls, "entries": ENTRIES, "answers": ANSWERS}, out)


if __name__ == "__main__":
    main(int(sys.argv[1]))
