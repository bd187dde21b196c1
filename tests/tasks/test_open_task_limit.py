"""The limit of open tasks is exact for concurrent callers and after crashes, in every store."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from secrets import token_hex

import pytest
from hypothesis import given, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule
from hypothesis.strategies import lists, none, sampled_from, text, tuples

from mcp_roundtrip.auth.callers import Principal as VerifiedCaller
from mcp_roundtrip.auth.callers import caller_binding
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.call_and_journal_items import TaskCall
from mcp_roundtrip.tasks.model import CALL as CALL_ITEM
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.open_task_limit import OPEN_TASKS, Owner, TooManyOpenTasks
from mcp_roundtrip.tasks.parked_calls import ParkedCaller
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import CrashingStore, MemoryStore, TaskTable, WorkerKilled
from support.stored_tasks import StoredTasks

pytest_plugins = ["support.task_stores"]

LIMIT = 3
ALICE = caller_binding(VerifiedCaller("jwt", "alice", "https://id.example", "c1"))

CALL = TaskCall("tools/call", "order", {}, None, None)
TTL_MS = 60_000
JOURNAL = Journal("run", (Entry("step", Kind.STEP, 1),))


@pytest.fixture
def clock():
    return FakeClock()


class Principal(StoredTasks):
    """A principal with a limit of open tasks that creates and ends tasks."""

    def __init__(self, store, clock, limit=LIMIT, name=ALICE, dialect="extension"):
        super().__init__(TaskTable(clock, store, max_open=limit), name, dialect)
        self.owner = Owner(name, None, "")

    def create(self, **options):
        return super().create(journal=JOURNAL, **{"ttl_ms": TTL_MS, **options})

    def create_many(self, number, **options):
        return [self.create(**options) for _ in range(number)]

    def ask_page(self):
        """Park a call that differs from all others."""
        caller = ParkedCaller(self.principal, self.principal, token_hex(9))
        request = {"method": "elicitation/create", "params": {"mode": "form", "message": "?"}}
        journal = Journal("flow", outstanding={"size": Fingerprint("m", "f")})
        return self.parked.create(caller, CALL, journal, {"size": request}, "page")

    def answer(self, parked):
        responses = {"size": {"action": "decline"}}
        self.parked.tasks.store_responses(parked.pk, responses, channels=("page",), via="page")

    def is_refused(self):
        """Return whether both the check and the creation refuse another task, and write nothing."""
        with pytest.raises(TooManyOpenTasks):
            self.tasks.limit.check(self.owner)
        sent = self.tasks.dispatcher.count
        with pytest.raises(TooManyOpenTasks):
            self.create()
        return self.tasks.dispatcher.count == sent


def list_of(store, principal):
    return store.get(principal.owner.list_key, OPEN_TASKS)


@pytest.fixture
def store(task_store):
    return task_store


@pytest.fixture
def alice(store, clock):
    return Principal(store, clock)


@pytest.mark.parametrize("way", ["cancel", "expire"])
def test_a_task_cancelled_during_its_worker_counts_until_the_worker_stops(alice, store, clock, way):
    first, second, _ = alice.create_many(LIMIT, ttl_ms=TTL_MS)
    for task in (first, second):
        assert alice.claim(task, lease_ms=3 * TTL_MS) is not None
    if way == "cancel":
        alice.cancel(first)
        alice.cancel(second)
    else:
        clock.advance(TTL_MS / 1000)
        assert alice.get(first).is_terminal
        alice.create()  # the third task had no worker
    assert alice.is_refused()
    assert alice.update(first, transitions.stop(owner="w")) is not None
    alice.create()
    assert alice.is_refused()
    clock.advance(3 * TTL_MS / 1000)  # the second worker was lost
    alice.create()
    assert second.pk not in list_of(store, alice)


@given(
    user=tuples(sampled_from(["jwt", "lambda"]), text(), none() | text()),
    clients=lists(none() | text(), min_size=LIMIT + 1, max_size=LIMIT + 1, unique=True),
)
def test_all_clients_of_a_user_count_together(user, clients):
    store, clock = MemoryStore(), FakeClock()
    kind, subject, issuer = user
    *first, last = [
        Principal(store, clock, name=caller_binding(VerifiedCaller(kind, subject, issuer, client)))
        for client in clients
    ]
    tasks = [principal.create() for principal in first]
    assert all(principal.is_refused() for principal in (*first, last))
    first[0].cancel(tasks[0])
    last.create()
    assert all(principal.is_refused() for principal in (*first, last))


@pytest.mark.parametrize(
    "other",
    [
        VerifiedCaller("jwt", "bob", "https://id.example", "c1"),
        VerifiedCaller("jwt", "alice", "https://other.example", "c1"),
        VerifiedCaller("lambda", "alice", None, "c1"),
    ],
    ids=["subject", "issuer", "kind"],
)
def test_a_user_of_another_name_or_issuer_has_a_limit_of_its_own(alice, store, clock, other):
    alice.create_many(LIMIT)
    Principal(store, clock, name=caller_binding(other)).create_many(LIMIT)


def test_a_session_of_an_anonymous_caller_cannot_fill_the_lists_of_most_others(clock):
    anonymous = Principal(MemoryStore(), clock, name=None)
    anonymous.create_many(LIMIT, session="one session")
    with pytest.raises(TooManyOpenTasks):
        anonymous.create(session="one session")
    others = [f"session {number}" for number in range(100)]
    own_list = Owner(None, "one session", "").list_key
    same_list = [each for each in others if Owner(None, each, "").list_key == own_list]
    assert len(same_list) < 5
    for each in set(others) - set(same_list):
        anonymous.create(session=each)


def test_all_anonymous_callers_together_have_a_limit():
    lists = {Owner(None, f"caller {number}", "").list_key for number in range(5_000)}
    assert len(lists) == 256


def test_an_answered_call_that_no_longer_counts_needs_room_to_become_a_task(alice):
    """Otherwise a caller who answers and parks in turn could have any number of workers."""
    parked = [alice.ask_page() for _ in range(LIMIT)]
    alice.answer(parked[0])
    task = alice.create()
    continued = alice.parked.load(parked[0].pk)
    with pytest.raises(TooManyOpenTasks):
        alice.create(continued=continued)
    alice.cancel(task)
    alice.create(continued=continued)
    assert alice.is_refused()


def test_many_ended_tasks_are_removed_in_several_writes(store, clock):
    alice = Principal(store, clock, limit=1)
    deadline_ms = alice.now_ms() + TTL_MS
    entries = {f"{'d' * 32}#{number:032}": deadline_ms for number in range(60)}
    assert store.put_new({"pk": alice.owner.list_key, "sk": OPEN_TASKS, "n": 60, "exp": 0, **entries}) is None
    task = alice.create()
    assert list_of(store, alice).keys() == {"pk", "sk", "n", "exp", task.pk}
    assert alice.is_refused()


def open_until_refused(principal, number):
    """Create tasks and park other calls in turn, and return the tasks."""
    created = []
    with suppress(TooManyOpenTasks):
        for turn in count(number):
            created.append(principal.create() if turn % 2 else principal.ask_page())
    return created


def test_tasks_and_parked_calls_of_concurrent_callers_never_exceed_the_limit(store, clock):
    callers = [Principal(store, clock, limit=10) for _ in range(4)]
    with ThreadPoolExecutor(len(callers)) as threads:
        opened = [task for tasks in threads.map(open_until_refused, callers, count()) for task in tasks]
    assert len({task.pk for task in opened}) == 10
    assert {task.dialect for task in opened} == {"extension", "parked"}


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("ended", [0, 1])
def test_a_crash_at_any_call_leaves_no_uncounted_task_and_no_entry_without_a_task(clock, ended, is_done):
    """Test with room, and with a full list of which one task has ended."""
    for dies_at in count():
        store = MemoryStore()
        alice = Principal(store, clock)
        for task in alice.create_many(LIMIT * ended)[:1]:
            alice.cancel(task)
        crashing = CrashingStore(store, dies_at, is_done)
        try:
            Principal(crashing, clock).create()
        except WorkerKilled:
            pass
        else:
            break
        tasks = [Task.from_item(item) for (_, sk), item in store._items.items() if sk == TASK]
        open_pks = {task.pk for task in tasks if not task.is_terminal}
        listed = {name for name in list_of(store, alice) or {} if "#" in name}
        assert open_pks <= listed
        assert all(store.get(pk, TASK) is not None for pk in listed)
        assert all(store.get(pk, CALL_ITEM) is not None for pk in listed), "a worker can run it"
        alice.create_many(LIMIT - len(open_pks))
        assert alice.is_refused()
    assert dies_at >= 3 + 4 * ended, "every call was tried"


@pytest.mark.parametrize("call", range(5))
def test_a_list_that_grows_while_a_task_replaces_another_does_not_expire_before_its_tasks(clock, call):
    alice, longer = Principal(MemoryStore(), clock), []
    parked = alice.ask_page()
    crashing = CrashingStore(
        alice.store, call, False, on_reached=lambda: longer.append(alice.create(ttl_ms=9 * 3_600_000))
    )
    Principal(crashing, clock).create(continued=parked)
    assert list_of(alice.store, alice)["exp"] == longer[0].expires_s


@pytest.mark.parametrize("call", range(4))
def test_two_processes_that_remove_the_same_tasks_make_room_once(clock, call):
    alice = Principal(MemoryStore(), clock)
    for task in alice.create_many(LIMIT):
        alice.cancel(task)
    other = CrashingStore(alice.store, call, False, on_reached=alice.create)
    Principal(other, clock).create()
    assert list_of(alice.store, alice)["n"] == 2


class OutpacedStore(MemoryStore):
    """A store whose updates always lose to concurrent ones."""

    def update(self, pk, sk, change):
        return None


def test_a_creation_that_loses_too_many_concurrent_updates_fails_without_a_task(clock):
    store = OutpacedStore()
    alice = Principal(store, clock)
    for task in alice.create_many(LIMIT):
        assert MemoryStore.update(store, task.pk, TASK, transitions.cancel(now_ms=0)) is not None
    with pytest.raises(StoreError, match="concurrent"):
        alice.create()


class ListOfOpenTasks(RuleBasedStateMachine):
    """In any order of calls, the list holds exactly what counts, and never more than the limit."""

    tasks = Bundle("tasks")

    def __init__(self):
        super().__init__()
        self.clock = FakeClock()
        self.principal = Principal(MemoryStore(), self.clock)
        self.open = []

    @rule(target=tasks, ttl_ms=sampled_from([TTL_MS, 100 * TTL_MS]))
    def create(self, ttl_ms):
        return self._create(lambda: self.principal.create(ttl_ms=ttl_ms))

    @rule(target=tasks)
    def park(self):
        return self._create(self.principal.ask_page)

    def _create(self, create):
        has_room = len(self.open) < LIMIT
        try:
            task = create()
        except TooManyOpenTasks:
            assert not has_room
            return multiple()
        assert has_room
        self.open.append(task)
        return task

    @rule(task=tasks)
    def end(self, task):
        """Cancel a task, or answer a parked call."""
        if task not in self.open:
            return
        if task.worker:
            self.principal.cancel(task)
        else:
            self.principal.answer(task)
        self.open.remove(task)

    @invariant()
    def the_list_is_exact(self):
        item = list_of(self.principal.store, self.principal) or {"n": 0}
        entries = {name for name in item if "#" in name}
        assert item["n"] == len(entries) <= LIMIT
        assert {task.pk for task in self.open} <= entries
        assert all(item["exp"] >= task.expires_s for task in self.open)


TestListOfOpenTasks = ListOfOpenTasks.TestCase
TestListOfOpenTasks.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
