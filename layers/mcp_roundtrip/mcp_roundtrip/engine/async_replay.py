"""Drives one pass over an asynchronous tool's body.

A question without an answer parks the coroutine that asked it and touches no other. The pass is over when
the body returned, or when nothing can go on without the client: every task is parked or waits for tasks of
its own that are, and no step is in flight. Only then are the parked tasks cancelled.

A task that has started others is taken to be waiting for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from mcp_roundtrip.engine.context_call import ContextCall
from mcp_roundtrip.engine.outcome import Done, Failed, Outcome, suspended
from mcp_roundtrip.engine.run import Run, inside_function

if TYPE_CHECKING:
    from mcp_roundtrip.engine.context_call import Origin

T = TypeVar("T")
Task = asyncio.Task[Any]

SETTLING_PASSES: Final = 3
"""Turns of the event loop without news before a standstill is believed: callbacks queued by what just
happened get to run, and to start what they were going to start."""

GRACE_S: Final = 0.5
"""How long a parked question is held back for siblings that wait for something else outside a step: for the
network, or for the parked branch itself, by a lock or a queue. What is outside a step runs again anyway."""

UNWINDING_S: Final = 1.0
"""How long cancelled tasks get for their `finally` blocks."""


@dataclass(slots=True)
class Branches:
    """The tasks of one pass, and who of them waits for whom."""

    run: Run
    _children: dict[Task, list[Task]] = field(default_factory=dict)
    _calls: dict[Task, Origin] = field(default_factory=dict)
    _parked: dict[Task, Collection[str]] = field(default_factory=dict)
    _steps: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def new_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Task:
        """The event loop's task factory during the pass."""
        call = coroutine if isinstance(coroutine, ContextCall) else None
        task: Task = asyncio.Task(coroutine if call is None else call.take(), loop=loop, **options)
        if inside_function.get() is not None:  # a step's own affair: a client's reader may outlive the pass
            return task
        self._children[task] = []
        if call is not None:
            self._calls[task] = call._origin
        parent = asyncio.current_task(loop)
        if parent in self._children:
            self._children[parent].append(task)
        task.add_done_callback(lambda _: self._news.set())
        return task

    def current_task(self) -> Task | None:
        """The task that runs this; None in a thread that runs no event loop."""
        try:
            return asyncio.current_task()
        except RuntimeError:
            return None

    def left_open(self) -> tuple[list[Origin], list[str]]:
        """The calls that tasks still carry out, and the keys of what is asked in tasks of other coroutines.

        Not those of a task that was cancelled: its code has given up what it waited for.
        """
        left = [task for task in self._children if not task.done() and not task.cancelling()]
        calls = [self._calls[task] for task in left if task in self._calls]
        keys = [key for task in left if task not in self._calls for key in self._parked.get(task, ())]
        return calls, keys

    async def refuse_unawaited(self, step: str, given: Sequence[object]) -> None:
        """Raise NotAwaited if a call that this step's caller made before it has to be awaited first."""
        from mcp_roundtrip.engine.not_awaited import refuse_to_act  # few have any

        await asyncio.sleep(0)  # tasks that have just been made of such calls await them now
        refuse_to_act(self.run, self.current_task(), step, given)

    async def gather(self, branches: Mapping[str, Awaitable[T]]) -> dict[str, T]:
        """Await all; the first exception cancels the others, as in a TaskGroup."""
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(_awaited(work)) for name, work in branches.items()}
        return {name: task.result() for name, task in tasks.items()}

    async def park(self, questions: Collection[str] = ()) -> NoReturn:
        """Wait for the end of the pass, with the questions of these keys pending."""
        task = asyncio.current_task()
        assert task is not None
        self._parked[task] = questions
        self._news.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            del self._parked[task]
            if not self.run.ended:  # a sibling failed and this branch is given up: its questions are moot
                for key in questions:
                    self.run.pending.pop(key, None)
        raise AssertionError("nothing resolves this future")

    async def pause(self, duration_ms: float, ends_pass: bool) -> None:
        """Let that time pass, as part of a step; with `ends_pass` wait for the end of the pass then."""
        if duration_ms:
            with self.step_in_flight():
                await self.run.environment.pause_ms_async(duration_ms)
        if ends_pass:
            await self.park()

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
            quiet = not await self._news_within_grace()
            self._news.clear()
            for _ in range(SETTLING_PASSES):
                await asyncio.sleep(0)
            if not self._news.is_set() and not self._steps and (quiet or self._stands_still()):
                return

    async def _news_within_grace(self) -> bool:
        """Wait for news; for no longer than the grace where somebody is parked and no step is in flight."""
        try:
            async with asyncio.timeout(GRACE_S if self._parked and not self._steps else None):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _stands_still(self) -> bool:
        waiting = (task for task in self._children if not task.done())
        return all(
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
        task = loop.create_task(_contained(body(branches)))
        await branches.until_over(task)
        ended = _ended(task, branches) if task.done() else None
        if ended is None:
            run.suspend()
        await branches.unwind()
    finally:
        loop.set_task_factory(factory)
    if run.fault is not None:
        return Failed(run.fault)
    return suspended(run) if ended is None else ended


async def _contained(body: Coroutine[Any, Any, Any]) -> Done | Failed:
    """The body's end. With SystemExit and its like asyncio would let the event loop die, too."""
    try:
        return Done(await body)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return Failed(error)


def _ended(task: Task, branches: Branches) -> Done | Failed:
    outcome: Done | Failed = Failed(asyncio.CancelledError()) if task.cancelled() else task.result()
    calls, keys = branches.left_open()
    if not branches.run.unawaited and not calls and not keys and branches.run.fault is None:
        return outcome
    from mcp_roundtrip.engine.not_awaited import conclude  # few leave any

    return conclude(branches.run, outcome, calls, keys)
