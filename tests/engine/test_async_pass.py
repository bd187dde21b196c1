"""Asynchronous tools: a question parks its branch, and steps of other branches complete."""

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from mcp_roundtrip import AsyncContext, ToolError
from mcp_roundtrip.engine import async_pass
from mcp_roundtrip.engine.async_pass import Branches
from mcp_roundtrip.engine.outcomes import Done
from mcp_roundtrip.engine.pass_state import running
from support.passes import AsyncPasses, Passes, accept, asked, error


def journaled(call: AsyncPasses) -> set[str]:
    assert call.journal is not None
    return {entry.key for entry in call.journal.entries}


async def ask(ctx: AsyncContext) -> str:
    return await ctx.elicit("q", "?", str)


async def a_few_turns(turns: int = 10) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def test_a_question_does_not_cancel_a_step_of_the_code_that_started_its_branch():
    ran: list[str] = []

    async def slow_effect() -> str:
        await a_few_turns(50)
        ran.append("finished")
        return "effect"

    async def body(ctx: AsyncContext) -> list[str]:
        asking = asyncio.create_task(ctx.elicit("q", "?", str))
        made = await ctx.step("slow", slow_effect)
        return [made, await asking]

    async def works(ctx: AsyncContext) -> str:
        return await ctx.step("slow", slow_effect)

    for tool in (body, lambda ctx: ctx.gather({"works": works, "asks": ask})):
        ran.clear()
        call = AsyncPasses(tool)
        (question,) = asked(call())
        assert {key.rpartition("/")[2] for key in journaled(call)} == {"slow"}
        assert isinstance(call(**{question: accept("a")}), Done)
        assert ran == ["finished"]


def test_a_parked_branch_is_unwound_and_its_later_steps_do_not_run():
    ran: list[str] = []

    async def body(ctx: AsyncContext) -> str:
        try:
            return await ctx.elicit("q", "?", str)
        except BaseException:
            return "continued"
        finally:
            await a_few_turns(50)
            ran.append("finally")
            await ctx.step("cleanup", lambda: ran.append("step"))

    call = AsyncPasses(body)
    assert asked(call()).keys() == {"q"}
    assert ran == ["finally"]
    assert call(q=accept("x")) == Done("x")
    assert ran == ["finally", "finally", "step"]


def test_a_suspended_pass_does_not_wait_for_a_finally_block_that_hangs(monkeypatch):
    monkeypatch.setattr("mcp_roundtrip.engine.async_pass.UNWIND_TIMEOUT_S", 0.01)
    ran: list[str] = []

    async def body(ctx: AsyncContext) -> None:
        try:
            await ctx.elicit("q", "?", str)
        finally:
            await asyncio.sleep(1)
            ran.append("finally")

    assert asked(AsyncPasses(body)()).keys() == {"q"}
    assert ran == []


def test_a_parked_branch_does_not_end_a_pass_that_awaits_done(monkeypatch):
    monkeypatch.setattr("mcp_roundtrip.engine.async_pass.GRACE_S", 0)

    async def done() -> bool:
        await a_few_turns(50)
        return True

    async def visit(ctx: AsyncContext) -> None:
        await ctx.elicit_url("page", "Go", "https://x.test", done=done)

    call = AsyncPasses(lambda ctx: ctx.gather({"a": visit, "b": ask}))
    assert asked(call()).keys() == {"a/page", "b/q"}
    assert asked(call(**{"a/page": {"action": "accept"}})).keys() == {"b/q"}
    assert journaled(call) == {"a/page"}


def test_a_pass_cancels_the_tasks_of_the_tool_at_its_end_and_none_of_a_step():
    tasks: list[asyncio.Task[None]] = []

    async def body() -> None:
        tasks.append(asyncio.create_task(asyncio.sleep(3600)))
        with running("step", "connect"):
            tasks.append(asyncio.create_task(asyncio.sleep(3600)))

    run = AsyncPasses(body).make_run({})
    with asyncio.Runner() as runner:
        assert runner.run(async_pass.run_branches(lambda _: body(), run)) == Done(None)
        assert [task.cancelled() for task in tasks] == [True, False]


def test_a_task_that_continues_after_its_cancellation_need_not_await_its_calls():
    async def waits(ctx: AsyncContext) -> None:
        later = ctx.step("later", int)
        await asyncio.sleep(3600)
        await later

    async def continues(ctx: AsyncContext) -> None:
        with suppress(asyncio.CancelledError):
            await waits(ctx)
        await asyncio.sleep(0)

    async def body(ctx: AsyncContext) -> None:
        task = asyncio.create_task(continues(ctx))
        await asyncio.sleep(0)
        task.cancel()
        await task

    assert AsyncPasses(body)() == Done(None)


