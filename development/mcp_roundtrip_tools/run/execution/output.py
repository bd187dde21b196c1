"""The output of a runtime process, line by line."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from select import POLLIN, poll
from typing import IO, Final

_CAPACITY: Final = 64 * 1024
"""What a pipe holds, in bytes. One read of this size empties it."""


_MAX_LINE: Final = 1024 * 1024
"""Longer lines are split, in bytes."""


class ProcessOutput:
    """Passes the lines that a process prints to `print_line`. A traceback is one text of several lines.

    `copy` does so in a thread until the process has ended. `drain` passes on what has been printed so far:
    with it, the lines of an invocation are complete when its result is.
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
