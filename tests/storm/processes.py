"""Worker processes: forked, connected to their coordinator, killed, stopped and continued."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.run.execution.runtime_api import (
    Fault,
    InvocationResult,
    InvokeRequest,
    Ready,
    RuntimeApi,
)
from storm.virtual_time import VirtualTime
from storm.zygote import fork_worker

TIMEOUT_S = 900
"""The timeout of the worker function."""


class Thread:
    """A thread of a worker process. While it runs, it holds the time, unless its invocation does that."""

    def __init__(self, process: WorkerProcess, connection: Connection, *, is_main: bool) -> None:
        self.process = process
        self.is_main = is_main
        self.is_waiting = False
        self.holds_time = False
        self.blocks_heartbeat = False
        self._connection = connection
        self._time = process.time
        self._waits = 0

    def serve(self) -> None:
        """Answer the calls of this thread until it ends."""
        with suppress(EOFError, OSError):
            while True:
                self._answer(*self._connection.recv())
        self.process.on_disconnect(self)

    def end(self) -> None:
        """Release the time of a thread that will not run again. The runner of a main thread holds it."""
        self._waits += 1
        if self.is_waiting and self.is_main:
            self._time.hold()
        elif self.holds_time and not self.is_main:
            self._time.release()
        self.is_waiting = self.holds_time = False

    def wait(self, duration_s: float | None = None) -> None:
        """Let the time pass; the thread continues after `duration_s`, or never."""
        self._waits += 1
        number, self.is_waiting = self._waits, True
        if duration_s is not None:
            duration_s += 0 if self.is_main else self.process.heartbeat_delay_s
            self._time.call_at(self._time.now_s() + duration_s, lambda: self._resume(number))
        if self.is_main or self.holds_time:
            self._time.release()
        self.holds_time = False

    def resume_with(self, result: Any) -> None:
        """Continue a thread that waits."""
        self._time.hold()
        self.is_waiting, self.holds_time = False, True
        self._send(result)

    def _resume(self, number: int) -> None:
        with self.process.lock:
            if number != self._waits or not self.is_waiting:
                return
            if not self.is_main and self.process.blocks_heartbeat:
                return
            if self.process.is_stopped:
                self.process.due.append((self, None))
            else:
                self.resume_with(None)

    def _answer(self, name: str, *arguments: Any) -> None:
        if self.process.has_exited.is_set():  # the request of a process that is killed is lost
            return
        if name == "wait":
            with self.process.lock:
                self.wait(*arguments)
                if not self.is_main:
                    self._send("waiting")
        elif name == "stop_waiting":
            with self.process.lock:
                self._waits += 1
                if self.holds_time:
                    self._time.release()
                self.is_waiting = self.holds_time = False
                self._send("stopped")
        else:
            self.process.answer(self, name, *arguments)

    def _send(self, result: Any) -> None:
        with suppress(OSError):
            self._connection.send(result)

    reply = _send


class WorkerProcess:
    """A worker process. `on_call` answers the calls of its threads (thread, name, arguments)."""

    def __init__(self, time: VirtualTime, on_call: Callable[..., None]) -> None:
        self.time = time
        self.answer = on_call
        self.lock = threading.RLock()
        self.pid = 0
        self.deadline_ms = 0
        self.is_stopped = False
        self.heartbeat_delay_s = 0.0
        self.due: list[tuple[Thread, Any]] = []
        self.has_exited = threading.Event()
        self.on_exit: Callable[[], None] = lambda: None
        self._threads: list[Thread] = []

    def serve(self, connection: Connection, *, is_main: bool) -> None:
        """Answer the calls of one thread until it ends."""
        thread = Thread(self, connection, is_main=is_main)
        with self.lock:
            self._threads.append(thread)
        thread.serve()

    @property
    def blocks_heartbeat(self) -> bool:
        """Whether its main thread hangs in a call under the lock that its heartbeat needs."""
        return not self.is_stopped and any(
            thread.is_main and thread.is_waiting and thread.blocks_heartbeat for thread in self._threads
        )

    def kill(self) -> None:
        """Kill the process, also during a call of one of its threads."""
        with self.lock:
            if self.has_exited.is_set():
                return
            self.expect_exit()
            os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Stop the process, as a frozen environment is. Its waits end when it continues."""
        with self.lock:
            self.is_stopped = True
            os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        with self.lock:
            self.is_stopped = False
            due, self.due = self.due, []
            for thread, result in due:
                thread.resume_with(result() if callable(result) else result)
            os.kill(self.pid, signal.SIGCONT)

    def on_disconnect(self, thread: Thread) -> None:
        with self.lock:
            self._threads.remove(thread)
            if not thread.is_main:
                if not self.has_exited.is_set():
                    thread.end()
                return
            self.expect_exit()
        self.on_exit()

    def expect_exit(self) -> None:
        """Answer no more calls: the process is about to exit."""
        with self.lock:
            if not self.has_exited.is_set():
                self.has_exited.set()
                for thread in self._threads:
                    thread.end()


