"""Condition and effect of each transition, from each state."""

import pytest
from msgspec.structs import replace

from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.model import Status, Task, WorkState
from mcp_roundtrip_testing.task_table import apply_change
from support.stored_tasks import outstanding
from support.task_items import CLAIM, END, LEASE_MS, MAX_ATTEMPTS, NEW, NOW, TTL_MS

LATER = NOW + 5_000
"""A time after all leases and sleeps."""
LATE = NOW + TTL_MS
LOST = NOW + 700 + LEASE_MS
"""When a lease that was renewed after 700 ms ends."""


def claim(now=NOW, owner="me"):
    return transitions.claim(owner=owner, until_ms=now + LEASE_MS, now_ms=now, **CLAIM)


def renew(now=NOW, owner="me"):
    return transitions.renew(owner=owner, until_ms=now + LEASE_MS)


def await_responses(*, owner="me", version=2, requests=None, accepted=(), wake_at_ms=None):
    return transitions.await_responses(
        owner=owner,
        version=version,
        requests=requests or {},
        issued_counts={"a": 1},
        accepted_keys=accepted,
        now_ms=NOW,
        wake_at_ms=wake_at_ms,
    )


def sleep(*, owner="me", version=2, accepted=(), wake_at_ms=NOW + 500):
    return transitions.sleep(
        owner=owner, version=version, accepted_keys=accepted, wake_at_ms=wake_at_ms, now_ms=NOW
    )


def asked(*keys):
    return outstanding({key: {"method": "elicitation/create"} for key in keys})


def answered(*left, version=3, is_leased=False, now=NOW):
    return transitions.accept_responses(
        version=version,
        requests=asked(*left),
        submissions={"answered": "first"},
        is_leased=is_leased,
        now_ms=now,
    )


def after(item, *changes):
    for change in changes:
        item = apply_change(change, item)
        assert item is not None
    return item


def task(item):
    return Task.from_item(item)


READY = NEW.to_item()
LEASED = after(READY, claim())
AWAITING = after(LEASED, await_responses(requests=asked("a", "b"), accepted=["z", "y"]))
SLEEPING = after(LEASED, sleep(accepted=["z"]))
AWAITING_UNTIL = after(LEASED, await_responses(requests=asked("a"), wake_at_ms=NOW + 500))
AWAKE = after(AWAITING_UNTIL, claim(LATER))


CANCELLED_DURING_A_PASS = after(LEASED, transitions.cancel(now_ms=NOW))

ITEMS = {
    "ready": READY,
    "leased": LEASED,
    "awaiting": AWAITING,
    "sleeping": SLEEPING,
    "awaiting with a wake time": AWAITING_UNTIL,
    "leased and asking": AWAKE,
    "completed": after(LEASED, transitions.complete(owner="me", now_ms=NOW, attributes={"res": "1"})),
    "failed": after(LEASED, transitions.fail(owner="me", now_ms=NOW, **END)),
    "cancelled": after(AWAITING, transitions.cancel(now_ms=NOW)),
    "cancelled during a pass": CANCELLED_DURING_A_PASS,
}
OPEN = {"ready", "leased", "awaiting", "sleeping", "awaiting with a wake time", "leased and asking"}

WITH_LEASE = {"leased", "leased and asking"}
WITH_WORKER = {*WITH_LEASE, "cancelled during a pass"}
WAITING = {"sleeping", "awaiting with a wake time"}

