"""A dispatcher that runs the worker in its own process, before `dispatch` returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class InlineDispatcher:
    """A dispatcher that calls `work` with the partition key of a task.

    A dispatch during `work` runs after it; a delayed one does not run. The first dispatch raises
    the exceptions of `work`.
    """

    work: Callable[[str], object]
    _waiting: deque[str] = field(default_factory=deque, init=False)
    _is_working: bool = field(default=False, init=False)

    def dispatch_at(self, worker: str, pk: str, at_ms: int) -> None:
        """Do nothing."""

    def dispatch(self, worker: str, pk: str) -> None:
        self._waiting.append(pk)
        if self._is_working:
            return
        self._is_working = True
        try:
            while self._waiting:
                self.work(self._waiting.popleft())
        finally:
            self._is_working = False
