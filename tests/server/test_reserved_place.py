"""The list of open tasks is exact wherever a call ends early, and every reserved place lapses."""

from __future__ import annotations

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.tasks.limit import OPEN_TASKS, RESERVED
from mcp_roundtrip_testing.task_table import CrashingStore, WorkerKilled
from support.client_requests import ASKABLE
from support.deployment import Deployment
from support.faulty_store import refuse
from support.task_tools import ran, run_step

LIMIT = 2
MAX_OPERATIONS = 20

server = Server("reserving")


@server.tool(task="required")
def requires_task(ctx: Context) -> str:
    ctx.run_as_task()
    return "done"


@server.tool(task="optional")
def becomes_task_after_step(ctx: Context) -> str:
    ctx.step("step", run_step, "step")
    ctx.run_as_task()
    return "done"


@server.tool(task="optional")
def needs_task_after_step(ctx: Context) -> str:
    ctx.step("step", run_step, "step")
    ctx.run_as_task()
    ctx.sleep("pause", 1_000)
    return "done"


@server.tool
def asks_after_step(ctx: Context) -> str:
    ctx.step("step", run_step, "step")
    return str(ctx.elicit("sure", "Really?", bool))


@server.tool
def runs_step(ctx: Context) -> str:
    return ctx.step("step", run_step, "step")


@pytest.mark.parametrize(
    ("tool", "capabilities"),
    [
        ("requires_task", ASKABLE),
        ("becomes_task_after_step", ASKABLE),
        ("needs_task_after_step", ASKABLE),
        ("asks_after_step", {}),
        ("runs_step", {}),
    ],
)
@pytest.mark.parametrize("number_of_others", range(LIMIT + 1))
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("fault", [refuse, None])
def test_every_place_is_taken_given_back_or_lapses(tool, capabilities, number_of_others, is_done, fault):
    """An operation on the table fails, or the process is lost at it, before it is performed or after."""
    for operation in range(MAX_OPERATIONS):
        deployment = Deployment(server, max_open=LIMIT)
        for _ in range(number_of_others):
            deployment.start("requires_task")
        ran.clear()
        store = CrashingStore(deployment.store, operation, is_done, on_reached=fault)
        try:
            status = status_of(deployment.by(store=store, capabilities=capabilities), tool)
            assert status in (200, 429)
            assert status == 200 or ran == [], "no step of a refused call has run"
        except WorkerKilled:
            assert fault is None
        assert_exact(deployment)
        deployment.clock.now += deployment.round_ms / 1_000
        places = LIMIT - len(deployment.tasks)
        statuses = [status_of(deployment, "requires_task") for _ in range(LIMIT + 1)]
        assert statuses == [200] * places + [429] * (LIMIT + 1 - places)
        assert_exact(deployment)
        if store.calls <= operation:
            return
    raise AssertionError("the call has more operations than were tried")


def status_of(deployment, tool):
    return deployment.send(deployment.body("tools/call", name=tool, arguments={})).status


def assert_exact(deployment):
    """Check that the list has every task, that its other entries are places, and that it counts both."""
    item = next((item for (_, sk), item in deployment.store._items.items() if sk == OPEN_TASKS), {"n": 0})
    entries = {name for name in item if "#" in name}
    assert item["n"] == len(entries) <= LIMIT
    open_tasks = {task.pk for task in deployment.tasks}
    assert {name for name in entries if not name.startswith(RESERVED)} == open_tasks
