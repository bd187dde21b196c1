"""Deadlines: the smallest limit applies, and the margin depends on the caller."""

from __future__ import annotations

import math

from mcp_roundtrip.engine.deadline import (
    Deadline,
    lambda_remaining_ms,
    request_deadline_ms,
    retries_end_at_ms,
    retries_until,
    worker_deadline_ms,
)


class LambdaContext:
    def get_remaining_time_in_millis(self) -> int:
        return 20_000


def test_a_request_ends_a_second_before_its_smallest_limit():
    limits_and_deadlines = [
        ((None, None), 100 + 20_000 - 1_000),
        ((29_000, None), 100 + 20_000 - 1_000),
        ((15_000, None), 100 + 15_000 - 1_000),
        ((15_000, 12_000.5), 100 + 12_000.5 - 1_000),
    ]
    for limits, expected in limits_and_deadlines:
        assert request_deadline_ms(100, LambdaContext(), *limits) == expected, limits


def test_without_a_lambda_context_the_longest_timeout_of_lambda_is_the_limit():
    assert lambda_remaining_ms(None) == 900_000
    assert request_deadline_ms(0, None) == 899_000


def test_a_worker_starts_nothing_in_the_last_tenth_of_its_time():
    assert worker_deadline_ms(1_000, 10_000) == 10_000


def test_a_deadline_is_short_of_the_reserve_or_of_the_required_time():
    deadline = Deadline(at_ms=10_000, clock_ms=lambda: 8_000)
    assert deadline.remaining_ms() == 2_000
    assert deadline.is_short_of()
    assert not deadline.is_short_of(2_000)
    assert deadline.is_short_of(2_001)
    assert not Deadline(10_000, lambda: 8_000, can_continue=lambda: False).is_short_of()


def test_a_passed_deadline_has_no_time_left():
    assert Deadline(at_ms=1_000, clock_ms=lambda: 5_000).remaining_ms() == 0


def test_the_retries_of_aws_calls_have_a_deadline_only_in_an_invocation():
    assert retries_end_at_ms.get() == math.inf
    with retries_until(5_000):
        assert retries_end_at_ms.get() == 5_000
    assert retries_end_at_ms.get() == math.inf
