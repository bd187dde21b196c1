"""Run all functions in one process that has the terminal, for `breakpoint()`.

`debugged_process.py` is the program of that process. Events are handled one at a time, except that a
function which another function invokes runs while the other one waits.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mcp_roundtrip_tools.run.execution.environment import InvocationResult
from mcp_roundtrip_tools.template.model import Function

TIMEOUT_S = 24 * 3600
"""The timeout of functions, in seconds: a person at the debugger's prompt takes long."""

_PROGRAM = Path(__file__).with_name("debugged_process.py")
_PROCESS_EXITED = InvocationResult(
    b'{"errorType": "Runtime.ExitError", "errorMessage": "the process of DEBUG=1 has exited: restart it"}',
    failed=True,
)


class Debugger:
    """The process that runs all functions. It inherits the terminal."""

    def __init__(self, python: str, log: Callable[[str], None]) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._answers: dict[str, SimpleQueue[InvocationResult]] = {}
        self._terminal = _terminal_settings()
        self._closed = False
        ours, theirs = socket.socketpair()
        self._socket = ours
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - starting the caller's interpreter is the point
                # -P: without the program's folder on the import path.
                [python, "-P", "-u", os.fspath(_PROGRAM), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={name: os.environ[name] for name in _INHERITED if name in os.environ},
            )
        threading.Thread(target=self._read, daemon=True).start()

    def environment(self, function: Function, variables: Mapping[str, str]) -> DebugEnvironment:
        """Return the environment that a pool launches for a function."""
        return DebugEnvironment(self, function, variables)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def call(self, message: Mapping[str, Any]) -> InvocationResult:
        """Run a handler in the process and wait for its result."""
        call_id, answer = str(uuid.uuid4()), SimpleQueue[InvocationResult]()
        with self._lock:
            if not self.alive:
                return _PROCESS_EXITED
            self._answers[call_id] = answer
            self._send({"id": call_id, **message})
        return answer.get()

    def forget(self, function: str) -> None:
        """Make the process import the function again at its next event."""
        with self._lock, suppress(OSError):
            self._send({"forget": function})

    def close(self) -> None:
        """Kill the process and restore the terminal."""
        self._closed = True
        if self.alive:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._socket.close()
        _restore_terminal(self._terminal)

    def _send(self, message: Mapping[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _read(self) -> None:
        with suppress(OSError), self._socket.makefile("rb") as lines:
            for line in lines:
                answer = json.loads(line)
                result = InvocationResult(
                    answer["payload"].encode("utf-8", "surrogatepass"), answer["failed"]
                )
                with self._lock:
                    waiting = self._answers.pop(answer["id"], None)
                if waiting is not None:
                    waiting.put(result)
        if not self._closed:
            self._log("the process of DEBUG=1 has exited: stop make run and start it again")
        with self._lock:
            for waiting in self._answers.values():
                waiting.put(_PROCESS_EXITED)


class DebugEnvironment:
    """A function in the debugger's process, as a pool uses it."""

    def __init__(self, debugger: Debugger, function: Function, variables: Mapping[str, str]) -> None:
        self._debugger = debugger
        self._function = function
        self._variables = variables
        self._stopped = False

    @property
    def alive(self) -> bool:
        return not self._stopped

    @property
    def pid(self) -> int:
        return self._debugger.pid

    def kill(self) -> bool:
        """Return False: the other functions run in the same process."""
        return False

    def start(self) -> InvocationResult | None:
        """Do nothing: the process imports a function at its first event."""
        return None

    def invoke(
        self,
        payload: bytes,
        *,
        function_arn: str,
        request_id: str | None = None,
        client_context: str | None = None,
    ) -> InvocationResult:
        """Run the handler once."""
        return self._debugger.call(
            {
                "request_id": request_id or str(uuid.uuid4()),
                "function": self._function.name,
                "handler": self._function.handler,
                "code": os.fspath(self._function.code),
                "own": [*map(os.fspath, self._function.path[: -len(self._function.layers) or None])],
                "variables": dict(self._variables),
                "event": payload.decode("utf-8", "surrogatepass"),
                "arn": function_arn,
                "client_context": client_context,
                "deadline_ms": int((time.time() + TIMEOUT_S) * 1000),
            }
        )

    def stop(self) -> None:
        self._stopped = True
        self._debugger.forget(self._function.name)


_INHERITED = ("PATH", "HOME", "TERM", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "PYTHONBREAKPOINT")


def _terminal_settings() -> list[Any] | None:
    if os.name != "posix" or sys.stdin is None:
        return None
    import termios  # POSIX only

    with suppress(termios.error, ValueError, OSError):
        return termios.tcgetattr(sys.stdin)
    return None


def _restore_terminal(settings: list[Any] | None) -> None:
    if settings is not None:
        import termios  # POSIX only

        with suppress(termios.error, ValueError, OSError):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
