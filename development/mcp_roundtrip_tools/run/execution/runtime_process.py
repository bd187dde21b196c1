"""An execution environment: a runtime process that serves one invocation at a time."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty
from select import POLLIN, poll
from types import MappingProxyType
from typing import IO, Final

from mcp_roundtrip_tools.client.http import json_object
from mcp_roundtrip_tools.run.execution.runtime_api import (
    Fault,
    InvocationResult,
    InvokeRequest,
    Ready,
    Report,
    RuntimeApi,
)
from mcp_roundtrip_tools.template.model import LATEST, REGION, Function

_CAPACITY: Final = 64 * 1024
"""What a pipe holds, in bytes. One read of this size empties it."""

_MAX_LINE: Final = 1024 * 1024
"""Longer lines are split, in bytes."""


class ProcessOutput:
    """Passes the lines that a process prints to `print_line`. A traceback is one text of several lines.

    `copy` does so in a thread until the pipe is closed, `drain` at once, at the end of an invocation.
    """

    def __init__(self, pipe: IO[bytes], print_line: Callable[[str], None]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._print_line = print_line
        self._lock = threading.Lock()
        self._unfinished = b""

    def copy(self) -> None:
        """Pass on lines until the process and its child processes have closed the pipe."""
        waiting = poll()  # select() has no descriptors over 1023
        waiting.register(self._pipe, POLLIN)
        while self.drain():
            waiting.poll()
        with self._lock:
            self._pipe.close()

    def drain(self) -> bool:
        """Pass on what is in the pipe; return whether more can follow."""
        with self._lock:
            if self._pipe.closed:
                return False
            try:
                read = os.read(self._pipe.fileno(), _CAPACITY)
            except BlockingIOError:
                return True
            *lines, self._unfinished = (self._unfinished + read).split(b"\n")
            is_last = not read and self._unfinished
            if is_last or len(self._unfinished) > _MAX_LINE:
                lines, self._unfinished = [*lines, self._unfinished], b""
            for line in lines:
                self._pass_on(line)
            return bool(read)

    def _pass_on(self, line: bytes) -> None:
        # The runtime client separates the lines of a message with carriage returns.
        self._print_line(line.decode("utf-8", "replace").rstrip("\r").replace("\r", "\n"))


INIT_TIMEOUT_S = 10.0
"""The seconds that Lambda allows for initialization. Lambda retries within the function's own timeout."""

_OUTPUT_END_S: Final = 2.0

PYTHON_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The version of the functions' runtime, such as 3.13."""

DEBUGGER_ENDS = ("BdbQuit", "Quitting pdb")  # before Python 3.14, and since
DEBUGGER_HINT = "breakpoint() needs a terminal: stop make run and start it with `make run DEBUG=1`"

_DEBUGGED: Final = Path(__file__).with_name("debugged_runtime.py")

_INHERITED = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "MCP_AWS_CLIENT")


_RUNTIME = """
import logging, runpy
logging.getLogger("botocore").setLevel(logging.WARNING)
runpy.run_module("awslambdaric", run_name="__main__")
"""
"""Runs Lambda's runtime client. botocore logs 20 lines for a call at DEBUG; a function may set its level."""


