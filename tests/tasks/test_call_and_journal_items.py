"""The items that name the task of a flow, in every store, and those of large results."""

from base64 import b64encode
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.engine.journal import Entry, Journal, Kind
from mcp_roundtrip.internal_errors import FlowIsStored
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.call_and_journal_items import Flow, put_result
from mcp_roundtrip.tasks.model import CLIENT, Status, Task
from mcp_roundtrip.tasks.open_task_limit import Owner, TooManyOpenTasks
from mcp_roundtrip.tasks.parked_calls import ParkedCaller
from mcp_roundtrip.tasks.question_page_tokens import link_to_item
from mcp_roundtrip.tasks.service import task_id_of
from mcp_roundtrip.tasks.store_interface import Change
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import TaskTable
from support.faulty_store import FaultyStore
from support.stored_tasks import CALL, StoredTasks, form

pytest_plugins = ["support.task_stores"]


ALICE, BOB = (Principal("jwt", name, "https://id").canonical() for name in ("alice", "bob"))
TTL_MS = 60_000
LARGE, OTHER = ({"v": b64encode(Random(seed).randbytes(450_000)).decode()} for seed in (1, 2))


class Table(StoredTasks):
    """The tasks of Alice, who has a flow that is longer than their items are kept."""

    @property
    def flow(self) -> Flow:
        return Flow(ALICE, "flow", self.now_ms() // 1000 + 7_201)

    def start(self, answer: str = "first", **options: Any) -> Task:
        """Create the task of a flow."""
        journal = Journal("flow", (Entry("answer", Kind.STEP, answer),))
        return self.create(journal=journal, **{"ttl_ms": TTL_MS, "flow": self.flow, **options})

    def park_flow(self, **options: Any) -> Task:
        caller = ParkedCaller(ALICE, ALICE, "identity")
        return self.parked.create(caller, CALL, Journal("flow"), {}, "page", **{"flow": self.flow, **options})


@pytest.fixture(params=[0, 1])
def table(request, task_store):
    """Without a limit, and with one."""
    return Table(TaskTable(FakeClock(), task_store, max_open=request.param), ALICE)


@pytest.fixture
def unlimited(task_store):
    return Table.over(task_store, principal=ALICE)


def test_the_keys_of_items_are_stable_across_releases():
    table = Table.over(FaultyStore(times=0), principal=ALICE)
    task = table.create()
    keys = [
        task.pk.partition("#")[0],
        table.flow.index_key,
        ParkedCaller(ALICE, ALICE, "identity").index_key,
        Owner(ALICE, None, "").list_key,
        Owner(None, "session", "").list_key,
        link_to_item("token", task, "order", {})["pk"],
        task_id_of(replace(task, pk="key")),
    ]
    assert " ".join(key[-6:] for key in keys) == "r_N5B- n-dlCX KedrTp 6g-JVe b61Mg0 mu5sHX kHrzQS"


def test_a_task_is_found_by_its_caller_and_its_flow_only(table):
    table.start()
    assert table.tasks.find(replace(table.flow, principal=BOB)) is None
    assert table.tasks.find(replace(table.flow, id="other")) is None


def test_a_flow_has_one_task_with_the_journal_of_the_request_that_created_it(table):
    assert table.tasks.find(table.flow) is None
    first = table.start()
    assert first.expires_s == table.flow.ends_at_s
    with pytest.raises(FlowIsStored):
        table.start("second")
    assert table.tasks.find(table.flow) == first
    assert [entry.value for entry in table.history(first).journal.entries] == ["first"]
    if table.tasks.limit.max_open:
        with pytest.raises(TooManyOpenTasks):
            table.start(flow=replace(table.flow, id="other"))


def test_a_long_journal_and_many_responses_are_written_with_one_operation_each():
    operations: list[Any] = []
    table = Table.over(FaultyStore(before=operations.append))
    table.create(journal=Journal("flow", tuple(Entry(str(n), Kind.STEP, n) for n in range(30))))
    keys = [str(n) for n in range(40)]
    _, task = table.ask(dict.fromkeys(keys, form({})), channel=CLIENT)
    table.tasks.update(table.principal, task.task_id, {key: {"action": "decline"} for key in keys})
    writes = [len(each.keys) for each in operations if each.name == "put_all_new"]
    assert writes == [30 + 1, 1, 40], "the journal has the call with it"
    assert len(table.responses(task)) == 40


def test_a_flow_is_parked_or_becomes_a_task_once(unlimited):
    parked = unlimited.park_flow()
    assert unlimited.tasks.find(unlimited.flow) == parked
    assert parked.expires_s == unlimited.flow.ends_at_s
    with pytest.raises(FlowIsStored):
        unlimited.start()
    with pytest.raises(FlowIsStored):
        unlimited.park_flow()


def write_chunks(table: Table, task: Task, owner: str, result: object) -> Change:
    """Write the chunks of a result, and return the change that completes the task."""
    attributes = put_result(table.store, task, owner, result)
    assert attributes["resn"] > 1
    return transitions.complete(owner=owner, now_ms=table.now_ms(), attributes=attributes)


def test_a_large_result_written_while_a_poll_expires_the_task_is_complete():
    store = FaultyStore(matches=lambda operation: operation.name == "update", times=0)
    table = Table.over(store, principal=ALICE)
    task = table.create(ttl_ms=TTL_MS)
    table.claim(task, "worker", 2 * TTL_MS)
    table.clock.advance(TTL_MS / 1000)
    store.times = 1
    store.before = lambda _: table.update(task, write_chunks(table, task, "worker", LARGE))
    polled = table.get(task)
    assert (polled.status, polled.result) == (Status.COMPLETED, LARGE)


def test_chunks_of_a_lost_worker_do_not_corrupt_the_result_of_the_next(unlimited):
    task = unlimited.create()
    unlimited.claim(task, "first", TTL_MS)
    completed_by_first = write_chunks(unlimited, task, "first", OTHER)
    unlimited.update(task, transitions.release(owner="first"))
    unlimited.claim(task, "second", TTL_MS)
    completed_by_second = write_chunks(unlimited, task, "second", LARGE)
    assert unlimited.update(task, completed_by_first) is None, "the first worker resumes too late"
    assert unlimited.update(task, completed_by_second) is not None
    assert unlimited.get(task).result == LARGE
