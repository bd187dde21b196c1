"""Execution environments with names, whose invocations and lines are recorded."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from mcp_roundtrip_tools.run.execution.environment import InvocationResult, ProcessEnvironment
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation, current_cause
from mcp_roundtrip_tools.template.model import short_name

NO_ENVIRONMENT: Final = "000000"
"""The suffix of the access key of processes that serve no invocation."""


@dataclass(frozen=True, slots=True)
class EnvironmentState:
    """An execution environment of this run. `invocation` is the id of the invocation that it serves."""

    id: str
    function: str
    pid: int
    alive: bool
    invocation: str | None


class RecordedEnvironment:
    """Records what an execution environment does. `launch` starts it, with the receiver of its lines.

    `id` names it, such as ``weather-3``; `on_stop` is called when it stops.
    """

    def __init__(
        self,
        environment_id: str,
        function: str,
        launch: Callable[[Callable[[str], None]], ProcessEnvironment],
        recorder: RunRecorder,
        on_stop: Callable[[], None],
    ) -> None:
        self.id = environment_id
        self._function = function
        self._recorder = recorder
        self._on_stop = on_stop
        self._lock = threading.Lock()
        self._early_lines: list[str] = []
        self._last: str | None = None
        self._is_busy = False
        self._environment = launch(self._print)

    @property
    def alive(self) -> bool:
        return self._environment.alive

    @property
    def invocation(self) -> str | None:
        """The id of the invocation that it serves now."""
        return self._last if self._is_busy else None

    @property
    def state(self) -> EnvironmentState:
        return EnvironmentState(self.id, self._function, self._environment.pid, self.alive, self.invocation)

    def invoke(
        self,
        payload: bytes,
        *,
        function_arn: str,
        request_id: str | None = None,
        client_context: str | None = None,
    ) -> InvocationResult:
        """Run the handler once, after the initialization, which is part of the record."""
        request_id = request_id or str(uuid.uuid4())
        is_new = self._last is None
        began_ms, init_ms = self._recorder.now_ms(), None
        invocation_id = self._begin(request_id, payload, is_new)
        result = InvocationResult(b"", failed=True)
        try:
            failure = self._environment.start()
            init_ms = self._recorder.now_ms() - began_ms if is_new else None
            result = failure or self._environment.invoke(
                payload, function_arn=function_arn, request_id=request_id, client_context=client_context
            )
            return result
        finally:
            self._is_busy = False
            error = _error_text(result.payload) if result.failed else None
            self._recorder.end_invocation(invocation_id, result.payload, error=error, init_ms=init_ms)

    def kill(self) -> None:
        """Kill the process, as if its computer were lost."""
        self._environment.kill()

    def stop(self) -> None:
        self._environment.stop()
        self._on_stop()

    def _begin(self, request_id: str, payload: bytes, is_new: bool) -> str:
        cause = current_cause()
        invocation = RecordedInvocation(
            id=request_id,
            request_id=request_id,
            function=self._function,
            environment_id=self.id,
            is_new_environment=is_new,
            trigger=cause.trigger,
            caller=cause.caller,
            started_at_ms=self._recorder.now_ms(),
            payload=payload,
        )
        with self._lock:
            self._last = self._recorder.begin_invocation(invocation)
            early, self._early_lines = self._early_lines, []
            self._is_busy = True
        for line in early:
            self._print(line)
        return self._last

    def _print(self, line: str) -> None:
        with self._lock:
            invocation_id = self._last
            if invocation_id is None:  # the process prints before its first invocation is recorded
                self._early_lines.append(line)
                return
        self._recorder.add_line(invocation_id, line, function=self._function, environment_id=self.id)


class Environments:
    """The execution environments of this run, with names and access keys. Thread-safe."""

    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._numbers: dict[str, count[int]] = {}
        self._serials = count(1)
        self._running: dict[str, RecordedEnvironment] = {}

    def launch(
        self, function: str, launch: Callable[[str, Callable[[str], None]], ProcessEnvironment]
    ) -> RecordedEnvironment:
        """Start an environment. `launch` gets the suffix of its access key, and the receiver of its lines."""
        with self._lock:
            suffix = f"{next(self._serials):06}"
            number = next(self._numbers.setdefault(function, count(1)))
        environment = RecordedEnvironment(
            f"{short_name(function)}-{number}",
            function,
            lambda log: launch(suffix, log),
            self._recorder,
            lambda: self._forget(suffix),
        )
        with self._lock:
            self._running[suffix] = environment
        return environment

    def record_refused(self, function: str, payload: bytes, problem: str) -> None:
        """Record an invocation that no environment serves, because of a problem of the function."""
        cause, request_id = current_cause(), str(uuid.uuid4())
        invocation = RecordedInvocation(
            id=request_id,
            request_id=request_id,
            function=function,
            environment_id="",
            is_new_environment=False,
            trigger=cause.trigger,
            caller=cause.caller,
            started_at_ms=self._recorder.now_ms(),
            payload=payload,
        )
        name = self._recorder.begin_invocation(invocation)
        self._recorder.end_invocation(name, b"", error=problem, init_ms=None)

    def states(self) -> tuple[EnvironmentState, ...]:
        """Return the environments that run, in the order of their start."""
        with self._lock:
            return tuple(environment.state for environment in self._running.values())

    def kill(self, environment_id: str) -> bool:
        """Kill the process of an environment; return whether there was one."""
        with self._lock:
            found = [each for each in self._running.values() if each.id == environment_id and each.alive]
        for environment in found:
            environment.kill()
        return bool(found)

    def invocation_of(self, suffix: str) -> str | None:
        """Return the id of the invocation that the environment with this access key serves."""
        environment = self._running.get(suffix)
        return None if environment is None else environment.invocation

    def _forget(self, suffix: str) -> None:
        with self._lock:
            self._running.pop(suffix, None)


def _error_text(payload: bytes) -> str:
    """Return the error type and message of a failed invocation."""
    try:
        document: Any = json.loads(payload)
        return f"{document['errorType']}: {document['errorMessage']}"
    except (ValueError, TypeError, KeyError):
        return payload.decode("utf-8", "replace")
