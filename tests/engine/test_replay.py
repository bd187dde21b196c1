"""The outcome of a pass, also if the tool catches exceptions."""

from __future__ import annotations

from contextlib import suppress

import pytest

from mcp_roundtrip import Context, Drift
from mcp_roundtrip.engine.replay import Done
from support.passes import Passes, accept, asked, error


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


def test_finally_blocks_run_in_every_pass_but_their_steps_only_in_the_last():
    ran: list[str] = []

    def body(ctx: Context) -> str:
        try:
            return ctx.elicit("q", "?", str)
        finally:
            ran.append("finally")
            ctx.step("cleanup", lambda: ran.append("step"))

    call = Passes(body).begun()
    assert ran == ["finally"]
    assert call(q=accept("x")) == Done("x")
    assert ran == ["finally", "finally", "step"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, SystemExit])
def test_the_replay_catches_everything_that_a_tool_raises(kind):
    def body(ctx: Context) -> None:
        raise kind

    assert isinstance(error(Passes(body)()), kind)


def test_a_suspension_inside_an_exception_group_is_a_suspension():
    def body(ctx: Context) -> None:
        try:
            ctx.elicit("q", "?", str)
        except BaseException as suspension:
            raise BaseExceptionGroup("wrapped", [suspension]) from None

    assert asked(Passes(body)()).keys() == {"q"}