def test_a_branch_that_waits_for_a_parked_branch_does_not_block_the_pass():
    async def body(ctx: AsyncContext) -> Any:
        ready = asyncio.Event()

        async def sets() -> None:
            await ctx.elicit("q", "?", str)
            ready.set()

        async def waits() -> str:
            await ready.wait()
            return "ready"

        _, waited = await asyncio.gather(sets(), waits())
        return waited

    call = AsyncPasses(body)
    assert asked(call()).keys() == {"q"}
    assert call(q=accept("x")) == Done("ready")


def test_the_failure_of_a_branch_fails_the_call_or_withdraws_the_questions_of_the_others():
    async def fails(ctx: AsyncContext) -> str:
        await asyncio.sleep(0.01)
        raise ToolError("no")

    async def gathers(ctx: AsyncContext) -> Any:
        return await ctx.gather({"a": ask, "b": fails})

    async def goes_on(ctx: AsyncContext) -> str:
        with suppress(BaseExceptionGroup):
            await gathers(ctx)
        return await ctx.elicit("c", "?", str)

    assert error(AsyncPasses(gathers)(), BaseExceptionGroup)
    assert asked(AsyncPasses(goes_on)()).keys() == {"c"}


@pytest.mark.parametrize("returns", [False, True])
def test_asyncio_logs_no_exception_of_another_task_unless_the_function_returns(caplog, returns):
    """The line would quote values of the call. The log has the exception that ended the function."""

    async def fails(kind: type[Exception]) -> None:
        raise kind("of Ada")

    async def starts_two(ctx: AsyncContext) -> None:
        first, _ = asyncio.create_task(fails(LookupError)), asyncio.create_task(fails(OSError))
        with suppress(*[LookupError] if returns else []):
            await first
        await a_few_turns()

    assert isinstance(AsyncPasses(starts_two)(), Done) is returns
    gc.collect()  # the exception has the tasks in its traceback
    assert [record.name for record in caplog.records] == ["asyncio"] * returns


def test_without_another_clock_a_pause_lets_other_coroutines_run_until_its_end() -> None:
    run, ended = Passes(lambda ctx: None).make_run(), list[str]()
    run.services = structs.replace(run.services, pause_ms_async=None)

    async def pause() -> None:
        await Branches(run).pause(1, ends_pass=False)
        ended.append("pause")

    async def other() -> None:
        ended.append("other")

    async def both() -> None:
        await asyncio.gather(pause(), other())

    asyncio.run(both())
    assert ended == ["other", "pause"]


def test_nested_branches_end_with_the_pass_although_the_process_was_stopped_meanwhile(monkeypatch):
    """A task that is left would be destroyed while it is pending, which asyncio logs as an error."""
    monkeypatch.setattr(async_pass, "UNWIND_TIMEOUT_S", 0)  # the time is over at the first turn
    call = AsyncPasses(lambda ctx: ctx.gather({"a": lambda inner: inner.gather({"x": ask}), "b": ask}))
    run = call.make_run({})
    with asyncio.Runner() as runner:
        body = partial(AsyncContext, run, call.info)
        outcome = runner.run(async_pass.run_branches(lambda branches: call.body(body(branches)), run))
        left = asyncio.all_tasks(runner.get_loop())
    assert (asked(outcome).keys(), left) == ({"a/x/q", "b/q"}, set())


def run_pass(function: Any) -> Any:
    run = AsyncPasses(function).make_run({})
    return async_pass.run_async_pass(function, {}, run, {})


def test_passes_of_two_threads_can_begin_at_the_same_moment(monkeypatch):
    both = Barrier(2)

    def run(*args: Any, **options: Any) -> Any:
        with suppress(BrokenBarrierError):
            both.wait(0.2)
        return runner.run(*args, **options)

    async def pause() -> int:
        await asyncio.sleep(0.05)
        return 1

    with asyncio.Runner() as runner, ThreadPoolExecutor(2) as threads:
        slow = SimpleNamespace(run=run, get_loop=runner.get_loop)
        monkeypatch.setattr(async_pass, "_runner", lambda: slow)
        assert list(threads.map(run_pass, [pause, pause])) == [Done(1), Done(1)]


def test_passes_share_an_event_loop_unless_another_thread_runs_it():
    async def inner() -> Any:
        return asyncio.get_running_loop()

    async def outer() -> Any:
        with ThreadPoolExecutor(1) as other:
            return other.submit(run_pass, inner).result().value

    loop = run_pass(inner).value
    assert run_pass(outer).value is not loop
    assert run_pass(inner).value is loop
