"""Deadlines of passes, of workers and of retries. `tests/entry/test_handler` has those of requests."""

import math

from mcp_roundtrip.engine.deadline import Deadline, retries_end_at_ms, retries_until, worker_deadline_ms


def test_a_worker_starts_nothing_in_the_last_tenth_of_its_time():
    assert worker_deadline_ms(1_000, 10_000) == 10_000


def test_a_deadline_is_short_of_the_reserve_or_of_the_required_time():
    deadline = Deadline(at_ms=10_000, clock_ms=lambda: 8_000)
    assert deadline.remaining_ms() == 2_000
    assert deadline.is_short_of()
    assert not deadline.is_short_of(2_000)
    assert deadline.is_short_of(2_001)


def test_the_last_pass_uses_the_reserve_and_ends_at_its_deadline():
    assert not Deadline(10_000, lambda: 9_999, can_continue=lambda: False).is_short_of()
    assert Deadline(10_000, lambda: 10_000, can_continue=lambda: False).is_short_of()
    assert Deadline(10_000, lambda: 15_000).remaining_ms() == 0


def test_the_retries_of_aws_calls_have_a_deadline_only_in_an_invocation():
    assert retries_end_at_ms.get() == math.inf
    with retries_until(5_000):
        assert retries_end_at_ms.get() == 5_000
    assert retries_end_at_ms.get() == math.inf
