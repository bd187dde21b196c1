"""Pools of execution environments: one for each function, replaced when its sources change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from mcp_roundtrip_tools.run.execution.environment import InvocationResult
from mcp_roundtrip_tools.run.execution.recorded_environment import RecordedEnvironment
from mcp_roundtrip_tools.template.model import Function

MAX_CONCURRENCY = 10
"""The largest number of processes of a function at a time."""


class Pool:
    """The execution environments of one function.

    An invocation starts a process if none is idle, and with `fresh` always. Beyond `limit` processes,
    invocations wait.
    """

    def __init__(
        self, launch: Callable[[], RecordedEnvironment], *, fresh: bool = False, limit: int = MAX_CONCURRENCY
    ) -> None:
        self._launch = launch
        self._fresh = fresh
        self._slots = threading.BoundedSemaphore(limit)
        self._lock = threading.Lock()
        self._idle: list[RecordedEnvironment] = []
        self._busy: set[RecordedEnvironment] = set()
        self._retired = False
        self._closed = False

    def invoke(
        self,
        payload: bytes,
        *,
        function_arn: str,
        request_id: str | None = None,
        client_context: str | None = None,
    ) -> InvocationResult:
        with self._slots:
            environment = self._acquire()
            if environment is None:
                return InvocationResult(
                    b'{"errorMessage":"stopped","errorType":"Runtime.ExitError"}', failed=True
                )
            try:
                return environment.invoke(
                    payload, function_arn=function_arn, request_id=request_id, client_context=client_context
                )
            finally:
                self._release(environment)

    def retire(self) -> None:
        """Stop idle environments now, and busy ones after their invocation."""
        with self._lock:
            self._retired = True
            idle, self._idle = self._idle, []
        for environment in idle:
            environment.stop()

    def close(self) -> None:
        """Stop every environment now. Running and waiting invocations fail."""
        self.retire()
        with self._lock:
            self._closed = True
            busy = list(self._busy)
        for environment in busy:
            environment.stop()

    def _acquire(self) -> RecordedEnvironment | None:
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

    def _release(self, environment: RecordedEnvironment) -> None:
        with self._lock:
            self._busy.discard(environment)
            keep = environment.alive and not self._fresh and not self._retired
            if keep:
                self._idle.append(environment)
        if not keep:
            environment.stop()


class Pools:
    """The pools by function name. Not thread-safe: the caller holds a lock."""

    def __init__(self, launch: Callable[[Function], RecordedEnvironment], *, fresh: bool) -> None:
        self._launch = launch
        self._fresh = fresh
        self._pools: dict[str, tuple[Function, Pool]] = {}
        self._retired: list[Pool] = []
        self._is_closed = False

    def pool_for(self, function: Function, code: Path) -> Pool:
        """Return the pool of a function whose code is in `code`; a new one if the function has changed."""
        runs = replace(function, code=code)
        if function.name not in self._pools or self._pools[function.name][0] != runs:
            self.retire([function.name])
            pool = Pool(lambda: self._launch(runs), fresh=self._fresh)
            self._pools[function.name] = runs, pool
            if self._is_closed:
                pool.close()
        return self._pools[function.name][1]

    def retire(self, names: Iterable[str]) -> None:
        """Stop idle environments now, and busy ones after their invocation."""
        for name in names:
            if name in self._pools:
                _, pool = self._pools.pop(name)
                pool.retire()
                self._retired.append(pool)

    def close(self) -> None:
        """Stop every process. A worker that is dispatched meanwhile starts none."""
        self._is_closed = True
        for pool in (*self._retired, *(pool for _, pool in self._pools.values())):
            pool.close()


def affected_functions(
    before: Mapping[str, Function], after: Mapping[str, Function], changed: Iterable[Path]
) -> list[str]:
    """Return the functions whose definition has changed, or whose sources include a changed file."""
    files = tuple(changed)
    return [
        name
        for name, function in after.items()
        if before.get(name) != function or any(_is_source(path, function) for path in files)
    ]


def _is_source(path: Path, function: Function) -> bool:
    return any(path.is_relative_to(folder) for folder in (function.code, *function.layers))
