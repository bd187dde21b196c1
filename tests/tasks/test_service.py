"""Large results with concurrent workers, polls and expiry."""

from base64 import b64encode
from random import Random

import pytest

from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.items import put_result
from mcp_roundtrip.tasks.model import Status
from support.faulty_store import FaultyStore
from support.stored_tasks import StoredTasks

TTL_MS = 60_000
LEASE_MS = 120_000
LARGE = {"v": b64encode(Random(1).randbytes(450_000)).decode()}
OTHER = {"v": b64encode(Random(2).randbytes(450_000)).decode()}


@pytest.fixture
def table():
    return StoredTasks.over(FaultyStore(matches=lambda operation: operation.name == "update", times=0))


@pytest.fixture
def task(table):
    return table.create(ttl_ms=TTL_MS)


def write_pieces(table, task, owner, result):
    """Write the chunks of a result, and return the change that completes the task."""
    attributes = put_result(table.store, task, owner, result)
    assert attributes["resn"] > 1
    return transitions.complete(owner=owner, now_ms=table.now_ms(), attributes=attributes)


def test_a_result_written_while_a_poll_expires_the_task_is_complete(table, task):
    table.claim(task, "worker", LEASE_MS)
    table.clock.advance(TTL_MS / 1000)
    table.store.times = 1
    table.store.before = lambda _: table.update(task, write_pieces(table, task, "worker", LARGE))
    polled = table.get(task)
    assert (polled.status, polled.result) == (Status.COMPLETED, LARGE)


def test_chunks_of_a_lost_worker_do_not_corrupt_the_result_of_the_next(table, task):
    table.claim(task, "first", LEASE_MS)
    completed_by_first = write_pieces(table, task, "first", OTHER)
    table.update(task, transitions.release(owner="first"))
    table.claim(task, "second", LEASE_MS)
    completed_by_second = write_pieces(table, task, "second", LARGE)
    assert table.update(task, completed_by_first) is None, "the first worker resumes too late"
    assert table.update(task, completed_by_second) is not None
    assert table.get(task).result == LARGE
