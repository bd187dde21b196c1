import hmac
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.state.epochs import EPOCH_S, EpochKeys, LocalMacKey, short_key_id
from mcp_roundtrip.state.renewal import FIRST_RETRY_S, RENEWAL_RETRY_S, RenewalBackoff
from mcp_roundtrip_testing import FakeClock

EPOCH = 500_000
START = EPOCH * EPOCH_S
AHEAD_FROM, AHEAD_TO = START + EPOCH_S * 2 // 3, START + EPOCH_S * 11 // 12
LIMITS = Limits()
SECRET = b"s" * 32


class Counting(LocalMacKey):
    """A MAC key that records its calls and can be made to fail."""

    failure = None
    takes = staticmethod(lambda: None)

    def __init__(self, key_id="one", secret=SECRET):
        super().__init__(key_id, secret)
        self.asked = []

    def mac(self, message):
        self.asked.append(message)
        self.takes()
        if self.failure:
            raise KeyServiceError(self.failure)
        return super().mac(message)


@pytest.fixture
def mac_key():
    return Counting()


class Epochs(EpochKeys):
    """With the clock at the time that is asked about."""

    def __init__(self, mac_keys, limits, random, issuer):
        self.clock = FakeClock(START)
        given = {"clock": self.clock, "random": random, "renewals": RenewalBackoff(self.clock)}
        super().__init__(mac_keys, "t+jwt", limits, issuer=issuer, **given)

    def current(self, now):
        self.clock.now = now
        return super().current(now)

    def find(self, kid, now):
        self.clock.now = now
        return super().find(kid, now)


def epochs(*mac_keys, limits=LIMITS, random=lambda: 0.0, issuer="stack"):
    return Epochs(mac_keys, limits, random, issuer)


def refusal(keys, kid, now=START):
    with pytest.raises(StateRejected) as refused:
        keys.find(kid, now)
    return refused.value.reason


def kid(epoch, key_id="one"):
    return f"{short_key_id(key_id)}.{epoch}"


def test_an_epochs_key_is_a_mac_over_its_number_and_the_issuer(mac_key):
    key = epochs(mac_key).current(START)
    assert key.kid == kid(EPOCH)
    assert key.secret == hmac.digest(SECRET, b"mcp-rs/v2/epoch:%d:stack" % EPOCH, "sha256")


def test_deployments_that_share_a_mac_key_share_no_epoch_key(mac_key):
    one, other = (epochs(mac_key, issuer=issuer).current(START) for issuer in ("dev", "prod"))
    assert one.kid == other.kid
    assert one.secret != other.secret


def test_every_epoch_and_every_generation_has_its_own_key():
    keys = epochs(LocalMacKey("one", SECRET), LocalMacKey("two", b"t" * 32))
    secrets = {
        keys.current(START).secret,
        keys.current(START + EPOCH_S).secret,
        keys.find(kid(EPOCH, "two"), START).secret,
    }
    assert len(secrets) == 3


def test_a_generation_does_not_show_the_id_of_its_key():
    assert "1234abcd" not in short_key_id("1234abcd-12ab-34cd-56ef-1234567890ab")
    assert len(short_key_id("one")) == 8


def test_a_key_is_derived_once(mac_key):
    keys = epochs(mac_key)
    assert keys.current(START) == keys.current(START + 1) == keys.find(kid(EPOCH), START + 2)
    assert len(mac_key.asked) == 1


WINDOW = {
    "this epoch": (EPOCH, START, True),
    "the last one, while its tokens live": (EPOCH - 1, START + 599, True),
    "the last one, when they are dead": (EPOCH - 1, START + 600, False),
    "the next one, as far as clocks may differ": (EPOCH + 1, START + EPOCH_S - 5, True),
    "the next one, before": (EPOCH + 1, START + EPOCH_S - 6, False),
    "the one before the last": (EPOCH - 2, START, False),
    "the first one": (1, START, False),
    "the end of the world": (9_999_999_999, START, False),
}


@pytest.mark.parametrize(("epoch", "now", "accepted"), WINDOW.values(), ids=WINDOW)
def test_a_key_is_found_if_a_current_token_can_have_been_encrypted_under_it(mac_key, epoch, now, accepted):
    keys = epochs(mac_key)
    if accepted:
        assert keys.find(kid(epoch), now).kid == kid(epoch)
    else:
        assert refusal(keys, kid(epoch), now) == "epoch"
        assert mac_key.asked == []


