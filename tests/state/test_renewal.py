from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.state.renewal import early


@given(st.integers(0, 2**40), st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_renewal_is_due_late_in_the_time_and_before_the_last_twelfth(start, length, random):
    moment = early(start, start + length, random)
    assert start + length * 2 / 3 <= moment + 0.001
    assert moment <= start + length * 11 / 12 + 0.001


def test_different_randomness_gives_different_moments():
    assert len({early(0, 3600, number / 100) for number in range(100)}) == 100
