"""The audit record of a task that no worker ends: it has expired, or its workers were lost.

The process that notices it writes the record: a poll, a wake-up or a worker. All processes that notice it at
the same time write the same record id and outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.server.audit_vocabulary import TASK_END
from mcp_roundtrip.server.audited_operation import AuditedOperation
from mcp_roundtrip.tasks.endings import EndReason
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.model import CALL, Task

SUPERSEDED: Final = "superseded"
"""The outcome if the task ended otherwise meanwhile, or a worker has taken it."""


def begin_task_end(
    ports: Ports, correlation_id: str, task: Task, reason: EndReason
) -> Callable[[bool], None]:
    """Store the `begun` line, and return what stores the `ended` line (see `tasks.endings.OnEnding`).

    Raises StoreError, and ProtocolError if the line cannot be stored: the task does not end then.
    """
    item = ports.tasks().store.get(task.pk, CALL)
    operation = _AuditedTaskEnd(ports, correlation_id, task, reason)
    operation.begin_task(task, None if item is None else TaskCall.from_item(item))
    return operation.end_task


class _AuditedTaskEnd(AuditedOperation):
    def __init__(self, ports: Ports, correlation_id: str, task: Task, reason: EndReason) -> None:
        assert ports.audit is not None
        super().__init__(ports.audit, ports, correlation_id)
        self._reason = reason
        # A task that a worker took, and was not abandoned, may be abandoned later. A task expires once.
        version = task.version if reason == "abandoned" else 0
        named = f"mcp-rs/v1/audit-task-end:{task.pk}:{reason}:{version}"
        self._set(record=sha256(named.encode()).hexdigest()[:32], method=TASK_END)

    def end_task(self, has_ended: bool) -> None:
        """Store the `ended` line. A failure is logged only."""
        self._set(outcome=self._reason if has_ended else SUPERSEDED)
        self.end()
