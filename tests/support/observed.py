"""What a test finds in the table and in the log of a deployment."""

from __future__ import annotations

from collections import deque
from typing import Any

from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip_testing.task_table import MemoryStore, TaskTable


class Observed:
    """The state of a deployment. The attributes are those of `Deployment`."""

    table: TaskTable
    observer: Any

    def task(self, task_id: str) -> Task:
        """Return a task as the table has it."""
        task = self.table.task(task_id)
        assert task is not None
        return task

    @property
    def tasks(self) -> list[Task]:
        """The tasks in a table in memory."""
        assert isinstance(self.table.store, MemoryStore)
        return [Task.from_item(item) for (_, sk), item in self.table.store._items.items() if sk == TASK]

    @property
    def sent(self) -> deque[tuple[str, str]]:
        """The dispatches that no worker has taken: a worker, and the partition key of a task."""
        return self.table.dispatcher.sent

    @property
    def events(self) -> list[str]:
        """The names of the events in the log."""
        return [event for event, _ in self.observer.events]

    @property
    def failures(self) -> list[str]:
        """The names of the events in the log that have an exception."""
        return [event for event, _ in self.observer.failures]

    @property
    def outcomes(self) -> list[str]:
        """The outcomes of the requests in the log."""
        records = [fields for event, fields in self.observer.events if event == "request_completed"]
        return [str(fields.get("outcome")) for fields in records]

    @property
    def outcome(self) -> str:
        """The outcome of the last request in the log."""
        return self.outcomes[-1]