APPLY = {
    "claim": (claim(), {"ready"}),
    "claim later": (claim(LATER), {"ready", "leased", *WAITING}),
    "claim after expiry": (claim(LATE), set()),
    "renew": (renew(), WITH_WORKER),
    "renew after the lease expired": (renew(LATER), WITH_WORKER),
    "renew by another": (renew(owner="you"), set()),
    "release": (transitions.release(owner="me"), WITH_LEASE),
    "release by another": (transitions.release(owner="you"), set()),
    "checkpoint": (transitions.checkpoint(owner="me", accepted_keys=["q"]), WITH_LEASE),
    "checkpoint by another": (transitions.checkpoint(owner="you", accepted_keys=[]), set()),
    "await responses": (await_responses(), {"leased"}),
    "await responses by another": (await_responses(owner="you"), set()),
    "await responses at another version": (await_responses(version=1), set()),
    "sleep": (sleep(), {"leased"}),
    "sleep by another": (sleep(owner="you"), set()),
    "sleep at another version": (sleep(version=3), set()),
    "answer one": (answered("b"), {"awaiting", "awaiting with a wake time"}),
    "answer all": (answered(), {"awaiting", "awaiting with a wake time"}),
    "answer at another version": (answered(version=2), set()),
    "answer while leased": (answered(version=4, is_leased=True), {"leased and asking"}),
    "reset attempts": (transitions.reset_attempts(owner="me", seen_entries=3), WITH_LEASE),
    "reset attempts by another": (transitions.reset_attempts(owner="you", seen_entries=3), set()),
    "cancel": (transitions.cancel(now_ms=NOW), OPEN),
    "complete": (transitions.complete(owner="me", now_ms=NOW, attributes={"res": "1"}), WITH_LEASE),
    "complete after the lease expired": (
        transitions.complete(owner="me", now_ms=LATER, attributes={"res": "1"}),
        WITH_LEASE,
    ),
    "complete by another": (transitions.complete(owner="you", now_ms=NOW, attributes={"res": "1"}), set()),
    "fail": (transitions.fail(owner="me", now_ms=NOW, **END), WITH_LEASE),
    "fail by another": (transitions.fail(owner="you", now_ms=NOW, **END), set()),
    "expire early": (transitions.expire(now_ms=LATE - 1, **END), set()),
    "expire": (transitions.expire(now_ms=LATE, **END), OPEN),
    "abandon": (transitions.abandon(now_ms=LATER, max_attempts=MAX_ATTEMPTS, **END), set()),
    "abandon after one attempt": (transitions.abandon(now_ms=LATER, max_attempts=1, **END), {"leased"}),
    "abandon while the lease lasts": (
        transitions.abandon(now_ms=NOW + LEASE_MS, max_attempts=1, **END),
        set(),
    ),
    "record_dispatch": (transitions.record_dispatch(dispatched_before_ms=NOW, now_ms=NOW), {"ready"}),
    "record_dispatch later": (
        transitions.record_dispatch(dispatched_before_ms=LATER, now_ms=LATER),
        {"ready", "leased", *WAITING},
    ),
    "record_dispatch again": (transitions.record_dispatch(dispatched_before_ms=0, now_ms=LATER), set()),
    "progress": (transitions.set_status_message(owner="me", message="half", now_ms=NOW), {"leased"}),
    "progress by another": (transitions.set_status_message(owner="you", message="half", now_ms=NOW), set()),
}


def test_a_transition_is_possible_only_from_the_states_in_the_table():
    made = {
        name: {state for state, item in ITEMS.items() if apply_change(change, item) is not None}
        for name, (change, _) in APPLY.items()
    }
    assert made == {name: states for name, (_, states) in APPLY.items()}


def test_a_transition_does_not_recreate_a_deleted_item():
    assert [name for name, (change, _) in APPLY.items() if apply_change(change, {}) is not None] == []


def test_a_transition_counts_the_version_and_leaves_a_legal_task():
    silent = ("record_dispatch", "progress", "reset attempts", "renew")
    for name, (change, states) in APPLY.items():
        for state in states:
            became = task(after(ITEMS[state], change))
            assert became.version == task(ITEMS[state]).version + (not name.startswith(silent)), (name, state)
            assert (became.lease_owner is None) == (became.lease_until_ms is None), (name, state)
            assert became.is_terminal == (became.work_state is WorkState.DONE), (name, state)
            assert became.wake_at_ms is not None or became.work_state is not WorkState.SLEEPING, (name, state)


def test_a_repeated_transition_is_refused():
    repeatable = ("progress", "reset attempts", "renew")
    made_twice = [
        (name, state)
        for name, (change, states) in APPLY.items()
        for state in states
        if not name.startswith(repeatable) and apply_change(change, after(ITEMS[state], change)) is not None
    ]
    assert made_twice == []


@pytest.mark.parametrize("name", ["progress", "reset attempts", "renew"])
def test_an_idempotent_transition_may_be_repeated(name):
    change, _ = APPLY[name]
    assert after(LEASED, change, change) == after(LEASED, change)


