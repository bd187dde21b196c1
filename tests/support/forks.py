"""Run one function in several processes at once, and write their lines to one output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def run_in_processes(count: int, run: Callable[[int], None]) -> None:
    """Call `run` with 0, 1, … in a process of its own each. Exits with an error if one of them fails."""
    for number in range(count):
        if os.fork() == 0:
            run(number)
            os._exit(0)
    for _ in range(count):
        _, status = os.wait()
        if status:
            sys.exit("a process failed")


def print_line(line: str) -> None:
    """Write a line in one call, so that lines of several processes are not mixed."""
    os.write(1, f"{line}\n".encode())