class ForkedEnvironment:
    """An execution environment (see `mcp_roundtrip_tools.run.execution.pools`) in virtual time."""

    def __init__(self, time: VirtualTime, process: WorkerProcess, address: str) -> None:
        self._time = time
        self._process = process
        self._api = RuntimeApi()
        self._is_ready = False
        self._invocation = 0
        process.on_exit = lambda: self._api.reports.put(Fault("Runtime.ExitError", "killed"))
        process.pid = fork_worker(address, time.path, self._api.address)

    @property
    def alive(self) -> bool:
        return not self._process.has_exited.is_set()

    def invoke(self, invocation: InvokeRequest) -> InvocationResult:
        if not self._is_ready:
            assert isinstance(self._api.reports.get(timeout=60), Ready)
            self._is_ready = True
        self._invocation += 1
        number, deadline_s = self._invocation, self._time.now_s() + TIMEOUT_S
        self._process.deadline_ms = round(deadline_s * 1000)
        self._time.call_at(deadline_s, lambda: self._time_out(number))
        self._api.pending.put((invocation, self._process.deadline_ms))
        report = self._api.reports.get()
        if isinstance(report, InvocationResult):
            self._invocation += 1
            return report
        self.stop()
        return InvocationResult(b'{"errorType": "Runtime.ExitError"}', failed=True)

    def stop(self) -> None:
        self._invocation += 1
        self._process.kill()
        self._api.close()

    def _time_out(self, number: int) -> None:
        if number == self._invocation:
            self._process.kill()


class Launcher:
    """The worker processes of one task.

    Its socket is in `folder`. `on_call` answers the calls of the processes. The heartbeats of the first
    process are late by `heartbeat_delay_s`.
    """

    def __init__(
        self, time: VirtualTime, folder: Path, on_call: Callable[..., None], heartbeat_delay_s: float
    ) -> None:
        self._time = time
        self._on_call = on_call
        self._heartbeat_delay_s = heartbeat_delay_s
        self._processes: dict[int, WorkerProcess] = {}
        self._known = threading.Condition()
        self._address = str(folder / "socket")
        self._listener = Listener(self._address, "AF_UNIX", backlog=100)
        self._is_closed = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def launch(self) -> ForkedEnvironment:
        """Start a process, whose threads then connect."""
        process = WorkerProcess(self._time, self._on_call)
        process.heartbeat_delay_s = 0 if self._processes else self._heartbeat_delay_s
        environment = ForkedEnvironment(self._time, process, self._address)
        with self._known:
            self._processes[process.pid] = process
            self._known.notify_all()
        return environment

    def close(self) -> None:
        self._is_closed = True
        Client(self._address).close()  # wakes the accepting thread
        self._accepting.join()

    def _find(self, pid: int) -> WorkerProcess:
        with self._known:
            assert self._known.wait_for(lambda: pid in self._processes, 60)
            return self._processes[pid]

    def _accept(self) -> None:
        with self._listener:
            while connection := self._listener.accept():
                if self._is_closed:
                    return
                threading.Thread(target=self._connect, args=(connection,), daemon=True).start()

    def _connect(self, connection: Connection) -> None:
        with suppress(EOFError, OSError):  # the process was killed
            pid, is_main = connection.recv()
            self._find(pid).serve(connection, is_main=is_main)
