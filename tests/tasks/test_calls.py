"""The DynamoDB requests of each operation, which determine the cost and most of the latency of a task."""

import secrets

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.tasks.related_items import TaskCall
from support.deployment import Deployment
from support.dynamodb_clients import new_table
from support.heartbeat_timer import HeartbeatTimer
from support.stored_tasks import StoredTasks

pytest_plugins = ["support.ministack"]

MB = 1_048_576
"""DynamoDB ends a page of Query after this many bytes of items."""

server = Server("counted_tasks")


def text(size: int) -> str:
    return secrets.token_hex(size // 2)


@server.tool(task="required")
def steps(ctx: Context, count: int, size: int) -> int:
    """Run `count` steps with results of `size` bytes."""
    ctx.run_as_task()
    for number in range(count):
        ctx.step(f"step-{number}", text, size)
    return count


class CountedTasks:
    """Tasks of `server`. Each method returns the DynamoDB operations that it took; every attempt counts."""

    def __init__(self, dynamodb):
        store = DynamoStore(dynamodb, new_table(dynamodb))
        self.deployment, self.sent, self.task = Deployment(server, store=store), dynamodb.requests, None
        self.stored = StoredTasks(self.deployment.table)
        self.sent.clear()

    def taken(self):
        """Return the operations sent since the last call."""
        sent = self.sent.copy()
        self.sent.clear()
        return sent

    def create(self, tool, entries=(), **arguments):
        """Create a task whose journal starts with `entries`."""
        call, journal = TaskCall("tools/call", tool, arguments, None, None), Journal("run", tuple(entries))
        self.task = self.stored.create(call, journal, capabilities={"elicitation": {}})
        return self.taken()

    def work(self):
        without_heartbeats = self.deployment.by(replaced_ports={"wait_ms": HeartbeatTimer()})
        without_heartbeats.work({"task": self.task.pk})
        return self.taken()


def recorded(count, size):
    """Return the journal of `steps` after all of them ran."""
    return [Entry(f"step-{number}", Kind.STEP, text(size)) for number in range(count)]


@pytest.fixture
def counted_tasks(ministack_dynamodb):
    return CountedTasks(ministack_dynamodb)


@pytest.mark.parametrize("megabytes", [1, 2, 3])
def test_a_resume_takes_one_query_per_megabyte_of_journal(counted_tasks, megabytes):
    size = 100_000
    entries = megabytes * MB // size - 1  # other items and the names of attributes take the rest
    counted_tasks.create("steps", recorded(entries, size), count=entries, size=size)
    sent = counted_tasks.work()
    assert sent["UpdateItem"] == 2
    assert sent["Query"] == megabytes
    assert sent.total() == megabytes + 2
