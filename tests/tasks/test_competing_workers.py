"""The lease of a task for which workers with different clocks compete."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.lease import Delivery, Lease
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip_testing.task_table import MemoryStore
from support.task_items import INVOCATION_MS, LONG_TASK, NEW, NOW, stored_task

LEASE_MS = 60_000
HALF_MS = LEASE_MS // 2

OWNERS = st.integers(0, 3)
"""Workers in any order; each may be stopped for any time, because it acts only when its rule is chosen."""


class LeaseStateMachine(RuleBasedStateMachine):
    """Workers with clocks that differ by up to half a lease, on one task."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = NOW
        self.store = MemoryStore()
        self.store.put_new(LONG_TASK)
        self.leases: dict[int, Lease] = {}
        self.lost: set[int] = set()
        self.claims = 0

    def clock_of(self, worker: int) -> int:
        """Return the time of a worker's clock. Worker 1's and worker 2's differ by almost half a lease."""
        return self.now_ms + (0, -HALF_MS // 2 + 1, HALF_MS // 2 - 1, 0)[worker]

    @property
    def task(self) -> Task:
        return stored_task(self.store)

    @rule(ms=st.sampled_from([1, 1_000, LEASE_MS // 3, HALF_MS, LEASE_MS, 3 * LEASE_MS]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(worker=OWNERS)
    def claim(self, worker: int) -> None:
        """A new pass of this worker; an earlier one of it was killed."""
        self.claims += 1
        given = Delivery("", INVOCATION_MS, LEASE_MS)
        lease = Lease(self.store, NEW.pk, f"owner {self.claims}", given, lambda: self.clock_of(worker))
        if lease.claim() is not None:
            self.leases[worker] = lease
            self.lost.discard(worker)
            # A task is abandoned after ten attempts without progress; these workers make progress.
            self.store.update(NEW.pk, TASK, transitions.reset_attempts(owner=lease.owner, seen_entries=0))

    @rule(worker=OWNERS)
    def beat(self, worker: int) -> None:
        if worker in self.leases:
            self.leases[worker].beat()

    @rule(worker=OWNERS)
    def write(self, worker: int) -> None:
        """A worker that may write owns the task; one that lost it never may again."""
        if worker not in self.leases:
            return
        may_write = self.leases[worker].may_continue()
        owns = self.task.lease_owner == self.leases[worker].owner
        assert not may_write or owns
        assert not (may_write and worker in self.lost)
        if not may_write:
            self.lost.add(worker)
        assert may_write or not owns

    @rule(worker=OWNERS)
    def end(self, worker: int) -> None:
        if worker in self.leases:
            lease = self.leases.pop(worker)
            lease.close()
            self.store.update(NEW.pk, TASK, transitions.release(owner=lease.owner))

    @invariant()
    def at_most_one_worker_trusts_its_lease(self) -> None:
        trusting = [lease for lease in self.leases.values() if not lease.is_lost and lease._is_trusted()]
        assert len(trusting) <= 1
        assert all(self.task.lease_owner == lease.owner for lease in trusting)


TestLeaseStateMachine = LeaseStateMachine.TestCase
TestLeaseStateMachine.settings = settings(max_examples=60, stateful_step_count=40)
