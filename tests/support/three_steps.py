"""The tool that the tests of lost workers run."""

from collections.abc import Callable

from mcp_roundtrip import Context
from mcp_roundtrip.errors import StepInterrupted


def take_three_steps(ctx: Context, effect: Callable[[str], str]) -> dict[str, str]:
    """Take the steps first, once and last as a task, with a question before the last one.

    `effect` gets the name of each step. The result has what it returned for each, or "interrupted".
    """
    ctx.run_as_task()
    first = ctx.step("first", effect, "first")
    try:
        once = ctx.step("once", effect, "once", at_most_once=True)
    except StepInterrupted:
        once = "interrupted"
    ctx.elicit("go", "Go on?", bool)
    return {"first": first, "once": once, "last": ctx.step("last", effect, "last")}