def test_a_longer_round_reaches_further_back(mac_key):
    limits = Limits(round_ttl_s=3 * EPOCH_S, flow_ttl_s=9 * EPOCH_S)
    keys = epochs(mac_key, limits=limits)
    assert keys.find(kid(EPOCH - 3), START)
    assert refusal(keys, kid(EPOCH - 4)) == "epoch"


NO_KIDS = ["", "x", f"{short_key_id('one')}", f".{EPOCH}", *(f"{short_key_id('one')}.{epoch}" for epoch in (
    "", "0", "-1", "+1", f"0{EPOCH}", f" {EPOCH}", f"{EPOCH}\n", "5e5", "٥", "１", "9" * 11, "9" * 5000, "NaN"
))]  # fmt: skip


@pytest.mark.parametrize("name", NO_KIDS)
def test_what_names_no_epoch_is_refused_without_a_call(mac_key, name):
    assert refusal(epochs(mac_key), name) == "header"
    assert mac_key.asked == []


@given(st.text())
def test_no_text_makes_a_call(text):
    mac_key = Counting()
    assert refusal(epochs(mac_key), text) in {"header", "unknown_key", "epoch"}
    assert mac_key.asked == []


def test_a_key_of_an_unknown_generation_is_refused_without_a_call(mac_key):
    assert refusal(epochs(mac_key), kid(EPOCH, "two")) == "unknown_key"
    assert mac_key.asked == []


# ahead of time


def test_the_next_epochs_key_is_derived_late_in_this_one_and_once(mac_key):
    keys = epochs(mac_key)
    for now in range(START, START + 2 * EPOCH_S, 10):
        keys.current(now)
        if now < AHEAD_FROM:
            assert len(mac_key.asked) == 1
        elif now < AHEAD_FROM + EPOCH_S:
            assert len(mac_key.asked) == 2


def test_an_environment_that_only_opens_derives_ahead_too(mac_key):
    keys = epochs(mac_key)
    keys.find(kid(EPOCH), AHEAD_FROM)
    assert len(mac_key.asked) == 2


def test_a_generation_that_is_only_trusted_is_derived_when_a_token_comes_with_it():
    one, two = Counting("one"), Counting("two")
    keys = epochs(one, two)
    keys.current(AHEAD_FROM)
    assert (len(one.asked), len(two.asked)) == (2, 0)
    keys.find(kid(EPOCH, "two"), AHEAD_FROM)
    assert (len(one.asked), len(two.asked)) == (2, 1)


def test_a_failure_ahead_of_time_is_not_felt_and_tried_again_a_minute_later(mac_key):
    keys = epochs(mac_key)
    keys.current(START)
    mac_key.failure = "ThrottlingException"
    for second in range(RENEWAL_RETRY_S):
        keys.current(AHEAD_FROM + second)
    assert len(mac_key.asked) == 2
    mac_key.failure = None
    keys.current(AHEAD_FROM + RENEWAL_RETRY_S)
    assert len(mac_key.asked) == 3
    keys.current(START + EPOCH_S)
    assert len(mac_key.asked) == 3


def test_a_key_that_is_needed_and_cannot_be_derived_is_a_failure_of_the_key_service(mac_key):
    keys = epochs(mac_key)
    mac_key.failure = "timeout"
    for _ in range(5):
        with pytest.raises(KeyServiceError):
            keys.current(START)
    assert len(mac_key.asked) == 1
    mac_key.failure = None
    assert keys.current(START + FIRST_RETRY_S)


def test_while_a_key_cannot_be_derived_the_pauses_between_attempts_grow_to_a_minute(mac_key):
    keys = epochs(mac_key)
    mac_key.failure = "timeout"
    for second in range(600):
        with pytest.raises(KeyServiceError):
            keys.current(START + second)
    assert len(mac_key.asked) == 6 + 9, "after 0, 1, 3, 7, 15 and 31 s, then from 63 s on each minute"


def test_tokens_of_two_epochs_share_the_pauses(mac_key):
    keys = epochs(mac_key)
    mac_key.failure = "timeout"
    for epoch in (EPOCH, EPOCH - 1) * 5:
        with pytest.raises(KeyServiceError):
            keys.find(kid(epoch), START)
    assert len(mac_key.asked) == 1


