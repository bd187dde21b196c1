"""Parts of tools that become tasks, and what their steps did.

A `conftest.py` imports the fixture, which forgets it before each test.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mcp_roundtrip import Context, Server, StepInterrupted

ran: list[str] = []
"""The names of the steps that ran."""

meanwhile: list[Callable[[], object]] = []
"""Functions for the next steps to call, each for one step."""


def run_step(name: str) -> str:
    """Record the name of a step, and return it."""
    ran.append(name)
    if meanwhile:
        in_another_process(meanwhile.pop(0))
    return name


def in_another_process(call: Callable[[], object]) -> None:
    """Call a function in a thread, where it does not find the pass that runs here."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(call).result()


@pytest.fixture(autouse=True)
def no_step_ran() -> None:
    ran.clear()
    meanwhile.clear()


def task_server(body: Callable[[Context], Any], **options: Any) -> Server:
    """Return a server whose tool `works` runs a body as a task."""
    server = Server("works", **options)

    @server.tool(task="required")
    def works(ctx: Context) -> Any:
        ctx.run_as_task(ttl_ms=24 * 3_600_000)
        return body(ctx)

    return server


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
