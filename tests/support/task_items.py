"""A newly created task, a longer one, and arguments of transitions."""

from mcp_roundtrip.tasks.model import RETENTION_MS, TASK, Status, Task, WorkState
from mcp_roundtrip.tasks.store_interface import TaskStore

NOW = 1_795_000_000_000
LEASE_MS = 1_000
TTL_MS = 60_000

NEW = Task(
    pk="principal#task",
    status=Status.WORKING,
    work_state=WorkState.READY,
    version=1,
    created_at_ms=NOW,
    updated_at_ms=NOW,
    ttl_ms=TTL_MS,
    expires_s=(NOW + TTL_MS + RETENTION_MS) // 1000,
    worker="7",
    flow_id="run",
    capabilities={},
    requests={},
    accepted_keys=(),
    issued_counts={},
    attempts=0,
    dispatched_at_ms=0,
    dispatch_count=0,
    dialect="extension",
)

INVOCATION_MS = 900_000
LONG_TASK = {**NEW.to_item(), "dead": NOW + 10 * INVOCATION_MS}

END = {"error": {"code": -32603, "message": "Gone."}}
"""The error of `fail`, `expire` and `abandon`."""


def stored_task(store: TaskStore) -> Task:
    item = store.get(NEW.pk, TASK)
    assert item is not None
    return Task.from_item(item)
