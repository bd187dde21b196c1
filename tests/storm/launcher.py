"""Starts worker processes, and accepts the connections of their threads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from storm.processes import ForkedEnvironment, WorkerProcess, Zygote
from storm.virtual_time import VirtualTime


class Launcher:
    """The worker processes of one task.

    Its socket is in `folder`. `on_call` answers the calls of the processes. The heartbeats of the first
    process are late by `heartbeat_delay_s`.
    """

    def __init__(
        self,
        zygote: Zygote,
        time: VirtualTime,
        folder: Path,
        on_call: Callable[..., None],
        heartbeat_delay_s: float,
    ) -> None:
        self._zygote = zygote
        self._time = time
        self._on_call = on_call
        self._heartbeat_delay_s = heartbeat_delay_s
        self._processes: dict[int, WorkerProcess] = {}
        self._known = threading.Condition()
        self._address = str(folder / "socket")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self._address)
        self._socket.listen()
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def launch(self) -> ForkedEnvironment:
        """Start a process, whose threads then connect."""
        process = WorkerProcess(self._time, self._on_call)
        process.heartbeat_delay_s = 0 if self._processes else self._heartbeat_delay_s
        addresses = (self._address, self._time.path)
        environment = ForkedEnvironment(self._time, process, lambda api: self._zygote.fork(*addresses, api))
        with self._known:
            self._processes[process.pid] = process
            self._known.notify_all()
        return environment

    def close(self) -> None:
        self._is_closed = True
        with socket.socket(socket.AF_UNIX) as last:  # wakes the accepting thread
            last.connect(self._address)

    def _find(self, pid: int) -> WorkerProcess:
        with self._known:
            assert self._known.wait_for(lambda: pid in self._processes, 60)
            return self._processes[pid]

    def _accept(self) -> None:
        with self._socket:
            while True:
                stream, _ = self._socket.accept()
                if self._is_closed:
                    stream.close()
                    return
                threading.Thread(
                    target=self._connect, args=(Connection(stream.detach()),), daemon=True
                ).start()

    def _connect(self, connection: Connection) -> None:
        with suppress(EOFError, OSError):  # the process was killed
            pid, is_main = connection.recv()
            self._find(pid).serve(connection, is_main=is_main)
