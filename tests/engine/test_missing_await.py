"""A call of an asynchronous context cannot be used before `await`, and one never awaited is an error."""

import asyncio
import gc
import json
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from inspect import iscoroutinefunction, unwrap
from typing import Any
from unittest.mock import create_autospec

import pytest

from mcp_roundtrip import AsyncContext, Elicit, ElicitationDeclined, NotAwaited, Retry, StepFailed, ToolError
from mcp_roundtrip.engine.async_context import AsyncContext as Owner
from mcp_roundtrip.engine.outcomes import Done, NeedsInput, Outcome
from support.passes import AsyncPasses, accept, error, value
from support.skips import NEWER_PYTHON

DELETED: list[str] = []


@pytest.fixture(autouse=True)
def no_side_effects_and_no_warnings() -> Iterator[None]:
    """Check that nothing is deleted and that Python reports no coroutine of its own."""
    DELETED.clear()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(each.message) for each in heard if "never awaited" in str(each.message)] == []
    assert DELETED == []


@pytest.fixture(autouse=True, scope="module")
def little_garbage_to_collect() -> None:
    """Exempt what other tests left: each of these tests would traverse it."""
    gc.collect()
    gc.freeze()


def delete() -> None:
    DELETED.append("everything")


def sure(ctx: AsyncContext) -> Coroutine[Any, Any, bool]:
    return ctx.elicit("sure", "Delete everything?", bool)


def refused(outcome: Outcome, *named: str) -> None:
    """Check that a pass ended in a NotAwaited error that says this."""
    failure = error(outcome, NotAwaited)
    for name in named:
        assert name in str(failure)


USES: dict[str, Callable[[Any], Any]] = {
    "if": lambda call: delete() if call else None,
    "not": lambda call: not call,
    "==": lambda call: call == True,  # noqa: E712
    "<": lambda call: call < 3,
    "sorted": lambda call: sorted([call, 1]),
    "f-string": lambda call: f"{call:>9}",
    "str": str,
    "for": list,
    "in": lambda call: "x" in call,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_question_cannot_be_used_before_it_is_awaited(use):
    async def body(ctx: AsyncContext) -> None:
        use(sure(ctx))
        delete()

    refused(AsyncPasses(body)(), "question 'sure'", "write `await ctx.elicit(...)`")


@pytest.mark.parametrize("use", [int, lambda call: call.name, json.dumps])
def test_an_error_of_python_about_a_call_has_a_note_that_it_was_never_awaited(use):
    async def body(ctx: AsyncContext) -> None:
        use(sure(ctx))
        delete()

    (note,) = error(AsyncPasses(body)(), (TypeError, AttributeError)).__notes__
    assert "question 'sure'" in note
    assert "write `await ctx.elicit(...)`" in note


def test_swallowing_the_error_does_not_prevent_it_and_no_later_step_runs():
    async def body(ctx: AsyncContext) -> str:
        with suppress(Exception):
            if sure(ctx):
                delete()
        with suppress(Exception):
            await ctx.step("delete", delete)
        return "deleted"

    refused(AsyncPasses(body)(), "'sure' is used")


CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "elicit": (lambda ctx: ctx.elicit("a", "?", str), "question 'a'"),
    "elicit by name": (lambda ctx: ctx.elicit(key="a", message="?", model=str), "question 'a'"),
    "confirm": (lambda ctx: ctx.confirm("a", "?"), "question 'a'"),
    "elicit_url": (lambda ctx: ctx.elicit_url("a", "?", "https://x.test", done=bool), "question 'a'"),
    "sample": (lambda ctx: ctx.sample("a", "?", max_tokens=1), "question 'a'"),
    "list_roots": (lambda ctx: ctx.list_roots(), "question 'roots'"),
    "request": (lambda ctx: ctx.request("a", "com.example/x"), "question 'a'"),
    "ask": (lambda ctx: ctx.ask(Elicit("a", "?", str), Elicit("b", "?", str)), "question 'a' and 'b'"),
    "step": (lambda ctx: ctx.step("a", int), "step 'a'"),
    "now": (lambda ctx: ctx.now("a"), "recorded value 'a'"),
    "uuid": (lambda ctx: ctx.uuid("a"), "recorded value 'a'"),
    "random": (lambda ctx: ctx.random("a"), "recorded value 'a'"),
    "signed_link": (lambda ctx: ctx.signed_link("a", "https://x.test"), "signed link 'a'"),
    "sleep": (lambda ctx: ctx.sleep("a", 1), "sleep 'a'"),
    "gather": (lambda ctx: ctx.gather({}), "ctx.gather"),
    "run_as_task": (lambda ctx: ctx.run_as_task(), "ctx.run_as_task"),
    "checkpoint": (lambda ctx: ctx.checkpoint(), "ctx.checkpoint"),
    "progress": (lambda ctx: ctx.progress(1), "ctx.progress"),
    "log": (lambda ctx: ctx.log("info", "x"), "ctx.log"),
}


