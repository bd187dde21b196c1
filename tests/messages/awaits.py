"""Calls of an `AsyncContext` that are used or discarded without `await`."""

from __future__ import annotations

import asyncio
from textwrap import indent

from mcp_roundtrip import AsyncContext, Elicit, NotAwaited
from messages.cases import run_async, says


def body(lines: str) -> None:
    """Run these lines as the body of a tool."""
    names: dict[str, object] = {"AsyncContext": AsyncContext, "Elicit": Elicit, "asyncio": asyncio}
    exec("async def tool(ctx: AsyncContext) -> object:\n" + indent(lines, "    "), names)
    run_async(names["tool"])  # type: ignore[arg-type]


@says(
    "question 'sure' is used before it is awaited: write `await ctx.elicit(...)`",
    NotAwaited,
)
def a_question_in_an_if() -> None:
    body('if ctx.elicit("sure", "Delete?", bool): pass')


@says(
    "question 'a' and 'b' is used before it is awaited: write `await ctx.ask(...)`",
    NotAwaited,
)
def questions_that_are_unpacked() -> None:
    body('a, b = ctx.ask(Elicit("a", "?", str), Elicit("b", "?", str))')


@says("step 'make' was never awaited: write `await ctx.step(...)`", NotAwaited)
def a_step_that_is_discarded() -> None:
    body('ctx.step("make", int)\nawait ctx.step("later", int)')


@says(
    "recorded value 'id' was never awaited: write `await ctx.uuid(...)`\n"
    "ctx.progress was never awaited: write `await ctx.progress(...)`",
    NotAwaited,
)
def calls_that_are_left() -> None:
    body('made = ctx.uuid("id")\nreturn [made, ctx.progress(1)]')


@says(
    "question 'sure' is not awaited before step 'delete': write `await ctx.confirm(...)`",
    NotAwaited,
)
def a_step_over_a_question() -> None:
    body('sure = ctx.confirm("sure", "Delete?")\nawait ctx.step("delete", int)\nawait sure')


@says(
    "step 'make' is awaited a second time: keep what the first `await` returns in a variable",
    NotAwaited,
)
def a_call_that_is_awaited_twice() -> None:
    body('made = ctx.step("make", int)\nawait made\nawait made')


@says(
    "question 'sure' is left in a task that was never awaited: "
    "await the task, or what asyncio.gather returns for it",
    NotAwaited,
)
def a_task_that_is_not_awaited() -> None:
    body('if asyncio.gather(ctx.confirm("sure", "Delete?")): await ctx.step("delete", int)')