def test_a_claim_takes_the_lease_and_counts_an_attempt():
    claimed = task(after(READY, claim()))
    assert (claimed.status, claimed.work_state, claimed.version) == (Status.WORKING, WorkState.LEASED, 2)
    assert (claimed.lease_owner, claimed.lease_until_ms, claimed.attempts) == ("me", NOW + LEASE_MS, 1)
    assert claimed.lease_delivery == CLAIM["delivery"]


def test_a_lease_lasts_to_its_last_millisecond():
    until = NOW + LEASE_MS
    assert apply_change(claim(until, "you"), LEASED) is None
    assert task(after(LEASED, claim(until + 1, "you"))).lease_owner == "you"


@pytest.mark.parametrize("item", [LEASED, CANCELLED_DURING_A_PASS])
def test_a_renewed_lease_lasts_longer_and_nothing_else_changes(item):
    renewed = after(item, renew(NOW + 700))
    assert task(renewed) == replace(task(item), lease_until_ms=LOST)
    assert apply_change(claim(LOST, "you"), renewed) is None


def test_a_sleeping_task_can_be_claimed_from_its_wake_time():
    assert apply_change(claim(NOW + 499), SLEEPING) is None
    assert task(after(SLEEPING, claim(NOW + 500))).wake_at_ms is None


def test_after_the_last_attempt_a_task_cannot_be_claimed_but_can_be_abandoned():
    item = READY
    for n in range(MAX_ATTEMPTS):
        item = after(item, claim(NOW, f"worker {n}"), transitions.release(owner=f"worker {n}"))
    assert apply_change(claim(), item) is None
    end = transitions.abandon(now_ms=NOW, max_attempts=MAX_ATTEMPTS, **END)
    ended = task(after(item, end))
    assert (ended.status, ended.error, ended.message) == (Status.FAILED, END["error"], "Gone.")


def test_an_attempt_with_progress_does_not_count():
    for change in (transitions.checkpoint(owner="me", accepted_keys=["q"]), await_responses(), sleep()):
        assert task(after(LEASED, change)).attempts == 0
    assert task(after(LEASED, transitions.release(owner="me"))).attempts == 1


def test_a_waiting_task_has_its_requests_or_its_wake_time_and_no_lease():
    waiting = task(AWAITING)
    assert "lnk" not in AWAITING
    assert (waiting.status, waiting.work_state) == (Status.INPUT_REQUIRED, WorkState.AWAITING)
    assert waiting.version == 3
    assert waiting.requests == asked("a", "b")
    assert waiting.accepted_keys == ("y", "z")
    assert (waiting.lease_owner, waiting.lease_until_ms, waiting.lease_delivery) == (None, None, None)
    sleeping = task(SLEEPING)
    assert (sleeping.status, sleeping.work_state) == (Status.WORKING, WorkState.SLEEPING)
    assert (sleeping.wake_at_ms, sleeping.lease_owner, sleeping.accepted_keys) == (NOW + 500, None, ("z",))


def test_a_task_waits_until_its_last_question_is_answered_and_is_then_ready_and_dispatched():
    common = {"submissions": {"answered": "first"}, "version": 4, "updated_at_ms": LATER}
    ready = {"status": Status.WORKING, "work_state": WorkState.READY, "dispatched_at_ms": LATER}
    assert task(after(AWAITING, answered("b", now=LATER))) == replace(
        task(AWAITING), requests=asked("b"), **common
    )
    assert task(after(AWAITING, answered(now=LATER))) == replace(
        task(AWAITING), requests={}, dispatch_count=0, **ready, **common
    )


def test_a_task_with_work_and_open_questions_keeps_its_questions_while_leased():
    awake = task(AWAKE)
    assert (awake.status, awake.work_state) == (Status.INPUT_REQUIRED, WorkState.LEASED)
    assert awake.wake_at_ms is None
    assert awake.requests.keys() == {"a"}
    leased = task(after(AWAKE, answered(version=4, is_leased=True)))
    assert (leased.status, leased.work_state) == (Status.WORKING, WorkState.LEASED)
    assert leased.lease_owner == "me", "the worker keeps its lease"


