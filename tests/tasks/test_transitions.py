"""Condition and effect of each transition, from each state."""

import pytest

from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.model import Status, Task, WorkState
from mcp_roundtrip.tasks.transitions import MAX_ATTEMPTS
from mcp_roundtrip_testing.task_table import apply_change
from support.stored_tasks import outstanding
from support.task_items import END, LEASE_MS, NEW, NOW, TTL_MS

LATER = NOW + 5_000
"""A time after all leases and sleeps."""
LATE = NOW + TTL_MS


def claim(now=NOW, owner="me"):
    return transitions.claim(owner=owner, delivery="request", until_ms=now + LEASE_MS, now_ms=now)


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


def answered(*left, version=3, is_leased=False):
    return transitions.accept_responses(
        version=version,
        requests=asked(*left),
        submissions={"answered": "first"},
        is_leased=is_leased,
        now_ms=NOW,
    )


def after(item, *changes):
    for change in changes:
        item = apply_change(change, item)
        assert item is not None
    return item


def task(item):
    return Task.from_item(item)


READY = {**NEW.to_item(), "att": MAX_ATTEMPTS - 2}  # one worker may be lost
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
    "complete at another version": (
        transitions.complete(owner="me", now_ms=NOW, attributes={"res": "1"}, version=1),
        set(),
    ),
    "complete by another": (transitions.complete(owner="you", now_ms=NOW, attributes={"res": "1"}), set()),
    "fail": (transitions.fail(owner="me", now_ms=NOW, **END), WITH_LEASE),
    "fail by another": (transitions.fail(owner="you", now_ms=NOW, **END), set()),
    "expire early": (transitions.expire(now_ms=LATE - 1, **END), set()),
    "expire": (transitions.expire(now_ms=LATE, **END), OPEN),
    "abandon": (transitions.abandon(now_ms=LATER, **END), set()),
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


def test_a_pass_with_progress_resets_the_attempts_and_the_pause_before_a_further_dispatch():
    tired = {**LEASED, "att": MAX_ATTEMPTS, "kicks": 3}
    checkpoint = transitions.checkpoint(owner="me", accepted_keys=[])
    for changes in ([checkpoint], [await_responses(), answered()], [sleep()]):
        left = task(after(tired, *changes))
        assert (left.attempts, left.dispatch_count) == (0, 0)


def test_a_task_is_abandoned_once_the_lease_of_its_last_worker_is_over():
    last = {**LEASED, "att": MAX_ATTEMPTS}
    assert apply_change(transitions.abandon(now_ms=NOW + LEASE_MS, **END), last) is None
    assert task(after(last, transitions.abandon(now_ms=LATER, **END))).status is Status.FAILED


def test_a_failed_dispatch_is_undone_unless_a_worker_has_the_task_or_another_poll_dispatched_it():
    waiting = {**READY, "kick": NOW - 9, "kicks": 3}
    dispatched = after(waiting, transitions.record_dispatch(dispatched_before_ms=NOW, now_ms=NOW))
    undo = transitions.undo_dispatch(NOW - 9, 3, now_ms=NOW)
    assert after(dispatched, undo) == waiting
    for change in (claim(), transitions.record_dispatch(dispatched_before_ms=LATER, now_ms=LATER)):
        assert apply_change(undo, after(dispatched, change)) is None
    assert apply_change(undo, {**dispatched, "st": "completed"}) is None
