"""The items that name the task of a flow, in every store."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.internal_errors import FlowIsStored
from mcp_roundtrip.tasks.items import Flow, TaskCall
from mcp_roundtrip.tasks.limit import TooManyOpenTasks
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.parked import ParkedCaller, ParkedCalls
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import TaskStore
from mcp_roundtrip_testing.task_table import RecordingDispatcher

pytest_plugins = ["support.task_stores"]

NOW_MS = 1_795_000_000_000
CALL = TaskCall("tools/call", "order", {}, None, None)
ALICE, BOB = (Principal("jwt", name, "https://id").canonical() for name in ("alice", "bob"))
FLOW = Flow(ALICE, "flow", NOW_MS // 1000 + 7_200)
CALLER = ParkedCaller(ALICE, ALICE, "identity")


def journal(answer: str) -> Journal:
    return Journal(FLOW.id, (Entry("answer", Kind.STEP, answer),))


def create(tasks: Tasks, answer: str = "first", flow: Flow | None = FLOW) -> Task:
    return tasks.create(CALL, ALICE, journal(answer), worker="w", capabilities={}, ttl_ms=60_000, flow=flow)


@pytest.fixture(params=[0, 1])
def tasks(request: pytest.FixtureRequest, task_store: TaskStore) -> Tasks:
    """Without a limit, and with one."""
    return Tasks(task_store, RecordingDispatcher(), lambda: NOW_MS, max_open=request.param)


def test_a_flow_has_one_task_with_the_journal_of_the_request_that_created_it(tasks: Tasks) -> None:
    assert tasks.find(FLOW) is None
    first = create(tasks)
    with pytest.raises(FlowIsStored):
        create(tasks, "second")
    assert tasks.find(FLOW) == first
    [entry] = [item for item in tasks.store.query(first.pk) if item["sk"] == "J#answer"]
    assert entry["v"] == '"first"'


def test_a_task_is_found_by_its_caller_and_its_flow_only(tasks: Tasks) -> None:
    create(tasks)
    assert tasks.find(replace(FLOW, principal=BOB)) is None
    assert tasks.find(replace(FLOW, id="other")) is None
    assert tasks.find(replace(FLOW, ends_at_s=0)) is not None


def test_a_call_without_a_state_is_a_new_task_each_time(task_store: TaskStore) -> None:
    tasks = Tasks(task_store, RecordingDispatcher(), lambda: NOW_MS)
    assert create(tasks, flow=None) != create(tasks, flow=None)


def test_all_items_exist_as_long_as_the_flow_and_as_the_task(tasks: Tasks) -> None:
    task = create(tasks)
    index = tasks.store.get(FLOW.index_key, "C")
    assert index is not None
    assert {index["exp"], *(item["exp"] for item in tasks.store.query(task.pk))} == {FLOW.ends_at_s}
    brief = create(replace(tasks, max_open=0), flow=replace(FLOW, id="brief", ends_at_s=0))
    assert brief.expires_s > NOW_MS // 1000 + 3_600


def test_the_task_of_a_parked_call_exists_as_long_as_its_flow(task_store: TaskStore) -> None:
    tasks = Tasks(task_store, RecordingDispatcher(), lambda: NOW_MS)
    parked = ParkedCalls.of(tasks).create(
        CALLER, CALL, journal("first"), {}, "page", flow=replace(FLOW, ends_at_s=NOW_MS // 1000 + 86_400)
    )
    task = tasks.create(
        CALL, ALICE, journal("first"), worker="w", capabilities={}, ttl_ms=60_000, continued=parked
    )
    items = tasks.store.query(task.pk)
    assert {item["exp"] for item in items} == {task.expires_s, NOW_MS // 1000 + 86_400}
    assert len(items) == 3


def test_a_flow_that_was_parked_meanwhile_does_not_become_a_task(task_store: TaskStore) -> None:
    tasks = Tasks(task_store, RecordingDispatcher(), lambda: NOW_MS)
    parked = ParkedCalls.of(tasks).create(CALLER, CALL, journal("first"), {}, "page", flow=FLOW)
    assert tasks.find(FLOW) == parked
    with pytest.raises(FlowIsStored):
        create(tasks)
    with pytest.raises(FlowIsStored):
        ParkedCalls.of(tasks).create(CALLER, CALL, journal("second"), {}, "page", flow=FLOW)


def test_a_flow_that_became_a_task_meanwhile_is_not_parked(task_store: TaskStore) -> None:
    tasks = Tasks(task_store, RecordingDispatcher(), lambda: NOW_MS)
    task = create(tasks)
    with pytest.raises(FlowIsStored):
        ParkedCalls.of(tasks).create(CALLER, CALL, journal("second"), {}, "page", flow=FLOW)
    assert tasks.find(FLOW) == task


def test_the_limit_refuses_another_flow_and_not_a_repetition(task_store: TaskStore) -> None:
    tasks = Tasks(task_store, RecordingDispatcher(), lambda: NOW_MS, max_open=1)
    create(tasks)
    with pytest.raises(FlowIsStored):
        create(tasks, "second")
    with pytest.raises(TooManyOpenTasks):
        create(tasks, flow=replace(FLOW, id="other"))