def test_a_worker_with_progress_resets_the_attempts():
    dispatched = {**LEASED, "att": 3, "kicks": 4}
    ahead = task(after(dispatched, transitions.reset_attempts(owner="me", seen_entries=7)))
    assert (ahead.attempts, ahead.seen_entries, ahead.version) == (1, 7, task(LEASED).version)
    assert ahead.dispatch_count == 0, "the next lost worker is replaced without a pause"


@pytest.mark.parametrize("name", sorted(OPEN))
@pytest.mark.parametrize(
    ("end", "status"),
    [
        (transitions.cancel(now_ms=LATE), Status.CANCELLED),
        (transitions.expire(now_ms=LATE, **END), Status.FAILED),
    ],
)
def test_an_ended_task_has_no_lease_and_no_wake_time(name, end, status):
    ended = task(after(ITEMS[name], end))
    assert (ended.status, ended.work_state, ended.updated_at_ms) == (status, WorkState.DONE, LATE)
    assert ended.wake_at_ms is None
    assert ended.version == ITEMS[name]["ver"] + 1
    was = task(ITEMS[name])
    assert (ended.lease_owner, ended.lease_until_ms) == (was.lease_owner, was.lease_until_ms)
    if was.lease_owner is not None:
        stopped = task(after(after(ITEMS[name], end), transitions.stop(owner=was.lease_owner)))
        assert (stopped.lease_owner, stopped.lease_until_ms) == (None, None)
        assert stopped.status is status


def test_one_of_many_polls_dispatches_a_worker():
    change = transitions.record_dispatch(dispatched_before_ms=LATER - 1_000, now_ms=LATER)
    item = after(READY, change)
    assert apply_change(change, item) is None
    dispatched = task(item)
    assert (dispatched.dispatched_at_ms, dispatched.dispatch_count) == (LATER, 1)
    assert dispatched.version == 1


def test_a_failed_dispatch_is_undone_unless_a_worker_has_the_task_or_another_poll_dispatched_it():
    waiting = {**READY, "kick": NOW - 9, "kicks": 3}
    dispatched = after(waiting, transitions.record_dispatch(dispatched_before_ms=NOW, now_ms=NOW))
    undo = transitions.undo_dispatch(NOW - 9, 3, now_ms=NOW)
    assert after(dispatched, undo) == waiting
    for change in (claim(), transitions.record_dispatch(dispatched_before_ms=LATER, now_ms=LATER)):
        assert apply_change(undo, after(dispatched, change)) is None
    assert apply_change(undo, {**dispatched, "st": "completed"}) is None


@pytest.mark.parametrize("name", ["claim later", "record_dispatch later"])
def test_an_ended_task_gets_no_worker_in_any_work_state(name):
    change, states = APPLY[name]
    assert [state for state in states if apply_change(change, {**ITEMS[state], "st": "cancelled"})] == []


HALF = transitions.set_status_message(owner="me", message="half", now_ms=LATER)

LEAVE_THE_STATUS = {
    "await responses": (await_responses(requests=asked("a")), None),
    "complete": (transitions.complete(owner="me", now_ms=LATER, attributes={"res": "1"}), None),
    "cancel": (transitions.cancel(now_ms=LATER), None),
    "fail": (transitions.fail(owner="me", now_ms=LATER, **END), "Gone."),
    "expire": (transitions.expire(now_ms=LATE, **END), "Gone."),
    "abandon": (transitions.abandon(now_ms=LATER, max_attempts=1, **END), "Gone."),
}


@pytest.mark.parametrize("name", LEAVE_THE_STATUS)
def test_progress_ends_with_the_status_that_it_describes(name):
    change, message = LEAVE_THE_STATUS[name]
    assert task(after(LEASED, HALF, change)).message == message


def test_progress_lasts_while_the_task_works_and_does_not_change_the_version():
    working = after(LEASED, HALF)
    assert task(working) == replace(task(LEASED), message="half", updated_at_ms=LATER)
    checkpoint = transitions.checkpoint(owner="me", accepted_keys=[])
    for change in (sleep(), transitions.release(owner="me"), checkpoint):
        assert task(after(working, change)).message == "half"
