"""Execution environments with names, whose invocations are recorded, and a pool of them for each function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

from mcp_roundtrip_tools.client.http import json_object
from mcp_roundtrip_tools.run.execution.runtime_api import Fault, InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.execution.runtime_process import ProcessEnvironment
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation
from mcp_roundtrip_tools.template.model import Function, short_name


class RecordedEnvironment(ProcessEnvironment):
    """A recorded environment: its `id`, such as ``weather-3``, and the `suffix` of its access key."""

    def __init__(
        self,
        function: Function,
        variables: Mapping[str, str],
        environments: Environments,
        suffix: str,
        *,
        python: str,
        terminal: str | None,
    ) -> None:
        self.id = environments.new_id(function.name)
        self.function = function.name
        self.invocation: RecordedInvocation | None = None
        self._suffix = suffix
        self._environments = environments
        self._recorder = environments.recorder
        self._last: RecordedInvocation | None = None
        super().__init__(function, variables, python=python, log=self._record_line, terminal=terminal)
        environments.add(suffix, self)

    def invoke(self, invocation: InvokeRequest) -> InvocationResult:
        """Run the handler once, after the initialization, which is part of the record."""
        is_new, init_ms = self._last is None, None
        recorded = self._recorder.begin_invocation(
            self.function,
            invocation.payload,
            invocation.request_id,
            environment_id=self.id,
            is_new_environment=is_new,
        )
        self._last = self.invocation = recorded
        result = InvocationResult(b"", failed=True)
        try:
            failure = self.start()
            recorded.init_failed = failure is not None
            init_ms = self._recorder.now_ms() - recorded.started_at_ms if is_new else None
            result = failure or super().invoke(invocation)
            return result
        finally:
            self.invocation = None
            error = _error_text(result.payload) if result.failed else None
            self._recorder.end_invocation(recorded, result.payload, error=error, init_ms=init_ms)

    def stop(self) -> None:
        super().stop()
        self._environments.forget(self._suffix)

    def _record_line(self, line: str) -> None:
        if self._last is None:  # the process prints before its first invocation is recorded
            self._recorder.note(f"[{self.function}] {line}")
        else:
            self._recorder.add_line(self._last, line)


class Environments:
    """The execution environments of this run, with names and access keys. Thread-safe."""

    def __init__(self, recorder: RunRecorder) -> None:
        self.recorder = recorder
        self._lock = threading.Lock()
        self._numbers: dict[str, count[int]] = {}
        self._serials = count(1)
        self._running: dict[str, RecordedEnvironment] = {}

    def new_suffix(self) -> str:
        """Return another suffix of the access key for each environment."""
        return f"{next(self._serials):06}"

    def new_id(self, function: str) -> str:
        """Return the name of a new environment of a function."""
        with self._lock:
            number = next(self._numbers.setdefault(function, count(1)))
        return f"{short_name(function)}-{number}"

    def add(self, suffix: str, environment: RecordedEnvironment) -> None:
        with self._lock:
            self._running[suffix] = environment

    def running(self) -> tuple[RecordedEnvironment, ...]:
        """Return the environments that run, in the order of their start."""
        with self._lock:
            return tuple(self._running.values())

    def kill(self, environment_id: str) -> bool:
        """Kill the process of an environment; return whether there was one."""
        found = [each for each in self.running() if each.id == environment_id and each.alive]
        for environment in found:
            environment.kill()
        return bool(found)

    def invocation_of(self, suffix: str) -> RecordedInvocation | None:
        """Return the invocation that the environment with this access key serves."""
        environment = self._running.get(suffix)
        return None if environment is None else environment.invocation

    def forget(self, suffix: str) -> None:
        with self._lock:
            self._running.pop(suffix, None)


def _error_text(payload: bytes) -> str:
    """Return the error type and message of a failed invocation."""
    document = json_object(payload)
    return f"{document.get('errorType')}: {document.get('errorMessage')}"


MAX_CONCURRENCY = 10
"""The largest number of processes of a function at a time."""


class Pool:
    """The processes of a function: idle or `fresh` ones, up to MAX_CONCURRENCY; then invocations wait.

    `launch` starts a process, or returns None when none may start any more.
    """

    def __init__(self, launch: Callable[[], RecordedEnvironment | None], *, fresh: bool) -> None:
        self._launch = launch
        self._fresh = fresh
        self._slots = threading.BoundedSemaphore(MAX_CONCURRENCY)
        self._lock = threading.Lock()
        self._idle: list[RecordedEnvironment] = []
        self._retired = False

    def invoke(self, invocation: InvokeRequest) -> InvocationResult:
        with self._slots:
            environment = self._acquire()
            if environment is None:
                return Fault("Runtime.ExitError", "stopped").result()
            try:
                return environment.invoke(invocation)
            finally:
                self._release(environment)

    def retire(self) -> None:
        """Stop idle environments now, and busy ones after their invocation."""
        with self._lock:
            self._retired = True
            idle, self._idle = self._idle, []
        for environment in idle:
            environment.stop()

    def _acquire(self) -> RecordedEnvironment | None:
        with self._lock:
            while self._idle:
                environment = self._idle.pop()
                if environment.alive:
                    return environment
                environment.stop()
        return self._launch()

    def _release(self, environment: RecordedEnvironment) -> None:
        with self._lock:
            keep = environment.alive and not self._fresh and not self._retired
            if keep:
                self._idle.append(environment)
        if not keep:
            environment.stop()


class Pools:
    """The pools by function name. The caller holds a lock for all methods but `close`.

    `launch` starts a process of a function: `run.app.LocalApp`.
    """

    def __init__(
        self, launch: Callable[[Function], RecordedEnvironment], environments: Environments, *, fresh: bool
    ) -> None:
        self._launch = launch
        self._environments = environments
        self._fresh = fresh
        self._pools: dict[str, tuple[Function, Pool]] = {}
        self._launching = threading.Lock()
        self._is_closed = False

    def pool_for(self, function: Function, code: Path) -> Pool:
        """Return the pool of a function whose code is in `code`; a new one if the function has changed."""
        runs = replace(function, code=code)
        if function.name not in self._pools or self._pools[function.name][0] != runs:
            self.retire([function.name])
            self._pools[function.name] = runs, Pool(lambda: self._start(runs), fresh=self._fresh)
        return self._pools[function.name][1]

    def retire(self, names: Iterable[str]) -> None:
        """Stop idle environments now, and busy ones after their invocation."""
        for name in names:
            if name in self._pools:
                _, pool = self._pools.pop(name)
                pool.retire()

    def close(self) -> None:
        """Stop every process. A worker that is dispatched meanwhile starts none."""
        with self._launching:
            self._is_closed = True
        for environment in self._environments.running():
            environment.stop()

    def _start(self, function: Function) -> RecordedEnvironment | None:
        with self._launching:
            return None if self._is_closed else self._launch(function)


def affected_functions(
    before: Mapping[str, Function], after: Mapping[str, Function], changed: Iterable[Path]
) -> list[str]:
    """Return the functions whose definition has changed, or whose sources include a changed file."""
    files = tuple(changed)
    return [
        name
        for name, function in after.items()
        if before.get(name) != function
        or any(path.is_relative_to(folder) for path in files for folder in (function.code, *function.layers))
    ]
