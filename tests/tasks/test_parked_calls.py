"""Parked calls in the table: found by caller, tool and arguments, and written once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.model import CLIENT, TASK, Task
from mcp_roundtrip.tasks.open_task_limit import TooManyOpenTasks
from mcp_roundtrip.tasks.parked_calls import RESULT_TTL_MS, TTL_MS, ParkedCaller
from mcp_roundtrip.tasks.question_page_tokens import APP
from mcp_roundtrip.tasks.store_interface import Change, Equals
from mcp_roundtrip.tasks.worker import completion
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import CrashingStore, MemoryStore, TaskTable, WorkerKilled
from support.client_requests import TOKEN
from support.deployment import Deployment
from support.stored_tasks import CALL, StoredTasks, answer_link

pytest_plugins = ["support.task_stores"]

LIMIT = 3
STEP = Entry("step", Kind.STEP, {"price": 3})
FORM = {"method": "elicitation/create", "params": {"mode": "form", "message": "How many?"}}
JOURNAL = Journal("flow", (STEP,), {"size": Fingerprint("m", "f")})
ALICE, BOB = (
    ParkedCaller(name, name, "call")
    for name in (Principal("jwt", user).canonical() for user in ("alice", "bob"))
)
YES = {"action": "accept", "content": {"value": True}}


class Table(StoredTasks):
    """A table whose principal is Alice."""

    def __init__(self, store, clock=None):
        super().__init__(TaskTable(clock or FakeClock(), store, max_open=LIMIT), ALICE.principal)

    def park_call(self, caller=ALICE, journal=JOURNAL):
        return self.parked.create(caller, CALL, journal, {"size": FORM}, "page")

    def find(self, caller=ALICE):
        return self.parked.find(caller)

    def answer_and_complete(self, task):
        answer_link(self.links, task.link, {"size": YES})
        self.complete(task, '{"ok":1}')


@pytest.fixture
def table(task_store):
    return Table(task_store)


@pytest.mark.parametrize("other", [BOB, replace(ALICE, identity="other"), replace(ALICE, binding="session")])
def test_other_callers_and_other_calls_do_not_find_it(table, other):
    parked = table.park_call()
    assert table.find(other) is None
    assert table.park_call(other).pk != parked.pk


def test_a_client_may_answer_some_of_the_questions_and_a_view_all_or_none(table):
    journal = replace(JOURNAL, outstanding=dict.fromkeys(("size", "color"), Fingerprint("m", "f")))
    parked = table.parked.create(ALICE, CALL, journal, {"size": FORM, "color": FORM}, "page")
    for via, stored in ((APP, {}), (CLIENT, {"size": YES})):
        assert table.parked.answer(parked, {"size": YES}, via)
        assert table.responses(parked) == stored


def test_a_call_that_runs_when_its_time_ends_is_not_started_a_second_time(table):
    parked = table.park_call()
    answer_link(table.links, parked.link, {"size": YES})
    table.clock.advance(TTL_MS / 1000 - 1)
    assert table.claim(parked, lease_ms=30_000) is not None
    table.clock.advance(2)
    assert table.find().pk == parked.pk
    table.clock.advance(30)
    assert table.find() is None


@pytest.mark.parametrize("earlier", [False, True])
def test_of_many_threads_one_parks_the_call_and_the_others_get_it(table, earlier):
    if earlier:
        first = table.park_call()
        table.clock.advance(RESULT_TTL_MS / 1000)
        table.answer_and_complete(first)
        table.clock.advance(RESULT_TTL_MS / 1000 - 1)
        assert table.find().pk == first.pk
        table.clock.advance(1)

    def park(number):
        return table.park_call(journal=replace(JOURNAL, flow_id=f"flow-{number}")).pk

    with ThreadPoolExecutor(6) as threads:
        pks = set(threads.map(park, range(6)))
    assert pks == {table.find().pk}
    for number in range(LIMIT - 1):
        table.park_call(replace(ALICE, identity=str(number)))
    with pytest.raises(TooManyOpenTasks):
        table.park_call(replace(ALICE, identity="more"))
    assert {table.park_call().pk} == pks


def test_of_many_callers_one_runs_the_call_and_all_get_its_result(task_store):
    server, effects = Server("orders"), []

    @server.tool
    def order(ctx: Context) -> str:
        ctx.elicit("sure", "Order?", bool)
        return ctx.step("order", lambda: effects.append("ordered") or "ordered")

    def call(_):
        return Deployment(server, capabilities={}, store=task_store, stands_still=True).text("order")

    [token] = TOKEN.findall(call(0))
    assert answer_link(Table(task_store).links, token, {"sure": YES}) == "stored"
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(call, range(4))) == ["ordered"] * 4
    assert effects == ["ordered"]


@pytest.mark.parametrize("is_done", [False, True])
def test_a_crash_at_any_call_leaves_a_call_that_can_be_made_again(is_done):
    for killed_call in range(99):
        store = MemoryStore()
        dying = Table(CrashingStore(store, killed_call, is_done))
        table = Table(store, dying.clock)
        try:
            dying.park_call()
        except WorkerKilled:
            found = table.find()
            parked = table.park_call(journal=replace(JOURNAL, flow_id="again"))
            assert found is None or parked == found
            assert table.find() == parked
            open_tasks = [pk for pk, sk in store._items if sk == TASK]
            assert open_tasks == [parked.pk], "no task is left that no call finds"
            assert answer_link(table.links, parked.link, {"size": YES}) == "stored"
        else:
            break
    assert killed_call == 5, "the limit, step, arguments, link, and one transaction"


def running_task(table, **options):
    """Return a task of Alice that a worker runs."""
    return Task.from_item(table.claim(table.create(**options), lease_ms=60_000))


def move(table, task):
    def end(parked):
        return completion(table.tasks, task, "w", {"link": parked.link}, version=task.version)

    return table.parked.move(ALICE, task, CALL, JOURNAL, {"size": FORM}, end)


def test_a_moved_call_takes_the_place_of_its_task_in_the_full_list(table):
    tasks = [running_task(table) for _ in range(LIMIT)]
    parked = move(table, tasks[0])
    with pytest.raises(TooManyOpenTasks):
        running_task(table)
    # A response to a question that the last pass did not reach.
    outstanding = {**JOURNAL.outstanding, "color": Fingerprint("m", "f")}
    journal = replace(JOURNAL, outstanding=outstanding, unused_responses={"color": YES})
    continued = table.stored(running_task(table, continued=parked, journal=journal, ttl_ms=1_000))
    assert continued.issued_counts == {"size": 1, "color": 1}
    assert continued.expires_s == parked.expires_s, "as long as a state of its flow may name it"
    with pytest.raises(TooManyOpenTasks):
        running_task(table)


@pytest.mark.parametrize("change", [transitions.cancel(now_ms=0), Change(Equals("lo", "w"), add={"ver": 1})])
def test_a_task_that_changed_during_the_pass_is_not_moved(table, change):
    task = running_task(table)
    changed = Task.from_item(table.update(task, change))
    assert move(table, task) is None
    assert table.find() is None
    assert table.stored(task) == changed


def test_a_task_whose_call_is_parked_already_ends_with_that_call(table):
    first = table.park_call()
    task = running_task(table)
    assert move(table, task) == first
    assert table.stored(task).result == {"link": first.link}


def test_a_task_that_continues_a_parked_call_replaces_it_also_before_the_call_has_ended(table):
    first = table.park_call()
    parked = move(table, running_task(table, continued=first))
    assert parked.pk != first.pk
    assert table.find() == parked
