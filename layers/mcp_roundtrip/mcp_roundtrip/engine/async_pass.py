"""Runs one pass over an asynchronous function.

A question without an answer suspends the coroutine that asked it, and no other. The pass ends when the
function has returned, or when nothing can continue without the client: every asyncio task is suspended, or
waits for tasks of its own that are, and no step is in flight. Only then are the suspended tasks cancelled.

A task that has started other tasks is assumed to wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import cache
from threading import Lock
from typing import Any, Final, NoReturn, TypeVar

from mcp_roundtrip.engine.missing_await import ContextCall, UnawaitedCalls, alive, outcome_with_unawaited
from mcp_roundtrip.engine.outcomes import Done, Failed, Outcome, suspended_outcome
from mcp_roundtrip.engine.pass_state import Run, running_function
from mcp_roundtrip.errors import UsageError

T = TypeVar("T")
AsyncioTask = asyncio.Task[Any]

SETTLING_TURNS: Final = 3
"""The turns of the event loop without a change after which the pass counts as stalled. Queued callbacks run
in them, and may start further work."""

GRACE_S: Final = 0.5
"""The time that a suspended branch waits for siblings which wait for something outside of a step, such as the
network, or a lock that the suspended branch holds. Code outside of a step runs again anyway."""

UNWIND_TIMEOUT_S: Final = 1.0
"""The time that cancelled tasks have for their `finally` blocks."""


class Branches:
    """The tasks of one pass, and which of them wait for which."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.unawaited: UnawaitedCalls = {}
        self._children: dict[AsyncioTask, list[AsyncioTask]] = {}
        self._calls: dict[AsyncioTask, ContextCall[Any]] = {}
        self._suspended: dict[AsyncioTask, Collection[str]] = {}
        self._steps: dict[AsyncioTask, str] = {}
        self._changed = asyncio.Event()

    def new_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> AsyncioTask:
        """Create a task: the event loop's task factory during the pass."""
        call = coroutine if isinstance(coroutine, ContextCall) else None
        task: AsyncioTask = asyncio.Task(coroutine if call is None else call.start(), loop=loop, **options)
        if running_function.get() is not None:  # a step's own task, which may outlive the pass
            return task
        self._children[task] = []
        if call is not None:
            self._calls[task] = call
        parent = asyncio.current_task(loop)
        if parent in self._children:
            self._children[parent].append(task)
        task.add_done_callback(lambda _: self._changed.set())
        return task

    def current_task(self) -> AsyncioTask | None:
        """Return the task that calls; None in a thread without an event loop."""
        try:
            return asyncio.current_task()
        except RuntimeError:
            return None

    def unfinished(self) -> list[str]:
        """Return the names of the calls that tasks still carry out, without those of cancelled tasks."""
        left = [task for task in self._children if not task.done() and not task.cancelling()]
        calls = [self._calls[task].describe() for task in left if task in self._calls]
        others = [task for task in left if task not in self._calls]
        keys = [key for task in others for key in self._suspended.get(task, ())]
        steps = [self._steps[task] for task in others if task in self._steps]
        return [*calls, *(f"question {key!r}" for key in keys), *steps]

    async def refuse_unawaited(self, step: str, arguments: Sequence[object]) -> None:
        """Raise NotAwaited for a question of the same task, or an argument, that nothing has awaited yet."""
        await asyncio.sleep(0)  # tasks that were just created from such calls await them now
        task = self.current_task()
        for call in alive(self.unawaited):
            if call.is_question_of(task) or any(each is call for each in arguments):
                raise call.fail_run(f"is not awaited before step {step!r}")

    async def suspend(self, keys: Collection[str] = ()) -> NoReturn:
        """Wait for the end of the pass; `keys` are those of the outstanding questions."""
        task = asyncio.current_task()
        assert task is not None
        self._suspended[task] = keys
        self._changed.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            del self._suspended[task]
            if not self.run.suspension.has_begun:  # a sibling failed, and this branch was cancelled
                self.run.requests.withdraw(keys)
        raise AssertionError("nothing resolves this future")

    async def pause(self, duration_ms: float, ends_pass: bool) -> None:
        """Wait for that time as part of a step, and then for the end of the pass if `ends_pass`."""
        if duration_ms:
            pause_ms = self.run.services.pause_ms_async
            with self.step_in_flight():
                await (asyncio.sleep(duration_ms / 1000) if pause_ms is None else pause_ms(duration_ms))
        if ends_pass:
            await self.suspend()

    @contextmanager
    def step_in_flight(self, call: str = "a call of the context") -> Iterator[None]:
        """Keep the pass from ending while the block runs; `call` is for error messages."""
        task = asyncio.current_task()
        assert task is not None
        self._steps[task] = call
        try:
            yield
        finally:
            del self._steps[task]
            self._changed.set()

    async def wait_until_settled(self, body: AsyncioTask) -> None:
        """Return when `body` is done, or when no branch can continue in this pass."""
        while not body.done():
            is_quiet = not await self._changed_within_grace()
            has_changed = await self._changes_in_turns()
            if not has_changed and not self._steps and (is_quiet or self._is_stalled()):
                return

    async def _changes_in_turns(self) -> bool:
        """Let queued callbacks run; return whether a task has changed meanwhile."""
        self._changed.clear()
        for _ in range(SETTLING_TURNS):
            await asyncio.sleep(0)
        return self._changed.is_set()

    async def _changed_within_grace(self) -> bool:
        """Wait for a change; for GRACE_S at most if a task is suspended and no step is in flight."""
        try:
            async with asyncio.timeout(GRACE_S if self._suspended and not self._steps else None):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _is_stalled(self) -> bool:
        waiting = (task for task in self._children if not task.done())
        return all(
            task in self._suspended or any(not child.done() for child in self._children[task])
            for task in waiting
        )

    async def unwind(self, *, has_returned: bool) -> None:
        """Cancel the tasks that are left, and let their `finally` blocks run.

        asyncio logs each exception that nothing retrieves, with its text. After a function that has not
        returned, those of other tasks are retrieved here: the log has the one that ended the function.
        """
        left = [task for task in self._children if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=UNWIND_TIMEOUT_S)
        for _ in left:  # the process may have been stopped for that time, and its tasks can end now
            if not await self._changes_in_turns():
                break
        for task in left if has_returned else self._children:
            if task.done():
                _ = task.cancelled() or task.exception()