@pytest.mark.parametrize(("make", "name"), CALLS.values(), ids=CALLS.keys())
def test_every_awaitable_call_refuses_other_uses_and_is_reported_if_not_awaited(make, name):
    async def uses(ctx: AsyncContext) -> None:
        if make(ctx):
            delete()

    async def discards(ctx: AsyncContext) -> None:
        make(ctx)

    async def keeps(ctx: AsyncContext) -> Any:
        return make(ctx)

    for body in (uses, discards, keeps):
        refused(AsyncPasses(body)(), name)


def test_the_table_has_all_awaitable_calls():
    awaited = {
        name for name, member in vars(Owner).items() if name[0] != "_" and iscoroutinefunction(unwrap(member))
    }
    assert awaited == {name.split()[0] for name in CALLS}


@pytest.mark.skipif(sys.version_info < (3, 12), reason=f"{NEWER_PYTHON}: inspect.markcoroutinefunction")
def test_calls_of_a_mocked_context_can_be_awaited():
    ctx = create_autospec(AsyncContext, instance=True)
    ctx.elicit.return_value = True
    assert asyncio.run(ctx.elicit("sure", "Delete everything?", bool)) is True


def cycle(call: object) -> None:
    [held := [call]].append(held)


def wait_in_a_task(call: Any) -> asyncio.Task[Any]:
    return asyncio.create_task(asyncio.wait_for(call, 60))


UNAWAITED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "nested in the result": (lambda ctx: (1, {"a": [sure(ctx)]}), "'sure' was never"),
    "two": (lambda ctx: [ctx.uuid("a"), ctx.uuid("b")], "recorded value 'b'"),
    "in a cycle": (lambda ctx: cycle(ctx.uuid("id")), "recorded value 'id'"),
    "in a branch": (lambda ctx: sure(ctx.branch("east")), "question 'east/sure'"),
    "gather": (lambda ctx: asyncio.gather(sure(ctx)), "'sure' is left"),
    "a separate task": (lambda ctx: wait_in_a_task(sure(ctx)), "'sure' is left"),
    "an interrupted step of a task": (
        lambda ctx: wait_in_a_task(ctx.step("wait", asyncio.sleep, 3600)),
        "step 'wait' is left",
    ),
}


@pytest.mark.parametrize(("make", "said"), UNAWAITED.values(), ids=UNAWAITED.keys())
def test_a_call_that_is_never_awaited_is_an_error(make, said):
    async def body(ctx: AsyncContext) -> Any:
        made = make(ctx)
        await asyncio.sleep(0)
        return made

    refused(AsyncPasses(body)(), said)


def test_a_discarded_call_is_an_error_before_the_next_step_runs_or_a_question_is_asked():
    async def deletes(ctx: AsyncContext) -> None:
        sure(ctx)
        await ctx.step("delete", delete)

    async def deletes_before_its_await(ctx: AsyncContext) -> bool:
        answer = sure(ctx)
        await ctx.step("delete", delete)
        return await answer

    async def asks(ctx: AsyncContext) -> None:
        sure(ctx)
        await ctx.elicit("name", "?", str)

    for body in (deletes, asks):
        refused(AsyncPasses(body)(), "'sure' was never")
    refused(AsyncPasses(deletes_before_its_await)(), "question 'sure'", "before step 'delete'")


def test_a_step_refuses_a_call_as_argument():
    for body in (
        lambda ctx: ctx.step("delete", lambda price: delete(), ctx.step("price", int)),
        lambda ctx: ctx.step("delete", lambda price: delete(), price=ctx.step("price", int)),
    ):
        refused(AsyncPasses(body)(), "step 'price'", "step 'delete'")


async def close(ctx: AsyncContext) -> None:
    sure(ctx).close()


async def cancel_before_the_start(ctx: AsyncContext) -> None:
    task = asyncio.create_task(ctx.step("delete", delete))
    task.cancel()
    await asyncio.wait([task])


