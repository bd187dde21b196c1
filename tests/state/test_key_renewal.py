import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.jws import RENEWAL_RETRY_S, RenewalBackoff, renewal_time
from mcp_roundtrip_testing import FakeClock


@given(st.integers(0, 2**40), st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_renewal_is_due_late_in_the_lifetime_and_before_its_last_twelfth(start, length, random):
    moment = renewal_time(start, start + length, random)
    assert start + length * 2 / 3 <= moment + 0.001
    assert moment <= start + length * 11 / 12 + 0.001


def test_different_random_numbers_give_different_renewal_times():
    assert len({renewal_time(0, 3600, number / 100) for number in range(100)}) == 100


@pytest.fixture
def clock():
    return FakeClock()


def failing(clock, seconds):
    """Return a call that takes `seconds` and fails."""

    def call():
        clock.advance(seconds)
        raise KeyServiceError("timeout")

    return call


def test_a_renewal_returns_the_result_of_its_call(clock):
    assert RenewalBackoff(clock).attempt(lambda: "key") == "key"


def test_a_failed_renewal_returns_none(clock):
    assert RenewalBackoff(clock).attempt(failing(clock, 0)) is None


@pytest.mark.parametrize("seconds", [0, 6, 600])
def test_a_failure_blocks_all_renewals_for_a_minute_after_it_ends(clock, seconds):
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


def test_only_key_service_errors_count_as_failed_renewals(clock):
    with pytest.raises(ZeroDivisionError):
        RenewalBackoff(clock).attempt(lambda: 1 / 0)
