"""The audit record of a task that no worker ends: it has expired, or its workers were lost.

The process that notices it writes the record: a poll, a wake-up or a worker. All processes that notice it at
the same time write the same record id, and one of them the `ended` line.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from mcp_roundtrip.audit import client_members
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.server.audited_operation import AuditedOperation
from mcp_roundtrip.tasks.endings import EndReason
from mcp_roundtrip.tasks.items import TaskCall
from mcp_roundtrip.tasks.model import CALL, Task

TASK_END: Final = "task_end"
"""The `method` of the record."""


def begin_task_end(ports: Ports, correlation_id: str, task: Task, reason: EndReason) -> Callable[[], None]:
    """Store the `begun` line, and return what stores the `ended` line.

    Raises StoreError, and ProtocolError if the line cannot be stored: the task does not end then.
    """
    item = ports.tasks().store.get(task.pk, CALL)
    operation = _AuditedTaskEnd(ports, correlation_id)
    operation.begin_end(task, None if item is None else TaskCall.from_item(item), reason)
    return operation.end


class _AuditedTaskEnd(AuditedOperation):
    def __init__(self, ports: Ports, correlation_id: str) -> None:
        assert ports.audit is not None
        super().__init__(ports.audit, ports, correlation_id)

    def begin_end(self, task: Task, call: TaskCall | None, reason: EndReason) -> None:
        """Store the `begun` line, with the caller of the task. Raises ProtocolError if that fails."""
        record = sha256(f"mcp-rs/v1/audit-task-end:{task.pk}".encode()).hexdigest()[:32]
        self._set(record=record, method=TASK_END, task=task.task_id, flow=task.flow_id or None)
        if call is not None:
            self._principal = None if call.principal is None else Principal(*call.principal)
            self._set(feature_kind="tool", feature=call.name, client=client_members(call.client))
        self._begin()
        self._set(outcome=reason)