async def cancel_while_it_runs(ctx: AsyncContext) -> None:
    task = asyncio.create_task(sure(ctx))
    await ctx.step("look", int)
    task.cancel()


async def leave_running(ctx: AsyncContext) -> None:
    async def runs_on() -> None:
        later = ctx.step("later", int)
        await asyncio.sleep(3600)
        await later

    ctx.kept = asyncio.create_task(runs_on())
    await asyncio.sleep(0)


@pytest.mark.parametrize("body", [close, cancel_before_the_start, cancel_while_it_runs, leave_running])
def test_calls_that_are_closed_or_whose_task_was_cancelled_or_still_runs_are_not_reported(body):
    assert AsyncPasses(body)() == Done(None)


class OutOfStock(ToolError): ...


@pytest.mark.parametrize("kind", [ToolError, OutOfStock])
def test_a_tool_error_does_not_hide_a_call_never_awaited(kind):
    async def body(ctx: AsyncContext) -> None:
        answer = sure(ctx)
        if answer is not True:
            raise kind("You said no.")

    outcome = AsyncPasses(body)()
    refused(outcome, "question 'sure'")
    assert isinstance(error(outcome).__context__, kind)


def test_a_declined_question_and_a_failed_step_are_not_hidden_by_calls_not_reached():
    async def body(ctx: AsyncContext) -> None:
        later = ctx.step("later", int)
        if await ctx.elicit("a", "?", bool):
            await ctx.step("never", int, "no number", retry=Retry(attempts=1))
        await later

    assert error(AsyncPasses(body).begun()(a={"action": "decline"}), ElicitationDeclined)
    assert error(AsyncPasses(body).begun()(a=accept(True)), StepFailed)


def test_calls_of_a_cancelled_branch_are_not_reported():
    async def waits(ctx: AsyncContext) -> list[Any]:
        later = ctx.step("later", int)
        return [await ctx.elicit("q", "?", str), await later]

    async def fails(ctx: AsyncContext) -> None:
        later = ctx.step("later", int)
        await asyncio.sleep(0)
        raise ToolError("no such region")
        await later

    async def body(ctx: AsyncContext) -> str:
        try:
            await ctx.gather({"a": waits, "b": fails})
        except* ToolError:
            pass
        gc.collect()
        return await ctx.step("after", str, "continued")

    assert AsyncPasses(body)() == Done("continued")


@pytest.mark.parametrize("schedule", [asyncio.gather, asyncio.create_task, asyncio.shield, wait_in_a_task])
def test_asyncio_accepts_a_call_like_any_coroutine(schedule):
    async def body(ctx: AsyncContext) -> list[Any]:
        asked = schedule(ctx.elicit("q", "?", str))
        made = await asyncio.wait_for(ctx.step("make", int, 7), 60)
        return [made, await asked]

    call = AsyncPasses(body)
    assert isinstance(call(), NeedsInput)
    assert value(call(q=accept("x"))) in ([7, "x"], [7, ["x"]])


def test_an_error_of_the_tool_is_not_hidden_by_its_running_tasks():
    async def body(ctx: AsyncContext) -> None:
        asyncio.gather(sure(ctx))
        await ctx.step("look", int)
        raise ToolError("no")

    assert str(error(AsyncPasses(body)())) == "no"


def test_a_call_of_a_thread_is_none_of_the_task_that_runs_meanwhile_and_has_to_be_awaited():
    async def body(ctx: AsyncContext) -> bool:
        asked = threads.submit(sure, ctx).result(10)
        await ctx.step("look", int)
        return await asked

    async def forgets(ctx: AsyncContext) -> None:
        calls.append(threads.submit(sure, ctx).result(10))

    calls: list[Any] = []
    with ThreadPoolExecutor(1) as threads:
        assert isinstance(AsyncPasses(body)(), NeedsInput)
        error(AsyncPasses(forgets)(), NotAwaited)


@pytest.mark.parametrize(
    ("first", "again"),
    [(make := lambda call: call, make), (make, asyncio.create_task), (asyncio.create_task, make)],
    ids=["await", "create_task", "await after create_task"],
)
def test_a_call_can_be_awaited_only_once(first, again):
    async def body(ctx: AsyncContext) -> list[int]:
        call = ctx.step("make", int, 7)
        return [await first(call), await again(call)]

    refused(AsyncPasses(body)(), "step 'make'", "a second time")