def test_a_generation_that_fails_does_not_hold_up_another():
    one, two = Counting("one"), Counting("two")
    keys = epochs(one, two)
    two.failure = "AccessDeniedException"
    with pytest.raises(KeyServiceError):
        keys.find(kid(EPOCH, "two"), START)
    assert keys.find(kid(EPOCH, "one"), START)


def test_after_a_success_the_pauses_begin_short_again(mac_key):
    keys = epochs(mac_key)
    mac_key.failure = "timeout"
    for second in (0, 1, 3):
        with pytest.raises(KeyServiceError):
            keys.current(START + second)
    mac_key.failure = None
    keys.current(START + 7)
    mac_key.failure = "timeout"
    for second in range(2):
        with pytest.raises(KeyServiceError):
            keys.current(START + EPOCH_S + second)
    assert len(mac_key.asked) == 3 + 1 + 2


def test_failures_ahead_of_time_do_not_lengthen_the_pauses_of_a_key_that_is_needed(mac_key):
    keys = epochs(mac_key)
    keys.current(START)
    mac_key.failure = "timeout"
    for second in range(AHEAD_FROM, START + EPOCH_S, RENEWAL_RETRY_S):
        keys.current(second)
    asked = len(mac_key.asked)
    for second in (0, FIRST_RETRY_S):
        with pytest.raises(KeyServiceError):
            keys.current(START + EPOCH_S + second)
    assert len(mac_key.asked) == asked + 2


def test_a_slow_failure_is_not_retried_for_a_while_after_its_end(mac_key):
    keys = epochs(mac_key)
    mac_key.failure, mac_key.takes = "timeout", lambda: keys.clock.advance(6)
    for _ in range(10):
        with pytest.raises(KeyServiceError):
            EpochKeys.current(keys, keys.clock())
    assert len(mac_key.asked) == 1


def test_a_failure_that_is_raised_again_accumulates_no_tracebacks(mac_key):
    keys = epochs(mac_key)
    mac_key.failure = "timeout"
    failures = []
    for _ in range(5):
        with pytest.raises(KeyServiceError) as failed:
            keys.current(START)
        failures.append(failed.value)
    assert len(set(map(id, failures))) == 5
    assert [failure.reason for failure in failures] == ["timeout"] * 5


def test_a_busy_fleet_does_not_turn_to_the_key_service_on_the_hour():
    uniform = random.Random(0).random
    fleet = [(epochs(key, random=uniform), key) for key in (Counting() for _ in range(500))]
    calls = Counter()
    for now in range(START + 1800, START + 1800 + 2 * EPOCH_S, 20):
        for keys, key in fleet:
            before = len(key.asked)
            keys.current(now)
            calls[now // 60] += len(key.asked) - before
    first = (START + 1800) // 60
    assert calls.pop(first) == len(fleet)
    assert sum(calls.values()) == 2 * len(fleet)
    assert all(count == 0 for minute, count in calls.items() if minute % 60 in (*range(56, 60), *range(30)))
    assert max(calls.values()) < len(fleet) / 5, "a quarter of an hour, evenly"


def test_keys_that_open_nothing_any_more_are_forgotten(mac_key):
    keys = epochs(mac_key)
    for now in range(START, START + 5 * EPOCH_S, 60):
        keys.current(now)
        held = {epoch for _, epoch in keys._keys}
        assert held <= {(now - LIMITS.round_ttl_s) // EPOCH_S, now // EPOCH_S, now // EPOCH_S + 1}


def test_keys_are_forgotten_while_the_key_service_is_out_of_reach_too(mac_key):
    keys = epochs(mac_key)
    keys.current(AHEAD_FROM)
    mac_key.failure = "timeout"
    keys.current(START + EPOCH_S + LIMITS.round_ttl_s)
    assert {epoch for _, epoch in keys._keys} == {EPOCH + 1}


@pytest.mark.parametrize(
    "attempt", [lambda keys, now: keys.current(now), lambda keys, now: keys.find("x", now)]
)
def test_an_environment_that_can_do_nothing_else_still_forgets(mac_key, attempt):
    keys = epochs(mac_key)
    keys.current(START)
    mac_key.failure = "timeout"
    with pytest.raises((KeyServiceError, StateRejected)):
        attempt(keys, START + 2 * EPOCH_S)
    assert keys._keys == {}
