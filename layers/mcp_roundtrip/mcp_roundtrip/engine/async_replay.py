"""Drives one pass over an asynchronous tool's body.

A question without an answer parks the coroutine that asked it and touches no other. The pass is over when
the body returned, or when nothing can go on without the client: every task is parked or waits for tasks of
its own that are, and no step is in flight. Only then are the parked tasks cancelled.

A task that has started others is taken to be waiting for them. If it waits for something else meanwhile,
outside a step, the pass may end under it: what is outside a step runs again anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeVar

from mcp_roundtrip.engine.outcome import Done, Failed, Outcome, suspended
from mcp_roundtrip.engine.run import Run

T = TypeVar("T")
Task = asyncio.Task[Any]

SETTLING_PASSES: Final = 3
"""Turns of the event loop without news before a standstill is believed: callbacks queued by what just
happened get to run, and to start what they were going to start."""

UNWINDING_S: Final = 1.0
"""How long cancelled tasks get for their `finally` blocks."""


@dataclass(slots=True)
class Branches:
    """The tasks of one pass, and who of them waits for whom."""

    run: Run
    _children: dict[Task, list[Task]] = field(default_factory=dict)
    _parked: set[Task] = field(default_factory=set)
    _steps: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def new_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Task:
        """The event loop's task factory during the pass."""
        task: Task = asyncio.Task(coroutine, loop=loop, **options)
        self._children[task] = []
        parent = asyncio.current_task(loop)
        if parent in self._children:
            self._children[parent].append(task)
        task.add_done_callback(lambda _: self._news.set())
        return task

    async def gather(self, branches: Mapping[str, Awaitable[T]]) -> dict[str, T]:
        """Await all; the first exception cancels the others, as in a TaskGroup."""
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(_awaited(work)) for name, work in branches.items()}
        return {name: task.result() for name, task in tasks.items()}

    async def park(self) -> NoReturn:
        """Wait for the end of the pass."""
        task = asyncio.current_task()
        assert task is not None
        self._parked.add(task)
        self._news.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._parked.discard(task)
        raise AssertionError("nothing resolves this future")

    @contextmanager
    def step_in_flight(self) -> Iterator[None]:
        """While it lasts the pass does not end."""
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1
            self._news.set()

    async def until_over(self, body: Task) -> None:
        """Return when `body` is done or the pass stands still."""
        while not body.done():
            await self._news_or_deadline()
            self._news.clear()
            for _ in range(SETTLING_PASSES):
                await asyncio.sleep(0)
            if not self._news.is_set() and (self._stands_still() or self._out_of_time()):
                return

    async def _news_or_deadline(self) -> None:
        """Wait for news. A branch that waits for a parked one in its own way is freed by the deadline."""
        remaining_s = self.run.environment.budget.remaining_ms() / 1000
        try:
            async with asyncio.timeout(remaining_s if self._parked else None):
                await self._news.wait()
        except TimeoutError:
            pass

    def _out_of_time(self) -> bool:
        return bool(self._parked) and self.run.environment.budget.remaining_ms() == 0 and not self._steps

    def _stands_still(self) -> bool:
        waiting = (task for task in self._children if not task.done())
        return not self._steps and all(
            task in self._parked or any(not child.done() for child in self._children[task])
            for task in waiting
        )

    async def unwind(self) -> None:
        """Cancel what is left, letting `finally` blocks run."""
        left = [task for task in self._children if not task.done()]
        for task in left:
            task.cancel()
        if left:
            done, _ = await asyncio.wait(left, timeout=UNWINDING_S)
            for task in done:  # an exception nobody asks for would be reported when the task is collected
                _ = task.cancelled() or task.exception()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


async def async_replay(body: Callable[[Branches], Coroutine[Any, Any, Any]], run: Run) -> Outcome:
    """Run the coroutine that `body` makes of a pass's branches, and say how the pass ended."""
    loop = asyncio.get_running_loop()
    branches = Branches(run)
    factory = loop.get_task_factory()
    loop.set_task_factory(branches.new_task)
    try:
        task = loop.create_task(body(branches))
        await branches.until_over(task)
        finished = task.done()
        if not finished:
            run.suspend()
        await branches.unwind()
    finally:
        loop.set_task_factory(factory)
    if run.fault is not None:
        return Failed(run.fault)
    return _finished(task) if finished else suspended(run)


def _finished(task: Task) -> Outcome:
    if task.cancelled():
        return Failed(asyncio.CancelledError())
    error = task.exception()
    return Done(task.result()) if error is None else Failed(error)
