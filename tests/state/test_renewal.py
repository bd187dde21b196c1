import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.renewal import RENEWAL_RETRY_S, RenewalBackoff, renewal_time
from mcp_roundtrip_testing import FakeClock


@given(st.integers(0, 2**40), st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_renewal_is_due_late_in_the_time_and_before_the_last_twelfth(start, length, random):
    moment = renewal_time(start, start + length, random)
    assert start + length * 2 / 3 <= moment + 0.001
    assert moment <= start + length * 11 / 12 + 0.001


def test_different_randomness_gives_different_moments():
    assert len({renewal_time(0, 3600, number / 100) for number in range(100)}) == 100


@pytest.fixture
def clock():
    return FakeClock()


def failing(clock, seconds):
    """A call that takes some time, and fails."""

    def call():
        clock.advance(seconds)
        raise KeyServiceError("timeout")

    return call


def test_a_renewal_gives_what_its_call_gives(clock):
    assert RenewalBackoff(clock).attempt(lambda: "key") == "key"


def test_a_renewal_that_fails_gives_nothing(clock):
    assert RenewalBackoff(clock).attempt(failing(clock, 0)) is None


@pytest.mark.parametrize("seconds", [0, 6, 600])
def test_after_a_failure_there_is_no_renewal_of_anything_for_a_minute_from_its_end_on(clock, seconds):
    renewals = RenewalBackoff(clock)
    renewals.attempt(failing(clock, seconds))
    clock.advance(RENEWAL_RETRY_S - 1)
    assert renewals.attempt(lambda: "another key") is None
    clock.advance(1)
    assert renewals.attempt(lambda: "another key") == "another key"


def test_a_clock_that_was_set_back_ends_the_pause(clock):
    renewals = RenewalBackoff(clock)
    renewals.attempt(failing(clock, 0))
    clock.advance(-1000)
    assert renewals.attempt(lambda: "key") == "key"


def test_other_errors_are_not_taken_for_a_failing_key_service(clock):
    with pytest.raises(ZeroDivisionError):
        RenewalBackoff(clock).attempt(lambda: 1 / 0)
