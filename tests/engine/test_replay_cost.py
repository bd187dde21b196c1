"""The work of a replay is proportional to the length of its journal: counted in function calls, not timed."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_roundtrip import AsyncContext, Context, Elicit
from support.function_calls import count_function_calls
from support.passes import AsyncPasses, Passes, accept, asked

LENGTHS = (50, 100, 200)
MORE_PER_ENTRY = 1.1
"""The event loop's own calls vary with the load of the computer. Quadratic work would give 2."""


class Row(BaseModel):
    id: str
    price: float


def row(item: int) -> Row:
    return Row(id=f"row-{item}", price=item / 4)


async def async_row(item: int) -> Row:
    return row(item)


def steps(ctx: Context, length: int) -> None:
    for item in range(length):
        ctx.step(f"step-{item}", row, item)


def progress(ctx: Context, length: int) -> None:
    for item in range(length):
        ctx.step(f"step-{item}", int)
        ctx.progress(item + 1, length)


def answers(ctx: Context, length: int) -> None:
    ctx.ask(*(Elicit(f"question-{item}", "?", bool) for item in range(length)))


async def branches(ctx: AsyncContext, length: int) -> None:
    async def branch(own: AsyncContext) -> Row:
        return await own.step("step", async_row, 1)

    await ctx.gather({f"branch-{item}": branch for item in range(length)})


def calls_of_a_replay(body: Callable[[Any, int], Any], length: int) -> int:
    """Answer until only the last question is open, replay the journal, and return the number of calls."""

    def tool(ctx: Context) -> None:
        body(ctx, length)
        ctx.elicit("last", "?", bool)

    async def async_tool(ctx: AsyncContext) -> None:
        await body(ctx, length)
        await ctx.elicit("last", "?", bool)

    call = AsyncPasses(async_tool) if iscoroutinefunction(body) else Passes(tool)
    questions = asked(call())
    while questions.keys() != {"last"}:
        questions = asked(call(**dict.fromkeys(questions, accept(True))))
    return count_function_calls(call)


@pytest.mark.parametrize("body", [steps, progress, answers, branches])
def test_each_further_entry_costs_a_replay_the_same(body):
    short, middle, long = (calls_of_a_replay(body, length) for length in LENGTHS)
    per_entry = (middle - short) / (LENGTHS[1] - LENGTHS[0])
    assert (long - middle) / (LENGTHS[2] - LENGTHS[1]) <= per_entry * MORE_PER_ENTRY
