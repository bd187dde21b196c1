"""Transitions of a task in any order, by clients, time, and workers with expired leases."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from mcp_roundtrip.tasks import transitions
from mcp_roundtrip.tasks.model import TASK, Status, Task, WorkState
from mcp_roundtrip_testing.task_table import MemoryStore
from support.task_items import CLAIM, END, LEASE_MS, MAX_ATTEMPTS, NEW, NOW, TTL_MS, asked

_WORKING = {WorkState.READY, WorkState.LEASED, WorkState.SLEEPING}
LEGAL = {(Status.WORKING, running) for running in _WORKING} | {
    (Status.INPUT_REQUIRED, WorkState.AWAITING),
    # A task can ask while another branch has work to do.
    (Status.INPUT_REQUIRED, WorkState.READY),
    (Status.INPUT_REQUIRED, WorkState.LEASED),
    (Status.COMPLETED, WorkState.DONE),
    (Status.FAILED, WorkState.DONE),
    (Status.CANCELLED, WorkState.DONE),
}
R, L, P, S, D = WorkState
ARROWS = {
    "claim": {(R, L), (L, L), (S, L), (P, L)},
    "release": {(L, R)},
    "checkpoint": {(L, R)},
    "await_responses": {(L, P)},
    "sleep": {(L, S)},
    "reset_attempts": {(L, L)},
    "accept_responses": {(P, P), (P, R), (R, R), (L, L)},
    "cancel": {(R, D), (L, D), (P, D), (S, D)},
    "expire": {(R, D), (L, D), (P, D), (S, D)},
    "abandon": {(R, D), (L, D)},
    "complete": {(L, D)},
    "fail": {(L, D)},
    "record_dispatch": {(R, R), (L, L), (S, S), (P, P)},
    "set_status_message": {(L, L)},
}
SILENT = {"record_dispatch", "set_status_message", "reset_attempts"}
"""Transitions that do not change the version."""
REPEATABLE = {"set_status_message", "reset_attempts"}
"""Transitions that may be applied twice, as when the SDK retries after a lost response."""

AGO = st.sampled_from([0, 0, 0, 1, 2])
"""Which worker acts: the one that claimed last, or an earlier one whose lease expired."""
MOMENTS = st.sampled_from([1, LEASE_MS // 2, LEASE_MS, LEASE_MS + 1])


class TaskStateMachine(RuleBasedStateMachine):
    """A task, its clients, and workers that may lose their lease."""

    def __init__(self):
        super().__init__()
        self.now = NOW
        self.store = MemoryStore()
        self.store.put_new(NEW.to_item())
        self.workers = [("none", 0)]  # owner, and the version it claimed
        self.ended_under_lease = False
        self.leases = {}  # owner -> end of its lease, without released leases and those of ended tasks
        self.requests_asked = 0

    @property
    def item(self):
        return self.store.get(NEW.pk, TASK)

    @property
    def task(self):
        return Task.from_item(self.item)

    def apply(self, transition, **arguments):
        """Apply a transition if its condition holds, and check it. Return whether it was applied."""
        change = getattr(transitions, transition)(**arguments)
        before, was = self.item, self.task
        changed = self.store.update(NEW.pk, TASK, change)
        if changed is None:
            assert self.item == before
            return False
        became = self.task
        assert not was.is_terminal
        self.ended_under_lease = transition in ("cancel", "expire") and was.work_state is WorkState.LEASED
        assert (was.work_state, became.work_state) in ARROWS[transition]
        if became.status is not was.status:
            assert became.message == ("Gone." if became.status is Status.FAILED else None)
        assert became.version == was.version + (transition not in SILENT)
        assert transition in REPEATABLE or change.apply_to(changed) is None
        if became.work_state is not WorkState.LEASED:
            self.leases.clear()
        return True

    def worker(self, ago):
        return self.workers[max(-1 - ago, -len(self.workers))]

    def apply_as_worker(self, transition, ago, **arguments):
        """Apply a transition as a worker that may have lost its lease."""
        owner, _ = self.worker(ago)
        holder = self.task.lease_owner
        assert self.apply(transition, owner=owner, **arguments) <= (holder == owner)

    # time and the client

    @rule(ms=MOMENTS)
    def time_passes(self, ms):
        self.now += ms

    @precondition(lambda self: len(self.workers) > 3)
    @rule()
    def time_runs_out(self):
        self.now = max(self.now, NOW + TTL_MS)

    @rule(count=st.integers(0, 3), stale=st.booleans())
    def answer(self, count, stale):
        task = self.task
        left = dict(list(task.requests.items())[count:])
        made = self.apply(
            "accept_responses",
            version=task.version - stale,
            requests=left,
            submissions=dict.fromkeys(task.requests.keys() - left.keys(), "one"),
            is_leased=task.work_state is WorkState.LEASED,
            now_ms=self.now,
        )
        assert made == (task.status is Status.INPUT_REQUIRED and not stale)

    @precondition(lambda self: len(self.workers) > 3)  # otherwise most runs would end at once
    @rule()
    def cancel(self):
        was_open = not self.task.is_terminal
        assert self.apply("cancel", now_ms=self.now) == was_open

    @rule(window=st.sampled_from([0, 500, 15_000]))
    def record_dispatch(self, window):
        task = self.task
        made = self.apply("record_dispatch", dispatched_before_ms=self.now - window, now_ms=self.now)
        assert made <= (task.dispatched_at_ms < self.now - window)
        assert not made or self.needs_worker(task)

    @rule()
    def expire(self):
        task = self.task
        due = not task.is_terminal and task.deadline_ms <= self.now
        assert self.apply("expire", now_ms=self.now, **END) == due
        assert not due or self.task.status is Status.FAILED

    @rule()
    def abandon(self):
        task = self.task
        arguments = {"max_attempts": MAX_ATTEMPTS, **END}
        if self.apply("abandon", now_ms=self.now, **arguments):
            assert task.attempts == MAX_ATTEMPTS
            assert self.needs_worker(task)
            assert self.task.status is Status.FAILED

    # workers

    @rule()
    def claim(self):
        task = self.task
        owner = f"worker {len(self.workers)}"
        until = self.now + LEASE_MS
        if self.apply("claim", owner=owner, until_ms=until, now_ms=self.now, **CLAIM):
            assert self.needs_worker(task)
            assert self.now < task.deadline_ms
            assert all(ended < self.now for ended in self.leases.values()), "a valid lease was replaced"
            self.leases[owner] = until
            self.workers.append((owner, self.task.version))

    @rule(over_ms=st.integers(0, 1))
    def claim_and_crash(self, over_ms):
        self.claim()
        self.now += LEASE_MS + over_ms

    @rule(ago=AGO)
    def renew(self, ago):
        """Renew a lease in time, late, after it was taken, or after the task has ended."""
        owner, _ = self.worker(ago)
        until, was = self.now + LEASE_MS, self.task
        renewed = self.store.update(NEW.pk, TASK, transitions.renew(owner=owner, until_ms=until))
        assert (renewed is not None) == (was.lease_owner == owner)
        if renewed is None:
            return
        assert self.task == replace(was, lease_until_ms=until)
        if was.work_state is WorkState.LEASED:
            self.leases[owner] = until

    @rule(ago=AGO)
    def release(self, ago):
        self.apply_as_worker("release", ago)

    @rule(ago=AGO)
    def checkpoint(self, ago):
        self.apply_as_worker("checkpoint", ago, accepted_keys=[])

    @rule(ago=AGO)
    def reset_attempts(self, ago):
        self.apply_as_worker("reset_attempts", ago, seen_entries=self.task.seen_entries + 1)

    @rule(ago=AGO, count=st.integers(1, 3), ms=st.none() | MOMENTS)
    def await_responses(self, ago, count, ms):
        self.requests_asked += count
        keys = [f"key {self.requests_asked - n}" for n in range(count)]
        _, version = self.worker(ago)
        self.apply_as_worker(
            "await_responses",
            ago,
            version=version,
            requests=asked(*keys),
            issued_counts={},
            accepted_keys=keys,
            now_ms=self.now,
            wake_at_ms=None if ms is None else self.now + ms,
        )

    @rule(ago=AGO, ms=MOMENTS)
    def sleep(self, ago, ms):
        _, version = self.worker(ago)
        self.apply_as_worker(
            "sleep", ago, version=version, accepted_keys=[], wake_at_ms=self.now + ms, now_ms=self.now
        )

    @rule(ago=AGO)
    def progress(self, ago):
        self.apply_as_worker("set_status_message", ago, message=f"{self.now}", now_ms=self.now)

    @precondition(lambda self: len(self.workers) > 3)
    @rule(ago=AGO)
    def complete(self, ago):
        self.apply_as_worker("complete", ago, now_ms=self.now, attributes={"res": "1"})

    @precondition(lambda self: len(self.workers) > 3)
    @rule(ago=AGO)
    def fail(self, ago):
        self.apply_as_worker("fail", ago, now_ms=self.now, **END)

    @rule(ago=AGO)
    def stop(self, ago):
        owner, _ = self.worker(ago)
        is_due = self.task.work_state is WorkState.DONE and self.task.lease_owner == owner
        stopped = self.store.update(NEW.pk, TASK, transitions.stop(owner=owner))
        assert (stopped is not None) == is_due
        if is_due:
            self.ended_under_lease = False

    # invariants

    def needs_worker(self, task):
        """Return whether the task needs a worker and has none."""
        match task.work_state:
            case WorkState.READY:
                return True
            case WorkState.LEASED:
                return task.lease_until_ms < self.now
            case WorkState.SLEEPING | WorkState.AWAITING:
                return task.wake_at_ms is not None and task.wake_at_ms <= self.now
        return False

    @invariant()
    def state_is_in_the_diagram(self):
        assert (self.task.status, self.task.work_state) in LEGAL

    @invariant()
    def a_message_belongs_to_the_status(self):
        assert self.task.message is None or self.task.status in (Status.WORKING, Status.FAILED)

    @invariant()
    def lease_and_wake_time_match_the_state(self):
        task = self.task
        has_lease = task.lease_owner is not None
        assert has_lease == (task.lease_until_ms is not None)
        if task.work_state is WorkState.DONE:
            assert has_lease == self.ended_under_lease
        else:
            assert has_lease == (task.work_state is WorkState.LEASED)
        assert task.wake_at_ms is not None or task.work_state is not WorkState.SLEEPING
        assert task.wake_at_ms is None or task.work_state in (WorkState.SLEEPING, WorkState.AWAITING)

    @invariant()
    def at_most_one_lease_is_valid(self):
        valid = [owner for owner, until in self.leases.items() if until >= self.now]
        assert len(valid) <= 1
        assert all(self.task.lease_owner == owner for owner in valid)

    @invariant()
    def attempts_are_bounded(self):
        assert 0 <= self.task.attempts <= MAX_ATTEMPTS

    def teardown(self):
        """Check that any task can continue or end after its lease and sleep, and finally expires."""
        task = self.task
        if task.is_terminal:
            return
        self.now = max(self.now, task.lease_until_ms or 0, task.wake_at_ms or 0) + 1
        waits_for_answers = task.work_state is WorkState.AWAITING and task.wake_at_ms is None
        if not waits_for_answers and self.now < task.deadline_ms:
            attempt = transitions.claim(owner="x", until_ms=self.now, now_ms=self.now, **CLAIM)
            end = transitions.abandon(now_ms=self.now, max_attempts=MAX_ATTEMPTS, **END)
            assert (attempt.apply_to(self.item) is None) == (end.apply_to(self.item) is not None)
        self.now = max(self.now, task.deadline_ms)
        self.expire()
        assert self.task.status is Status.FAILED


TestTaskStateMachine = TaskStateMachine.TestCase
TestTaskStateMachine.settings = settings(max_examples=60, stateful_step_count=50)
