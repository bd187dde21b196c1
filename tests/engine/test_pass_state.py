"""Keys, drift between steps and questions, checkpoints, and the outcome of a pass."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from mcp_roundtrip import AsyncContext, Context, Drift, DuplicateKey, InvalidKey, UsageError
from support.passes import AsyncPasses, Passes, accept, asked, error


def test_a_key_used_twice_in_one_run_is_refused_even_if_the_tool_swallows_it():
    def body(ctx: Context) -> str:
        ctx.step("one", int)
        with suppress(Exception):
            ctx.step("one", int)
        return "continued"

    assert error(Passes(body)(), DuplicateKey).key == "one"


@pytest.mark.parametrize("key", ["", "a/b", "~a", "a\ud800", 7, None])
def test_reserved_and_empty_keys_are_refused(key):
    for use in (lambda ctx: ctx.step(key, int), lambda ctx: ctx.idempotency_key(key)):
        assert error(Passes(use)(), InvalidKey)


def test_a_step_may_not_ask_for_a_checkpoint():
    assert error(Passes(lambda ctx: ctx.step("outer", lambda: ctx.checkpoint(needs_ms=1e9)))(), UsageError)


def test_a_step_that_became_a_question_is_drift_and_the_other_way_round():
    def step(ctx: Context) -> Any:
        return [ctx.step("x", int), ctx.elicit("q", "?", bool)]

    def question(ctx: Context) -> Any:
        return [ctx.elicit("x", "?", bool), ctx.elicit("y", "?", bool)]

    for before, after in ((step, question), (question, step)):
        call = Passes(before).begun()
        call(x=accept(True))
        assert error(call.on(after)(), Drift).key == "x"


def test_drift_decides_the_outcome_even_if_the_tool_swallows_it():
    def swallowing(ctx: Context) -> str:
        with suppress(Exception):
            ctx.elicit("x", "?", bool)
        return "continued"

    call = Passes(lambda ctx: [ctx.step("x", int), ctx.elicit("q", "?", bool)]).begun()
    assert isinstance(error(call.on(swallowing)()), Drift)


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_a_suspended_run_stays_suspended_whatever_the_tool_catches(caught):
    ran: list[str] = []

    def body(ctx: Context) -> str:
        with suppress(caught):
            ctx.elicit("q", "?", str)
        with suppress(caught):
            ctx.step("cleanup", lambda: ran.append("cleanup"))
        return "continued"

    assert asked(Passes(body)()).keys() == {"q"}
    assert ran == []


@pytest.mark.parametrize("name", ["run_as_task", "checkpoint", "log", "progress"])
def test_calls_of_the_context_do_nothing_while_the_tool_unwinds(name):
    arguments = {"log": ("info", "done"), "progress": (1,)}.get(name, ())

    def body(ctx: Context) -> str:
        try:
            return ctx.elicit("q", "?", str)
        finally:
            getattr(ctx, name)(*arguments)

    async def async_body(ctx: AsyncContext) -> str:
        try:
            return await ctx.elicit("q", "?", str)
        finally:
            await getattr(ctx, name)(*arguments)

    for call in (Passes(body), AsyncPasses(async_body)):
        call.may_start_task, call.remaining_ms = True, 0
        assert asked(call()).keys() == {"q"}
        assert call.run is not None
        assert call.run.notifications.messages == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, SystemExit, asyncio.CancelledError])
def test_the_replay_catches_everything_that_a_tool_raises(kind):
    def body(ctx: Context) -> None:
        raise kind

    async def async_body(ctx: AsyncContext) -> None:
        raise kind

    for passes in (Passes(body), AsyncPasses(async_body)):
        assert error(passes(), kind)


def test_a_suspension_inside_an_exception_group_is_a_suspension():
    def body(ctx: Context) -> None:
        try:
            ctx.elicit("q", "?", str)
        except BaseException as suspension:
            raise BaseExceptionGroup("wrapped", [suspension]) from None

    assert asked(Passes(body)()).keys() == {"q"}
