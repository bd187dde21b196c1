"""Run programs against one store in every order of their operations, with crashes.

Each program runs in a thread of its own, and waits before each operation of its store. Only one thread runs
at a time, so an order of the operations always has the same outcome. So have both orders of two reads that
follow each other: only one of them is run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip.tasks.store_interface import TaskStore

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
    """A program in a thread, and its view of the store. `result` is None after a crash.

    `operations` counts what it began. `is_reading`: whether the operation that waits for its turn is a read.
    """

    store: TaskStore
    program: Program
    crash: Crash | None = None
    result: Any = None
    error: BaseException | None = None
    operations: int = 0
    has_crashed: bool = False
    has_ended: bool = False
    is_reading: bool = False
    may_run: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    has_paused: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def start(self) -> None:
        """Run the program up to its first operation."""
        threading.Thread(target=self._run, daemon=True).start()
        assert self.has_paused.acquire(timeout=TIMEOUT_S)

    def step(self) -> None:
        """Execute one operation, and run the program up to the next one or its end."""
        self.may_run.release()
        assert self.has_paused.acquire(timeout=TIMEOUT_S)

    def _run(self) -> None:
        view: Any = self
        try:
            self.result = self.program(view)
        except Crashed:
            self.has_crashed = True
        except BaseException as error:
            self.error = error
        self.has_ended = True
        self.has_paused.release()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given: self._execute(name, given)

    def _execute(self, name: str, given: tuple[Any, ...]) -> Any:
        self.is_reading = name in ("get", "query")
        self.has_paused.release()
        assert self.may_run.acquire(timeout=TIMEOUT_S)
        number, self.operations = self.operations, self.operations + 1
        if self.crash == Crash(number, is_done=False):
            raise Crashed
        result = getattr(self.store, name)(*given)
        if self.crash == Crash(number, is_done=True):
            raise Crashed
        return result


def every_order(
    new_world: Callable[[], tuple[TaskStore, Sequence[Program]]], crash: Crash | None = None
) -> Iterator[list[Process]]:
    """Run the programs in each order of their operations, each time in a new world, and yield the ends.

    `crash` is that of the first program.
    """
    orders: list[list[int]] = [[]]  # the first turns of runs that are left
    while orders:
        turns = orders.pop()
        store, programs = new_world()
        processes = [Process(store, each, None if number else crash) for number, each in enumerate(programs)]
        for process in processes:
            process.start()
        given, last, has_read = iter(turns.copy()), 0, False
        while running := [number for number, each in enumerate(processes) if not each.has_ended]:
            able = [each for each in running if each >= last or not (has_read and processes[each].is_reading)]
            if not able:  # another run has the same outcome
                for number in running:
                    processes[number].crash = Crash(processes[number].operations, is_done=False)
                    processes[number].step()
                break
            if (turn := next(given, None)) is None:
                turn, *others = able
                orders += [[*turns, other] for other in others]
                turns.append(turn)
            last, has_read = turn, processes[turn].is_reading
            processes[turn].step()
        else:
            for process in processes:
                if process.error is not None:
                    raise process.error
            yield processes
