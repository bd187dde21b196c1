"""The DynamoDB requests of each operation, which determine the cost and most of the latency of a task."""

import secrets
from collections import Counter

import pytest

from mcp_roundtrip import Context, Elicit, Server
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.tasks.model import Status
from mcp_roundtrip.tasks.related_items import RESULT_CHUNK, TaskCall
from support.deployment import Deployment
from support.dynamodb_clients import new_table
from support.heartbeat_timer import HeartbeatTimer
from support.stored_tasks import StoredTasks

pytest_plugins = ["support.ministack"]

MB = 1_048_576
"""DynamoDB ends a page of Query after this many bytes of items."""
ANSWER = {"action": "accept", "content": {"value": True}}

CREATED = Counter(PutItem=2)
READ = Counter(GetItem=1)

RESUMED = Counter(Query=1, UpdateItem=2)

server = Server("counted_tasks")


def text(size: int) -> str:
    return secrets.token_hex(size // 2)


@server.tool(task="required")
def steps(ctx: Context, count: int, size: int, once: bool = False) -> int:
    """Run `count` steps with results of `size` bytes."""
    ctx.run_as_task()
    for number in range(count):
        ctx.step(f"step-{number}", text, size, at_most_once=once)
    return count


@server.tool(task="required")
def questions(ctx: Context, count: int) -> int:
    """Ask `count` questions in one round."""
    ctx.run_as_task()
    ctx.ask(*(Elicit(f"question-{number}", "Go on?", bool) for number in range(count)))
    return count


@server.tool(task="required")
def long_text(ctx: Context, size: int) -> str:
    """Return a result of `size` bytes."""
    ctx.run_as_task()
    return text(size)


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

    def poll(self):
        self.task = self.stored.get(self.task)
        return self.taken()

    def update(self, *keys):
        self.stored.tasks.update("alice", self.task.task_id, dict.fromkeys(keys, ANSWER))
        return self.taken()


def recorded(count, size):
    """Return the journal of `steps` after all of them ran."""
    return [Entry(f"step-{number}", Kind.STEP, text(size)) for number in range(count)]


@pytest.fixture
def counted_tasks(ministack_dynamodb):
    return CountedTasks(ministack_dynamodb)


@pytest.mark.parametrize("entries", [0, 1, 10])
def test_creating_a_task_takes_one_put_besides_its_journal_and_call(counted_tasks, entries):
    journal = Counter(PutItem=entries)
    assert counted_tasks.create("steps", recorded(entries, 8), count=entries, size=8) == CREATED + journal


def test_a_poll_takes_another_get_per_chunk_of_a_large_result(counted_tasks):
    counted_tasks.create("long_text", size=4 * RESULT_CHUNK)
    counted_tasks.work()
    sent = counted_tasks.poll()
    assert counted_tasks.task.result_chunks > 1
    assert sent == READ + Counter(GetItem=counted_tasks.task.result_chunks)


@pytest.mark.parametrize("entries", [0, 1, 10, 100])
def test_a_resume_takes_one_query_and_two_updates_for_any_number_of_entries(counted_tasks, entries):
    counted_tasks.create("steps", recorded(entries, 8), count=entries, size=8)
    assert counted_tasks.work() == RESUMED
    counted_tasks.poll()
    assert counted_tasks.task.status is Status.COMPLETED


@pytest.mark.parametrize("answers", [1, 2, 5])
def test_an_answer_takes_one_get_one_put_per_answer_and_one_update(counted_tasks, answers):
    counted_tasks.create("questions", count=answers)
    assert counted_tasks.work() == RESUMED, "the pass that parks"
    assert counted_tasks.work() == Counter(UpdateItem=1, GetItem=1), "a duplicate delivery"
    assert counted_tasks.update("unknown") == READ
    sent = counted_tasks.update(*(f"question-{number}" for number in range(answers)))
    assert sent == Counter(GetItem=1, PutItem=answers, UpdateItem=1)
    assert counted_tasks.work() == RESUMED, "the pass that ends"


@pytest.mark.parametrize("megabytes", [1, 2, 3])
def test_a_resume_takes_one_query_per_megabyte_of_journal(counted_tasks, megabytes):
    size = 100_000
    entries = megabytes * MB // size - 1  # other items and the names of attributes take the rest
    counted_tasks.create("steps", recorded(entries, size), count=entries, size=size)
    sent = counted_tasks.work()
    assert sent["UpdateItem"] == 2
    assert sent["Query"] == megabytes
    assert sent.total() == megabytes + 2


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("once", [False, True])
def test_each_new_step_takes_one_get_and_one_put_and_at_most_once_a_transaction(counted_tasks, count, once):
    counted_tasks.create("steps", count=count, size=8, once=once)
    begun = Counter(TransactWriteItems=count) if once else Counter()
    assert counted_tasks.work() == RESUMED + Counter(GetItem=count, PutItem=count) + begun
