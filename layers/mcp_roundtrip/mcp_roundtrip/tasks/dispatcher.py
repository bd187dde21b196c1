"""How a worker is sent for."""

from __future__ import annotations

from typing import Protocol


class Dispatcher(Protocol):
    """Sends for workers. A call that is lost is made up for by the next poll, so nothing depends on one."""

    def kick(self, worker: str, pk: str) -> None:
        """Have `worker` (a function, with the version that created the task) work on the task.

        Returns at once. Raises StoreError when nobody could be sent for.
        """
        ...
