"""Run programs against one store in every order of their operations, with crashes.

Each program runs in a thread of its own, and waits before each operation of its store. Only one thread runs
at a time, so an order of the operations always has the same outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip.tasks.store import TaskStore

TIMEOUT_S: Final = 60

Program = Callable[[TaskStore], Any]
"""Takes the store that it must use, and returns its result."""


class Crashed(BaseException):
    """The process of a program ended."""


@dataclass(frozen=True, slots=True)
class Crash:
    """The crash of a program at its operation number `operation` (from 0), before it is executed or after."""

    operation: int
    is_done: bool


@dataclass
class Process:
    """A program in a thread. `result` is None after a crash, and `operations` counts what it began."""

    store: TaskStore
    program: Program
    crash: Crash | None = None
    result: Any = None
    error: BaseException | None = None
    operations: int = 0
    has_crashed: bool = False
    has_ended: bool = False
    may_run: threading.Event = field(default_factory=threading.Event)
    has_paused: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Run the program up to its first operation."""
        threading.Thread(target=self._run, daemon=True).start()
        assert self.has_paused.wait(TIMEOUT_S)

    def step(self) -> None:
        """Execute one operation, and run the program up to the next one or its end."""
        self.has_paused.clear()
        self.may_run.set()
        assert self.has_paused.wait(TIMEOUT_S)

    def _run(self) -> None:
        try:
            self.result = self.program(_PausingStore(self))
        except Crashed:
            self.has_crashed = True
        except BaseException as error:
            self.error = error
        self.has_ended = True
        self.has_paused.set()

    def execute(self, operation: Callable[[], Any]) -> Any:
        """Execute an operation when it is this program's turn."""
        self.has_paused.set()
        assert self.may_run.wait(TIMEOUT_S)
        self.may_run.clear()
        number, self.operations = self.operations, self.operations + 1
        crashes = self.crash is not None and self.crash.operation == number
        if crashes and self.crash is not None and not self.crash.is_done:
            raise Crashed
        result = operation()
        if crashes:
            raise Crashed
        return result


class _PausingStore:
    def __init__(self, process: Process) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._process.store, name)
        return lambda *given: self._process.execute(lambda: operation(*given))


def every_order(
    new_world: Callable[[], tuple[TaskStore, Sequence[Program]]], crash: Crash | None = None
) -> Iterator[tuple[TaskStore, list[Process]]]:
    """Run the programs in each order of their operations, each time in a new world, and yield the ends.

    `crash` is that of the first program. The orders are found by depth-first search: each run repeats the
    choices of the one before, up to the last one that had an alternative.
    """
    choices: list[tuple[int, int]] = []  # the index that was chosen, and the number of alternatives
    while True:
        store, programs = new_world()
        processes = [
            Process(store, program, crash if number == 0 else None) for number, program in enumerate(programs)
        ]
        depth = 0
        for process in processes:
            process.start()
        while running := [process for process in processes if not process.has_ended]:
            if depth == len(choices):
                choices.append((0, len(running)))
            chosen, _ = choices[depth]
            running[chosen].step()
            depth += 1
        for process in processes:
            if process.error is not None:
                raise process.error
        yield store, processes
        while choices and choices[-1][0] + 1 == choices[-1][1]:
            choices.pop()
        if not choices:
            return
        chosen, alternatives = choices[-1]
        choices[-1] = (chosen + 1, alternatives)
