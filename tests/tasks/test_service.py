"""Large results with concurrent workers, polls and expiry."""

import random
import string
from dataclasses import dataclass, field

import pytest

from mcp_roundtrip.journal import Journal
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.items import TaskCall, split_result
from mcp_roundtrip.tasks.model import TASK, Status
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import RecordingDispatcher

TTL_MS = 60_000
LEASE_MS = 120_000
LARGE = {"v": "".join(random.Random(1).choices(string.ascii_letters, k=600_000))}
OTHER = {"v": "".join(random.Random(2).choices(string.ascii_letters, k=600_000))}


class InterruptingStore(MemoryStore):
    """A store that calls `meanwhile` once, directly before the next update."""

    meanwhile = None

    def update(self, pk, sk, change):
        if self.meanwhile is not None:
            first, self.meanwhile = self.meanwhile, None
            first()
        return super().update(pk, sk, change)


@dataclass
class Deployment:
    clock: FakeClock = field(default_factory=FakeClock)
    store: InterruptingStore = field(default_factory=InterruptingStore)

    def __post_init__(self):
        self.tasks = Tasks(self.store, RecordingDispatcher(), self.now_ms)
        call = TaskCall("tools/call", "x", {}, None, None)
        self.task = self.tasks.create(call, None, Journal("run"), worker="w", capabilities={}, ttl_ms=TTL_MS)

    def now_ms(self):
        return int(self.clock() * 1000)

    def update(self, change):
        return self.store.update(self.task.pk, TASK, change)

    def claim(self, owner):
        return self.update(
            transitions.claim(
                owner=owner,
                delivery="d",
                until_ms=self.now_ms() + LEASE_MS,
                now_ms=self.now_ms(),
                max_attempts=9,
            )
        )

    def write_pieces(self, owner, result):
        attributes, chunks = split_result(self.task, owner, result)
        assert len(chunks) > 1
        for chunk in chunks:
            self.store.put_new(chunk)
        return transitions.complete(owner=owner, now_ms=self.now_ms(), attributes=attributes)


@pytest.fixture
def deployment():
    return Deployment()


def test_a_result_written_while_a_poll_expires_the_task_is_complete(deployment):
    deployment.claim("worker")
    deployment.clock.advance(TTL_MS / 1000)
    deployment.store.meanwhile = lambda: deployment.update(deployment.write_pieces("worker", LARGE))
    polled = deployment.tasks.get(None, deployment.task.task_id)
    assert (polled.status, polled.result) == (Status.COMPLETED, LARGE)


def test_chunks_of_a_lost_worker_do_not_corrupt_the_result_of_the_next(deployment):
    deployment.claim("first")
    completed_by_first = deployment.write_pieces("first", OTHER)
    deployment.update(transitions.release(owner="first"))
    deployment.claim("second")
    completed_by_second = deployment.write_pieces("second", LARGE)
    assert deployment.update(completed_by_first) is None, "the first worker resumes too late"
    assert deployment.update(completed_by_second) is not None
    assert deployment.tasks.get(None, deployment.task.task_id).result == LARGE
