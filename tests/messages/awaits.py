from __future__ import annotations

import asyncio
from textwrap import indent

from mcp_roundtrip import AsyncContext, Elicit, NotAwaited
from messages.cases import mistakes, run_async


def body(lines: str) -> None:
    """Run these lines as the body of a tool."""
    names: dict[str, object] = {"AsyncContext": AsyncContext, "Elicit": Elicit, "asyncio": asyncio}
    exec("async def tool(ctx: AsyncContext) -> object:\n" + indent(lines, "    "), names)
    run_async(names["tool"])


mistakes(
    __name__,
    NotAwaited,
    {
        "a question in an if": lambda: body('if ctx.elicit("sure", "Delete?", bool): pass'),
        "questions that are unpacked": lambda: body(
            'a, b = ctx.ask(Elicit("a", "?", str), Elicit("b", "?", str))'
        ),
        "a step that is discarded": lambda: body('ctx.step("make", int)\nawait ctx.step("later", int)'),
        "calls that are left": lambda: body('made = ctx.uuid("id")\nreturn [made, ctx.progress(1)]'),
        "a step over a question": lambda: body(
            'sure = ctx.confirm("sure", "Delete?")\nawait ctx.step("delete", int)\nawait sure'
        ),
        "a call that is awaited twice": lambda: body('made = ctx.step("make", int)\nawait made\nawait made'),
        "a task that is not awaited": lambda: body(
            'if asyncio.gather(ctx.confirm("sure", "Delete?")): await ctx.step("delete", int)'
        ),
    },
)
