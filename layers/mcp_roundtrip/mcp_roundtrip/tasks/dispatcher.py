"""How a worker is sent for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


class Dispatcher(Protocol):
    """Sends for workers. A kick that is lost is made up for by the next poll, so nothing depends on one."""

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        """Have `worker` work on the task, `delay_ms` from now at the earliest.

        `worker` is an address that this dispatcher knows how to reach. Returns at once. A dispatcher that
        cannot wait does nothing about a kick with a delay: whoever polls then kicks. Raises StoreError when
        nobody could be sent for.
        """
        ...


@dataclass(slots=True)
class InlineDispatcher:
    """Has the work done in the process that sends for it, before `kick` returns: for tests and scripts.

    `work` takes a task's partition key, as `Worker.work` does. A kick that comes from the work itself is done
    after it; one with a delay is not done. What `work` raises is raised by the kick that was first.
    """

    work: Callable[[str], object]
    _waiting: deque[str] = field(default_factory=deque, init=False)
    _is_working: bool = field(default=False, init=False)

    def dispatch(self, worker: str, pk: str, *, delay_ms: int = 0) -> None:
        if delay_ms:
            return
        self._waiting.append(pk)
        if self._is_working:
            return
        self._is_working = True
        try:
            while self._waiting:
                self.work(self._waiting.popleft())
        finally:
            self._is_working = False
