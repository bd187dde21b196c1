"""The list of open tasks is exact wherever a call ends early, and every reserved place lapses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.limit import OPEN_TASKS, RESERVED
from mcp_roundtrip.tasks.model import TASK
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.task_deployment import DECLARED, ROUND_MS, TaskDeployment

LIMIT = 2
MAX_OPERATIONS = 20

server = Server("reserving")
ran: list[str] = []


def step() -> str:
    ran.append("step")
    return "done"


@server.tool(task="required")
def requires_task(ctx: Context) -> str:
    ctx.run_as_task()
    return "done"


@server.tool(task="optional")
def becomes_task_after_step(ctx: Context) -> str:
    ctx.step("step", step)
    ctx.run_as_task()
    return "done"


@server.tool(task="optional")
def needs_task_after_step(ctx: Context) -> str:
    ctx.step("step", step)
    ctx.run_as_task()
    ctx.sleep("pause", 1_000)
    return "done"


@server.tool
def asks_after_step(ctx: Context) -> str:
    ctx.step("step", step)
    return str(ctx.elicit("sure", "Really?", bool))


@server.tool
def runs_step(ctx: Context) -> str:
    return ctx.step("step", step)


def fail() -> None:
    raise StoreError("ThrottlingException")


@pytest.mark.parametrize(
    ("tool", "capabilities"),
    [
        ("requires_task", DECLARED),
        ("becomes_task_after_step", DECLARED),
        ("needs_task_after_step", DECLARED),
        ("asks_after_step", {}),
        ("runs_step", {}),
    ],
)
@pytest.mark.parametrize("number_of_others", range(LIMIT + 1))
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("fault", [fail, None])
def test_every_place_is_taken_given_back_or_lapses(
    tool: str,
    capabilities: Mapping[str, Any],
    number_of_others: int,
    is_done: bool,
    fault: Callable[[], None] | None,
) -> None:
    """An operation on the table fails, or the process is lost at it, before it is performed or after."""
    for operation in range(MAX_OPERATIONS):
        deployment = TaskDeployment(server)
        deployment.table.max_open = LIMIT
        for _ in range(number_of_others):
            deployment.start("requires_task")
        ran.clear()
        store = CrashingStore(deployment.store, operation, is_done, on_reached=fault)
        try:
            body = deployment.body("tools/call", name=tool, arguments={}, capabilities=capabilities)
            response = deployment.send(body, store=store)
            assert response.status in (200, 429)
            assert response.status == 200 or ran == [], "no step of a refused call has run"
        except WorkerKilled:
            assert fault is None
        assert_exact(deployment)
        deployment.clock.now += ROUND_MS / 1_000
        places = LIMIT - len(open_tasks(deployment))
        statuses = [call(deployment, "requires_task") for _ in range(LIMIT + 1)]
        assert statuses == [200] * places + [429] * (LIMIT + 1 - places)
        assert_exact(deployment)
        if store.calls <= operation:
            return
    raise AssertionError("the call has more operations than were tried")


def call(deployment: TaskDeployment, tool: str) -> int:
    return deployment.send(deployment.body("tools/call", name=tool, arguments={})).status


def open_tasks(deployment: TaskDeployment) -> set[str]:
    store = deployment.store
    assert isinstance(store, MemoryStore)
    return {pk for pk, sk in store._items if sk == TASK}


def assert_exact(deployment: TaskDeployment) -> None:
    """Check that the list has every task, that its other entries are places, and that it counts both."""
    store = deployment.store
    assert isinstance(store, MemoryStore)
    item = next((item for (_, sk), item in store._items.items() if sk == OPEN_TASKS), {"n": 0})
    entries = {name for name in item if "#" in name}
    assert item["n"] == len(entries) <= LIMIT
    assert {name for name in entries if not name.startswith(RESERVED)} == open_tasks(deployment)
