"""The execution environments of one function."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from mcp_roundtrip_local.environment import Outcome

MAX_CONCURRENCY = 10
"""How many processes one function may have at a time."""


class Launched(Protocol):
    """What a pool launches: an `Environment`, or one of the debugger's."""

    @property
    def alive(self) -> bool:
        """Whether it can serve another invocation."""

    def start(self) -> Outcome | None:
        """Get ready; the outcome if that fails."""

    def invoke(self, payload: bytes, *, function_arn: str, client_context: str | None = None) -> Outcome:
        """Run the handler once."""

    def stop(self) -> None:
        """End it."""


class Pool:
    """Starts a process when an invocation finds none idle; with `fresh`, for every invocation.

    Has at most `limit` processes at a time: further invocations wait.
    """

    def __init__(
        self, launch: Callable[[], Launched], *, fresh: bool = False, limit: int = MAX_CONCURRENCY
    ) -> None:
        self._launch = launch
        self._fresh = fresh
        self._slots = threading.BoundedSemaphore(limit)
        self._lock = threading.Lock()
        self._idle: list[Launched] = []
        self._busy: set[Launched] = set()
        self._retired = False
        self._closed = False

    def invoke(self, payload: bytes, *, function_arn: str, client_context: str | None = None) -> Outcome:
        with self._slots:
            environment = self._take()
            if environment is None:
                return Outcome(b'{"errorMessage":"stopped","errorType":"Runtime.ExitError"}', failed=True)
            try:
                return environment.start() or environment.invoke(
                    payload, function_arn=function_arn, client_context=client_context
                )
            finally:
                self._give_back(environment)

    def retire(self) -> None:
        """Stop what is idle now, and what is busy once it has answered."""
        with self._lock:
            self._retired = True
            idle, self._idle = self._idle, []
        for environment in idle:
            environment.stop()

    def close(self) -> None:
        """Stop everything now; invocations under way or waiting fail."""
        self.retire()
        with self._lock:
            self._closed = True
            busy = list(self._busy)
        for environment in busy:
            environment.stop()

    def _take(self) -> Launched | None:
        with self._lock:
            if self._closed:
                return None
            while self._idle:
                environment = self._idle.pop()
                if environment.alive:
                    break
                environment.stop()
            else:
                environment = self._launch()
            self._busy.add(environment)
            return environment

    def _give_back(self, environment: Launched) -> None:
        with self._lock:
            self._busy.discard(environment)
            keep = environment.alive and not self._fresh and not self._retired
            if keep:
                self._idle.append(environment)
        if not keep:
            environment.stop()
