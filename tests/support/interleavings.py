"""Run programs against one store in every order of their operations, with crashes.

Each program runs in a thread of its own, and waits before each operation of its store. Only one thread runs
at a time, so an order of the operations always has the same outcome. Two operations that follow each other
have the same outcome in either order if both only read, or if they are about different rows: only one of the
two orders is run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip.tasks.store_interface import TaskStore
from support.faulty_store import Operation

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


def commute(one: Operation, other: Operation) -> bool:
    """Return whether the outcome does not depend on which of the two comes first."""
    return (one.is_read and other.is_read) or not any(
        pk == other_pk and (sk == other_sk or not sk or not other_sk)
        for pk, sk in one.keys
        for other_pk, other_sk in other.keys
    )


@dataclass
class Process:
    """A program in a thread. `result` is None after a crash, and `operations` counts what it began.

    `next` is the operation that waits for its turn. `is_abandoned`: whether the program ends in place of it.
    """

    store: TaskStore
    program: Program
    crash: Crash | None = None
    result: Any = None
    error: BaseException | None = None
    operations: int = 0
    has_crashed: bool = False
    has_ended: bool = False
    next: Operation | None = None
    is_abandoned: bool = False
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

    def abandon(self) -> None:
        """End the program before its next operation."""
        self.is_abandoned = True
        self.step()

    def _run(self) -> None:
        try:
            self.result = self.program(_PausingStore(self))
        except Crashed:
            self.has_crashed = True
        except BaseException as error:
            self.error = error
        self.has_ended = True
        self.has_paused.set()

    def execute(self, name: str, given: tuple[Any, ...]) -> Any:
        """Execute an operation of the store when it is this program's turn."""
        self.next = Operation.of(name, given)
        self.has_paused.set()
        assert self.may_run.wait(TIMEOUT_S)
        self.may_run.clear()
        if self.is_abandoned:
            raise Crashed
        number, self.operations = self.operations, self.operations + 1
        crashes = self.crash is not None and self.crash.operation == number
        if crashes and self.crash is not None and not self.crash.is_done:
            raise Crashed
        result = getattr(self.store, name)(*given)
        if crashes:
            raise Crashed
        return result


class _PausingStore:
    def __init__(self, process: Process) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self._process.execute(name, given)


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
        for process in processes:
            process.start()
        is_whole = _take_turns(processes, choices)
        for process in processes:
            if process.error is not None:
                raise process.error
        if is_whole:
            yield store, processes
        while choices and choices[-1][0] + 1 == choices[-1][1]:
            choices.pop()
        if not choices:
            return
        chosen, alternatives = choices[-1]
        choices[-1] = (chosen + 1, alternatives)


def _take_turns(processes: Sequence[Process], choices: list[tuple[int, int]]) -> bool:
    """Run the programs by the choices, and continue with first choices, which are added.

    Return False, with the programs ended early, if another order has the same outcome.
    """
    depth, last = 0, 0
    executed: Operation | None = None

    def follows(number: int, process: Process) -> bool:
        """Return whether no other order has the operation before the last one, with the same outcome."""
        assert process.next is not None
        return number >= last or executed is None or not commute(process.next, executed)

    while running := [(number, each) for number, each in enumerate(processes) if not each.has_ended]:
        able = [(number, process) for number, process in running if follows(number, process)]
        if not able:
            for _, process in running:
                process.abandon()
            return False
        if depth == len(choices):
            choices.append((0, len(able)))
        last, process = able[choices[depth][0]]
        executed = process.next
        process.step()
        depth += 1
    return True
