"""Renew the lease of a task for some minutes of virtual time, as a worker's heartbeat does."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_roundtrip.deployment.settings import DEFAULTS
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall
from mcp_roundtrip.tasks.lease import MAX_LEASE_MS, Delivery, Lease
from mcp_roundtrip.tasks.open_task_limit import Owner
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store_interface import TaskStore
from measure import BenchmarkError
from task_server import NullDispatcher

MINUTES = 10


@dataclass
class Clock:
    """A clock in epoch milliseconds."""

    now_ms: float = 1_785_196_800_000

    def __call__(self) -> int:
        return int(self.now_ms)


def claim_lease(store: TaskStore, clock: Clock) -> Lease:
    """Create a task and claim it for an invocation of 15 minutes. Raise BenchmarkError."""
    tasks = Tasks(store, NullDispatcher(), clock_ms=clock)
    call = TaskCall("tools/call", "provision_database", {"name": "orders"}, None, None)
    task = tasks.create(
        call, Owner(None, None, "bench"), Journal("bench"), worker="worker", capabilities={}, ttl_ms=3_600_000
    )
    delivery = Delivery("bench", MAX_LEASE_MS, DEFAULTS["task_lease_s"] * 1000)
    lease = Lease(store, task.pk, "bench", delivery, clock)
    if lease.claim() is None:
        raise BenchmarkError("the task could not be claimed")
    return lease


def renew_for_minutes(lease: Lease, clock: Clock) -> int:
    """Renew the lease for MINUTES, and return the number of renewals. Raise BenchmarkError if one fails."""
    ends_ms, renewals = clock.now_ms + MINUTES * 60_000, 0
    pause_ms: float | None = lease.renewal_interval_ms
    while pause_ms is not None and clock.now_ms + pause_ms <= ends_ms:
        clock.now_ms += pause_ms
        pause_ms = lease.beat()
        renewals += 1
    if pause_ms != lease.renewal_interval_ms:
        raise BenchmarkError("a renewal failed")
    return renewals