async def run_branches(body: Callable[[Branches], Coroutine[Any, Any, Any]], run: Run) -> Outcome:
    """Run the coroutine that `body` returns for the branches of a pass, and return how the pass ended."""
    loop = asyncio.get_running_loop()
    branches = Branches(run)
    factory = loop.get_task_factory()
    loop.set_task_factory(branches.new_task)
    try:
        task = loop.create_task(_run_to_end(body(branches)))
        await branches.wait_until_settled(task)
        ended = _outcome_of(task, branches) if task.done() else None
        if ended is None:
            run.suspend()
            branches.unawaited.clear()  # their code is suspended, and may await them in the next pass
        await branches.unwind(has_returned=isinstance(ended, Done))
    finally:
        loop.set_task_factory(factory)
        run.has_ended = True
    if run.fault is not None:
        return Failed(run.fault)
    return suspended_outcome(run) if ended is None else ended


async def _run_to_end(work: Awaitable[Any]) -> Done | Failed:
    """Await it and return its outcome: SystemExit and the like would end asyncio's event loop."""
    try:
        return Done(await work)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return Failed(error)


def _outcome_of(task: AsyncioTask, branches: Branches) -> Done | Failed:
    outcome: Done | Failed = Failed(asyncio.CancelledError()) if task.cancelled() else task.result()
    unawaited, in_tasks = alive(branches.unawaited), branches.unfinished()
    branches.unawaited.clear()
    if not unawaited and not in_tasks and branches.run.fault is None:
        return outcome
    return outcome_with_unawaited(branches.run, outcome, unawaited, in_tasks)


@cache
def _runner() -> asyncio.Runner:
    """Return the event loop of the process. Authors keep clients, which belong to a loop, in globals."""
    return asyncio.Runner()


_loop_in_use: Final = Lock()
"""Held by the thread that runs the event loop of the process."""


def _run(work: Coroutine[Any, Any, T], context: Context) -> T:
    """Run a coroutine on the event loop of the process, or on its own one while another thread runs that."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        work.close()
        raise UsageError(
            "an async function is called where an event loop runs; write `await asyncio.to_thread(play.call, "
            "...)` in an `async def` test"
        )
    if not _loop_in_use.acquire(blocking=False):
        with asyncio.Runner() as own:
            return own.run(work, context=context)
    try:
        return _runner().run(work, context=context)
    except (SystemExit, KeyboardInterrupt):  # from an asyncio task of the tool: the loop is unusable
        _runner().close()
        _runner.cache_clear()
        raise
    finally:
        _loop_in_use.release()


def run_async_pass(
    function: Callable[..., Coroutine[Any, Any, Any]],
    arguments: Mapping[str, Any],
    run: Run,
    contexts: Mapping[str, Callable[[Branches], Any]],
) -> Outcome:
    """Run an `async def` function to the end of the pass. `contexts` makes further arguments."""

    def body(branches: Branches) -> Coroutine[Any, Any, Any]:
        return function(**arguments, **{name: make(branches) for name, make in contexts.items()})

    try:
        # Without a context, all passes would have the context variables of the first one.
        return _run(run_branches(body, run), copy_context())
    except (SystemExit, KeyboardInterrupt, UsageError) as error:
        return Failed(error)


def advance_hook(generator: AsyncIterator[None], context: Context) -> bool:
    """Run an `async def` hook to its next `yield`; return False if it ended. Raises what it raises."""
    ended = _run(_run_to_end(anext(generator)), context)
    if isinstance(ended, Done):
        return True
    if isinstance(ended.error, StopAsyncIteration):
        return False
    raise ended.error
