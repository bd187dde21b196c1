"""How often an issuer's keys are requested, and how tokens are verified during its outages."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.auth.callers import IssuerUnavailable
from mcp_roundtrip.auth.issuer_keys import (
    EXPIRE_AFTER_S,
    MIN_REFRESH_INTERVAL_S,
    REFRESH_AFTER_S,
    RETRY_INTERVAL_S,
    TIMEOUT_S,
    IssuerKeys,
)
from mcp_roundtrip.auth.issuer_metadata import metadata_urls
from mcp_roundtrip_testing.clock import FakeClock
from support.token_issuer import ISSUER, JWKS_URI, ONE, TWO, Documents, jwks

DOWN = IssuerUnavailable("issuer_timeout")


class ChangingIssuer:
    """The keys of an issuer that can become unavailable and change its keys. It counts requests."""

    def __init__(self, answer: bytes | Exception | None = None) -> None:
        self.clock = FakeClock()
        self.documents = Documents({JWKS_URI: jwks(ONE) if answer is None else answer}, self.clock)
        self.failures: list[IssuerUnavailable] = []
        self.keys = IssuerKeys(ISSUER, JWKS_URI, self.documents.fetch, self.clock, self.failures.append)

    def answers(self, answer: bytes | Exception) -> None:
        self.documents.found[JWKS_URI] = answer

    def knows(self, kid: str) -> bool:
        return self.keys.find(kid, "ES256") is not None

    @property
    def times(self) -> int:
        return len(self.documents.asked)


def test_keys_are_requested_at_the_first_token_and_an_hour_later() -> None:
    asked = ChangingIssuer()
    assert asked.times == 0
    assert all(asked.knows("one") for _ in range(100))
    asked.clock.advance(REFRESH_AFTER_S - 1)
    assert asked.knows("one")
    assert asked.times == 1
    asked.clock.advance(1)
    assert all(asked.knows("one") for _ in range(100))
    assert asked.times == 2


def test_a_new_key_is_found_at_its_first_token() -> None:
    asked = ChangingIssuer()
    assert asked.knows("one")
    asked.answers(jwks(ONE, TWO))
    asked.clock.advance(MIN_REFRESH_INTERVAL_S)
    assert asked.knows("two")
    assert asked.times == 2


def test_a_withdrawn_key_is_accepted_for_at_most_an_hour() -> None:
    asked = ChangingIssuer()
    assert asked.knows("one")
    asked.answers(jwks(TWO))
    asked.clock.advance(REFRESH_AFTER_S)
    assert not asked.knows("one")
    assert asked.knows("two")


def test_unknown_keys_cause_at_most_one_request_a_minute() -> None:
    asked = ChangingIssuer()
    assert asked.knows("one")
    for number in range(600):
        asked.clock.advance(0.5)
        assert not asked.knows(f"forged-{number}")
        assert asked.knows("one")
    assert asked.times == 1 + 300 // MIN_REFRESH_INTERVAL_S


def test_cached_keys_are_used_for_a_day_while_the_issuer_is_down() -> None:
    asked = ChangingIssuer()
    assert asked.knows("one")
    asked.answers(DOWN)
    for _ in range(23):
        asked.clock.advance(3_600)
        assert asked.knows("one")
    asked.clock.advance(EXPIRE_AFTER_S - 23 * 3_600)
    with pytest.raises(IssuerUnavailable):
        asked.knows("one")
    asked.answers(jwks(ONE))
    asked.clock.advance(RETRY_INTERVAL_S)
    assert asked.knows("one")


def test_a_hanging_issuer_delays_only_one_request() -> None:
    asked = ChangingIssuer(DOWN)
    asked.documents.latency_s = TIMEOUT_S
    before = asked.clock.now
    for _ in range(50):
        with pytest.raises(IssuerUnavailable) as failed:
            asked.knows("one")
    assert failed.value.reason == "issuer_timeout"
    assert asked.clock.now - before == TIMEOUT_S
    asked.clock.advance(RETRY_INTERVAL_S - 1)
    with pytest.raises(IssuerUnavailable):
        asked.knows("one")
    assert asked.times == 1, "the pause begins when the issuer was given up"
    asked.clock.advance(1)
    with pytest.raises(IssuerUnavailable):
        asked.knows("one")
    assert asked.times == 2


@pytest.mark.parametrize("answer", [DOWN, b"<!doctype html>"])
def test_after_a_failed_refresh_an_unknown_key_is_refused_if_usable_keys_are_cached(
    answer: bytes | Exception,
) -> None:
    asked = ChangingIssuer()
    assert asked.knows("one")
    asked.answers(answer)
    for _ in range(3):
        asked.clock.advance(MIN_REFRESH_INTERVAL_S)
        for _ in range(10):
            assert not asked.knows("two")
            assert asked.knows("one")
    assert asked.times == 4


@pytest.mark.parametrize("held", [True, False])
def test_each_failed_refresh_is_reported_once_for_any_number_of_requests(held: bool) -> None:
    asked = ChangingIssuer(None if held else DOWN)
    if held:
        assert asked.knows("one")
    failures: list[tuple[bytes | Exception, str]] = [
        (DOWN, "issuer_timeout"),
        (b"[]", "issuer_jwks"),
        (b'{"keys":[]}', "issuer_no_keys"),
    ]
    for answer, reason in failures:
        asked.answers(answer)
        asked.clock.advance(MIN_REFRESH_INTERVAL_S)
        for _ in range(10):
            with suppress(IssuerUnavailable):
                asked.knows("forged")
        assert [failure.reason for failure in asked.failures] == [reason]
        asked.failures.clear()


def test_requests_without_usable_keys_report_the_reason_of_the_last_refresh() -> None:
    asked = ChangingIssuer()
    assert asked.knows("one")
    asked.answers(DOWN)
    asked.clock.advance(EXPIRE_AFTER_S)
    for _ in range(2):
        with pytest.raises(IssuerUnavailable, match="issuer_timeout"):
            asked.knows("one")


@pytest.mark.parametrize("page", [b'{"keys":[]}', jwks(ONE.jwk(private=True))])
def test_no_key_is_usable_after_the_issuer_withdrew_all_keys(page: bytes) -> None:
    asked = ChangingIssuer()
    assert asked.knows("one")
    asked.answers(page)
    asked.clock.advance(REFRESH_AFTER_S)
    with pytest.raises(IssuerUnavailable) as failed:
        asked.knows("one")
    assert failed.value.reason == "issuer_no_keys"
    asked.answers(jwks(ONE))
    asked.clock.advance(RETRY_INTERVAL_S)
    assert asked.knows("one")


@pytest.mark.parametrize("page", [b"<!doctype html>", b"[]", b'{"keys":{}}'])
def test_a_malformed_key_set_does_not_replace_the_cached_one(page: bytes) -> None:
    asked = ChangingIssuer()
    assert asked.knows("one")
    asked.answers(page)
    asked.clock.advance(REFRESH_AFTER_S)
    assert asked.knows("one")
    assert not asked.knows("two")
    assert [failure.reason for failure in asked.failures] == ["issuer_jwks"]


def test_finding_and_fetching_the_keys_take_three_seconds_together() -> None:
    clock, urls = FakeClock(), list(metadata_urls(ISSUER))
    absent = IssuerUnavailable("issuer_status_404", is_answer=True)
    documents = Documents(dict.fromkeys(urls, absent), clock, latency_s=1.4)
    documents.found[urls[2]] = json.dumps({"issuer": ISSUER, "jwks_uri": JWKS_URI}).encode()
    documents.found[JWKS_URI] = jwks(ONE)
    keys, before = IssuerKeys(ISSUER, None, documents.fetch, clock), clock.now
    with pytest.raises(IssuerUnavailable) as failed:
        keys.find("one", "ES256")
    assert failed.value.reason == "issuer_timeout"
    assert clock.now - before <= TIMEOUT_S + 1e-6
    clock.advance(RETRY_INTERVAL_S)
    documents.latency_s = 0.5
    assert keys.find("one", "ES256") is not None
    assert documents.asked[-4:] == [*urls, JWKS_URI]


def test_concurrent_threads_cause_one_request() -> None:
    clock, asked, all_there = FakeClock(), list[str](), threading.Barrier(16)

    def fetch(url: str, timeout_s: float) -> bytes:
        asked.append(url)
        return jwks(ONE)

    keys = IssuerKeys(ISSUER, JWKS_URI, fetch, clock)

    def find(_: int) -> bool:
        all_there.wait()
        return keys.find("one", "ES256") is not None

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(find, range(16)))
    assert asked == [JWKS_URI]


STEPS = st.lists(
    st.tuples(st.sampled_from(["one", "two", "forged"]), st.integers(0, 7_200), st.sampled_from("ABD")),
    max_size=60,
)


@given(STEPS)
def test_requests_to_an_issuer_never_exceed_their_rate(steps: list[tuple[str, int, str]]) -> None:
    asked, moments = ChangingIssuer(), list[float]()
    answers: dict[str, bytes | Exception] = {"A": jwks(ONE), "B": jwks(ONE, TWO), "D": DOWN}
    good_at: float | None = None
    for kid, seconds, answer in steps:
        asked.clock.advance(seconds)
        asked.answers(answers[answer])
        before, now = asked.times, asked.clock.now
        try:
            known = asked.knows(kid)
            assert not known or kid != "forged"
        except IssuerUnavailable:
            known = False
        assert asked.times - before <= 1
        if asked.times > before:
            moments.append(now)
            good_at = now if answer != "D" else good_at
        assert not known or (good_at is not None and now - good_at < EXPIRE_AFTER_S)
    assert all(later - earlier >= RETRY_INTERVAL_S for earlier, later in pairwise(moments))
