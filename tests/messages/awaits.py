"""Calls of an `AsyncContext` that are used or discarded without `await`."""

from __future__ import annotations

import asyncio
from textwrap import indent

from mcp_roundtrip import AsyncContext, Elicit, NotAwaited
from messages.cases import run_async, says

APP = "/var/task/app.py"


def body(lines: str) -> None:
    """Run these lines as the body of a tool in a separate file, from line 2 on."""
    names: dict[str, object] = {"AsyncContext": AsyncContext, "Elicit": Elicit, "asyncio": asyncio}
    source = "async def tool(ctx: AsyncContext) -> object:\n" + indent(lines, "    ")
    exec(compile(source, APP, "exec"), names)
    run_async(names["tool"])  # type: ignore[arg-type]


@says(
    "question 'sure' (ctx.elicit, /var/task/app.py:2) was tested for truth before it was awaited: "
    "write `await ctx.elicit(...)`",
    NotAwaited,
)
def a_question_in_an_if() -> None:
    body('if ctx.elicit("sure", "Delete?", bool): pass')


@says(
    "question 'size' (ctx.elicit, /var/task/app.py:2) was asked for `.vcpus` before it was awaited: "
    "write `await ctx.elicit(...)`",
    NotAwaited,
)
def an_attribute_of_a_question() -> None:
    body('return ctx.elicit("size", "How large?", int).vcpus')


@says(
    "question 'a' and 'b' (ctx.ask, /var/task/app.py:2) was iterated over before it was awaited: "
    "write `await ctx.ask(...)`",
    NotAwaited,
)
def questions_that_are_unpacked() -> None:
    body('a, b = ctx.ask(Elicit("a", "?", str), Elicit("b", "?", str))')


@says("step 'make' (ctx.step, /var/task/app.py:2) was never awaited: write `await ctx.step(...)`", NotAwaited)
def a_step_that_is_discarded() -> None:
    body('ctx.step("make", int)\nawait ctx.step("later", int)')


@says(
    "recorded value 'id' (ctx.uuid, /var/task/app.py:2) was never awaited: write `await ctx.uuid(...)`\n"
    "ctx.progress (/var/task/app.py:3) was never awaited: write `await ctx.progress(...)`",
    NotAwaited,
)
def calls_that_are_left() -> None:
    body('made = ctx.uuid("id")\nreturn [made, ctx.progress(1)]')


@says(
    "question 'sure' (ctx.confirm, /var/task/app.py:2) is not awaited where step 'delete' would run: "
    "await it before the step",
    NotAwaited,
)
def a_step_over_a_question() -> None:
    body('sure = ctx.confirm("sure", "Delete?")\nawait ctx.step("delete", int)\nawait sure')


@says(
    "step 'make' (ctx.step, /var/task/app.py:2) is awaited a second time: "
    "keep what the first `await` returns in a variable",
    NotAwaited,
)
def a_call_that_is_awaited_twice() -> None:
    body('made = ctx.step("make", int)\nawait made\nawait made')


@says(
    "question 'sure' (ctx.confirm, /var/task/app.py:2) is left in a task that was never awaited: "
    "await the task, or what asyncio.gather returns for it",
    NotAwaited,
)
def a_task_that_is_not_awaited() -> None:
    body('if asyncio.gather(ctx.confirm("sure", "Delete?")): await ctx.step("delete", int)')
