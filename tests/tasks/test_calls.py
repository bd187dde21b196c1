"""The requests to DynamoDB of each operation: they are what a task costs, and most of what it waits for."""

import secrets
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from mcp_roundtrip import Context, Elicit, Server
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.server.invocation import Invocation
from mcp_roundtrip.server.task_runner import TaskRunner
from mcp_roundtrip.tasks.items import RESULT_CHUNK, TaskCall
from mcp_roundtrip.tasks.model import Status
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.worker import Worker
from mcp_roundtrip_testing.ports import make_ports
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import new_table

pytest_plugins = ["support.ministack"]

LEASE_MS = 60_000
MB = 1_048_576
"""Bytes of items after which DynamoDB ends a page of Query."""
ANSWER = {"action": "accept", "content": {"value": True}}

CREATED = Counter(PutItem=2)
READ = Counter(GetItem=1)
NEW_STEP = Counter(GetItem=1, PutItem=1)
RESUMED = Counter(Query=1, UpdateItem=2)

server = Server("counted")


def text(size: int) -> str:
    return secrets.token_hex(size // 2)


@server.tool(task="required")
def steps(ctx: Context, count: int, size: int) -> int:
    """So many steps with results of so many bytes."""
    ctx.run_as_task()
    for number in range(count):
        ctx.step(f"step-{number}", text, size)
    return count


@server.tool(task="required")
def questions(ctx: Context, count: int) -> int:
    """So many questions in one round."""
    ctx.run_as_task()
    ctx.ask(*(Elicit(f"question-{number}", "Go on?", bool) for number in range(count)))
    return count


@server.tool(task="required")
def long_text(ctx: Context, size: int) -> str:
    """A result of so many bytes."""
    ctx.run_as_task()
    return text(size)


@dataclass
class Counted:
    """Tasks of `server` in a table, and the operations that were sent to DynamoDB since `taken`."""

    store: DynamoStore
    sent: Counter = field(default_factory=Counter)
    task: object = None

    def __post_init__(self):
        self.tasks = Tasks(self.store, RecordingDispatcher(), now_ms)

    def note(self, event_name, **_):
        """A handler of botocore's before-send: every attempt counts."""
        self.sent[event_name.rpartition(".")[2]] += 1

    def taken(self):
        """What was sent since the last time."""
        sent, self.sent = self.sent, Counter()
        return sent

    def create(self, tool, entries=(), **arguments):
        """The requests that create a task of the tool, whose journal begins with `entries`."""
        call = TaskCall("tools/call", tool, arguments, None, None)
        journal, capabilities = Journal("run", tuple(entries)), {"elicitation": {}}
        self.task = self.tasks.create(
            call, None, journal, worker="1", capabilities=capabilities, ttl_ms=600_000
        )
        return self.taken()

    def work(self):
        body = TaskRunner(server._tool_methods, make_ports(), Invocation("worker", 1e18))
        dispatcher = RecordingDispatcher()
        Worker(self.store, dispatcher, body, now_ms, lambda: secrets.token_hex(12)).work(
            self.task.pk, LEASE_MS
        )
        return self.taken()

    def poll(self):
        self.task = self.tasks.get(None, self.task.task_id)
        return self.taken()

    def update(self, *keys):
        self.tasks.update(None, self.task.task_id, dict.fromkeys(keys, ANSWER))
        return self.taken()

    def cancel(self):
        self.tasks.cancel(None, self.task.task_id)
        return self.taken()


def now_ms():
    return int(time.time() * 1000)


def recorded(count, size):
    """The journal of `steps` after all of them."""
    return [Entry(f"step-{number}", Kind.STEP, text(size)) for number in range(count)]


@pytest.fixture
def counted(ministack_dynamodb):
    store = DynamoStore(ministack_dynamodb, new_table(ministack_dynamodb))
    counted = Counted(store)
    ministack_dynamodb.meta.events.register("before-send.dynamodb", counted.note)
    yield counted
    ministack_dynamodb.meta.events.unregister("before-send.dynamodb", counted.note)


@pytest.mark.parametrize("entries", [0, 1, 10])
def test_a_task_is_created_by_one_put_beyond_its_journal_and_its_call(counted, entries):
    journal = Counter(PutItem=entries)
    assert counted.create("steps", recorded(entries, 8), count=entries, size=8) == CREATED + journal


def test_a_poll_is_one_get_in_every_status(counted):
    counted.create("questions", count=1)
    assert (counted.poll(), counted.task.status) == (READ, Status.WORKING)
    counted.work()
    assert (counted.poll(), counted.task.status) == (READ, Status.INPUT_REQUIRED)
    counted.update("question-0")
    counted.work()
    assert (counted.poll(), counted.task.status) == (READ, Status.COMPLETED)


def test_a_poll_gets_each_piece_of_a_large_result_besides(counted):
    counted.create("long_text", size=4 * RESULT_CHUNK)
    counted.work()
    sent = counted.poll()
    assert counted.task.result_chunks > 1
    assert sent == READ + Counter(GetItem=counted.task.result_chunks)


@pytest.mark.parametrize("answers", [1, 2, 5])
def test_an_update_is_one_get_and_one_put_for_each_answer_and_one_update(counted, answers):
    counted.create("questions", count=answers)
    counted.work()
    sent = counted.update(*(f"question-{number}" for number in range(answers)))
    assert sent == Counter(GetItem=1, PutItem=answers, UpdateItem=1)


def test_an_update_with_nothing_that_was_asked_is_one_get(counted):
    counted.create("questions", count=1)
    counted.work()
    assert counted.update("unknown") == READ


@pytest.mark.parametrize("entries", [0, 1, 10, 100])
def test_a_resume_is_one_query_and_two_updates_however_many_entries_it_replays(counted, entries):
    counted.create("steps", recorded(entries, 8), count=entries, size=8)
    assert counted.work() == RESUMED
    counted.poll()
    assert counted.task.status is Status.COMPLETED


def test_a_resume_after_an_answer_is_one_query_and_two_updates(counted):
    counted.create("questions", count=2)
    assert counted.work() == RESUMED, "the pass that parks"
    counted.update("question-0", "question-1")
    assert counted.work() == RESUMED, "the pass that ends"


@pytest.mark.parametrize("megabytes", [1, 2, 3])
def test_a_resume_is_one_query_for_each_megabyte_of_the_journal(counted, megabytes):
    size = 100_000
    entries = megabytes * MB // size - 1  # what else lies there, and the names of attributes, take the rest
    counted.create("steps", recorded(entries, size), count=entries, size=size)
    sent = counted.work()
    assert sent["UpdateItem"] == 2
    assert sent["Query"] == megabytes
    assert sent.total() == megabytes + 2


@pytest.mark.parametrize("count", [1, 10])
def test_each_new_step_is_one_get_and_one_put(counted, count):
    counted.create("steps", count=count, size=8)
    expected = RESUMED.copy()
    for _ in range(count):
        expected += NEW_STEP
    assert counted.work() == expected


def test_a_cancellation_is_one_get_and_one_update(counted):
    counted.create("questions", count=1)
    assert counted.cancel() == Counter(GetItem=1, UpdateItem=1)


def test_a_duplicate_delivery_is_one_update_and_one_get(counted):
    counted.create("questions", count=1)
    counted.work()
    assert counted.work() == Counter(UpdateItem=1, GetItem=1)