class ProcessEnvironment:
    """A runtime process: `invoke` it while it is `alive`, and `stop` it.

    `variables` are all but the address of its Runtime API. `log` gets its lines, those of an invocation
    before `invoke` returns. `terminal` is the device at which `breakpoint()` stops.
    """

    def __init__(
        self,
        function: Function,
        variables: Mapping[str, str],
        *,
        python: str,
        log: Callable[[str], None],
        terminal: str | None = None,
    ) -> None:
        self._function = function
        self._log = log
        self._api = RuntimeApi()
        self._ready = False
        self._stopped = False
        program = ["-c", _RUNTIME] if terminal is None else ["-P", os.fspath(_DEBUGGED), terminal]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - starting the caller's interpreter is the point
                [python, *program, function.handler],
                cwd=function.code,
                env={**variables, "AWS_LAMBDA_RUNTIME_API": self._api.address},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its own process group, so that child processes are killed with it
            )
        except OSError:
            self._api.close()
            raise
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self._output = ProcessOutput(self._process.stdout, self._print)
        self._copying = threading.Thread(target=self._output.copy, daemon=True)
        for thread in (self._copying, threading.Thread(target=self._await_exit, daemon=True)):
            thread.start()

    @property
    def alive(self) -> bool:
        return not self._stopped and self._process.poll() is None

    def start(self) -> InvocationResult | None:
        """Wait until the function is imported; return the error if that fails. Later calls do nothing."""
        if self._ready:
            return None
        report = self._report(INIT_TIMEOUT_S + self._function.timeout_s)
        self._output.drain()
        if isinstance(report, Ready):
            self._ready = True
            return None
        self._abandon(f"could not be initialized: {_message(report)}")
        return _result(report, str(uuid.uuid4()))

    def invoke(self, invocation: InvokeRequest) -> InvocationResult:
        """Run the handler once. Stop the process if it times out, exits or violates the Runtime API."""
        if failure := self.start():
            return failure
        timeout_s = self._function.timeout_s
        self._api.pending.put((invocation, int((time.time() + timeout_s) * 1000)))
        report = self._report(timeout_s)
        self._output.drain()
        assert not isinstance(report, Ready), "it is reported once, before"
        if isinstance(report, Fault):
            self._abandon(report.message)
        return _result(report, invocation.request_id)

    def kill(self) -> None:
        """Kill the process and its child processes. A running invocation fails, as with a lost worker."""
        self._kill_group()

    def stop(self) -> None:
        """Kill the process and its child processes, as Lambda does, and wait for its exit and its output."""
        self._stopped = True
        if self._process.poll() is None:
            self._kill_group()
        self._process.wait()
        # A child process that left the group may keep the pipe open.
        self._copying.join(_OUTPUT_END_S)
        self._api.close()

    def _abandon(self, reason: str) -> None:
        if not self._stopped:  # otherwise the exit is expected
            self._log(reason)
        self.stop()

    def _report(self, seconds: float) -> Report:
        try:
            return self._api.reports.get(timeout=seconds)
        except Empty:
            return Fault("Sandbox.Timedout", f"Task timed out after {seconds:.2f} seconds")

    def _await_exit(self) -> None:
        status = self._process.wait()
        self._kill_group()  # child processes that still run
        how = f"exit status {status}" if status >= 0 else f"signal: {_signal_name(-status)}"
        self._api.reports.put(Fault("Runtime.ExitError", f"Runtime exited with error: {how}"))

    def _kill_group(self) -> None:
        with suppress(OSError):  # the group is empty
            os.killpg(self._process.pid, signal.SIGKILL)

    def _print(self, line: str) -> None:
        self._log(line)
        if any(text in line for text in DEBUGGER_ENDS):
            self._log(DEBUGGER_HINT)


def isolated_variables() -> dict[str, str]:
    """Return variables for a process that imports functions: without the developer's own credentials."""
    return {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "LANG": "C.UTF-8",
    }


def process_variables(
    function: Function,
    endpoints: Mapping[str, str],
    credentials: Mapping[str, str],
    given: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the variables of a function's process: none of the developer's own, such as credentials.

    `endpoints` are the AWS_ENDPOINT_URL variables, `credentials` those with the access key of the emulated
    services. `given` overrides all other variables.
    """
    return {
        **isolated_variables(),
        **credentials,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{PYTHON_VERSION}",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_FUNCTION_VERSION": LATEST,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "LAMBDA_TASK_ROOT": str(function.code),
        "PYTHONPATH": os.pathsep.join(map(str, function.path)),
        "PYTHONUNBUFFERED": "1",
        "TZ": ":UTC",
        "_HANDLER": function.handler,
        **endpoints,
        **_log_variables(function, {**function.environment, **given}),
        **_proxy_variables(function.environment.keys() | given.keys()),
        **function.environment,
        **given,
    }


def _proxy_variables(names: Collection[str]) -> dict[str, str]:
    """Return the variable that lets no proxy come before the emulated services, if the function has a proxy.

    Without one it would hide the proxy of the system settings of macOS.
    """
    has_proxy = not {"http_proxy", "all_proxy"}.isdisjoint(map(str.lower, names))
    return {"NO_PROXY": "127.0.0.1"} if has_proxy else {}


def _log_variables(function: Function, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Lambda derives from LoggingConfig.

    Without a level, the root logger gets that of the function's other loggers. Lambda leaves it at WARNING.
    """
    level = function.log_level or variables.get("LOG_LEVEL") or variables.get("POWERTOOLS_LOG_LEVEL") or ""
    found = {"AWS_LAMBDA_LOG_FORMAT": function.log_format, "AWS_LAMBDA_LOG_LEVEL": level.upper()}
    return {name: value for name, value in found.items() if value}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return str(number)


def _message(report: InvocationResult | Fault) -> str:
    """Return the message of the error of a function that could not be initialized."""
    if isinstance(report, Fault):
        return report.message
    return str(json_object(report.payload).get("errorMessage", "the runtime did not follow the Runtime API"))


def _result(report: InvocationResult | Fault, request_id: str) -> InvocationResult:
    if isinstance(report, InvocationResult):
        return report
    return Fault(report.type, f"RequestId: {request_id} Error: {report.message}").result()
