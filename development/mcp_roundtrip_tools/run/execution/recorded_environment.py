"""Execution environments with names, whose invocations and lines are recorded."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import count
from typing import Final

from mcp_roundtrip_tools.run.execution.environment import InvocationResult, ProcessEnvironment
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation, json_object
from mcp_roundtrip_tools.template.model import Function, short_name

NO_ENVIRONMENT: Final = "000000"
"""The suffix of the access key of processes that serve no invocation."""


class RecordedEnvironment(ProcessEnvironment):
    """An execution environment whose invocations and lines are recorded.

    `id` names it, such as ``weather-3``. `invocation` is what it serves now. `suffix` is that of its access
    key.
    """

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
        self._lock = threading.Lock()
        self._early_lines: list[str] = []
        self._last: RecordedInvocation | None = None
        super().__init__(function, variables, python=python, log=self._record_line, terminal=terminal)
        environments.add(suffix, self)

    def invoke(
        self,
        payload: bytes,
        *,
        function_arn: str,
        request_id: str | None = None,
        client_context: str | None = None,
    ) -> InvocationResult:
        """Run the handler once, after the initialization, which is part of the record."""
        is_new, init_ms = self._last is None, None
        invocation = self._recorder.begin_invocation(
            self.function, payload, request_id, environment_id=self.id, is_new_environment=is_new
        )
        self._set_last(invocation)
        result = InvocationResult(b"", failed=True)
        try:
            failure = self.start()
            init_ms = self._recorder.now_ms() - invocation.started_at_ms if is_new else None
            result = failure or super().invoke(
                payload,
                function_arn=function_arn,
                request_id=invocation.request_id,
                client_context=client_context,
            )
            return result
        finally:
            self.invocation = None
            error = _error_text(result.payload) if result.failed else None
            self._recorder.end_invocation(invocation, result.payload, error=error, init_ms=init_ms)

    def stop(self) -> None:
        super().stop()
        self._environments.forget(self._suffix)

    def _set_last(self, invocation: RecordedInvocation) -> None:
        with self._lock:
            self._last = self.invocation = invocation
            early, self._early_lines = self._early_lines, []
        for line in early:
            self._record_line(line)

    def _record_line(self, line: str) -> None:
        with self._lock:
            invocation = self._last
            if invocation is None:  # the process prints before its first invocation is recorded
                self._early_lines.append(line)
                return
        self._recorder.add_line(invocation, line)


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
    if {"errorType", "errorMessage"} <= document.keys():
        return f"{document['errorType']}: {document['errorMessage']}"
    return payload.decode("utf-8", "replace")
