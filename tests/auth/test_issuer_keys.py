"""The keys of an issuer: how often they are requested, also in its outages, and which of them are usable."""

import json
import re
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls

from mcp_roundtrip.auth.callers import IssuerUnavailable
from mcp_roundtrip.auth.issuer_keys import (
    EXPIRE_AFTER_S,
    MIN_REFRESH_INTERVAL_S,
    REFRESH_AFTER_S,
    RETRY_INTERVAL_S,
    TIMEOUT_S,
    IssuerKeys,
    discover_jwks_uri,
    metadata_urls,
    parse_key_set,
)
from mcp_roundtrip_testing.task_table import FakeClock
from support.token_issuer import ISSUER, JWKS_URI, ONE, RSA, SIGNATURE_ALGORITHMS, TWO, Documents, Key, jwks

DOWN = IssuerUnavailable("issuer_timeout")


class ChangingIssuer:
    """The keys of an issuer that was asked for them once. It can become unavailable and change its keys."""

    def __init__(self, answer: bytes | Exception | None = None) -> None:
        self.clock = FakeClock()
        self.documents = Documents({JWKS_URI: jwks(ONE) if answer is None else answer}, self.clock)
        self.failures: list[IssuerUnavailable] = []
        self.keys = IssuerKeys(ISSUER, JWKS_URI, self.documents.fetch, self.clock, self.failures.append)
        assert self.times == 0
        if answer is None:
            assert self.knows("one")

    def answers(self, answer: bytes | Exception, *, in_s: float = 0) -> None:
        """Change the answer, and let some time pass."""
        self.documents.found[JWKS_URI] = answer
        self.clock.advance(in_s)

    def knows(self, kid: str) -> bool:
        return self.keys.find(kid, "ES256") is not None

    @property
    def times(self) -> int:
        return len(self.documents.asked)


def test_a_new_key_is_found_at_its_first_token_and_a_withdrawn_one_accepted_for_at_most_an_hour():
    asked = ChangingIssuer()
    asked.answers(jwks(ONE, TWO), in_s=MIN_REFRESH_INTERVAL_S)
    assert asked.knows("two")
    assert asked.times == 2
    asked.answers(jwks(TWO), in_s=REFRESH_AFTER_S)
    assert not asked.knows("one")
    assert asked.knows("two")


def test_a_clock_that_is_set_back_delays_no_refresh():
    asked = ChangingIssuer()
    asked.answers(jwks(TWO), in_s=-3_600)
    assert not asked.knows("one")
    assert asked.knows("two")


def test_unknown_keys_cause_at_most_one_request_a_minute():
    asked = ChangingIssuer()
    for number in range(600):
        asked.clock.advance(0.5)
        assert not asked.knows(f"forged-{number}")
        assert asked.knows("one")
    assert asked.times == 1 + 300 // MIN_REFRESH_INTERVAL_S


def test_cached_keys_are_used_for_a_day_while_the_issuer_is_down():
    asked = ChangingIssuer()
    asked.answers(DOWN)
    for _ in range(23):
        asked.clock.advance(3_600)
        assert asked.knows("one")
    asked.clock.advance(EXPIRE_AFTER_S - 23 * 3_600)
    with pytest.raises(IssuerUnavailable):
        asked.knows("one")
    asked.answers(jwks(ONE), in_s=RETRY_INTERVAL_S)
    assert asked.knows("one")


def test_a_hanging_issuer_delays_only_one_request():
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


@pytest.mark.parametrize("answer", [DOWN, b"<!doctype html>", b"[]", b'{"keys":{}}'])
def test_after_a_failed_refresh_an_unknown_key_is_refused_if_usable_keys_are_cached(answer):
    asked = ChangingIssuer()
    for _ in range(3):
        asked.answers(answer, in_s=MIN_REFRESH_INTERVAL_S)
        for _ in range(10):
            assert not asked.knows("two")
            assert asked.knows("one")
    assert asked.times == 4


@pytest.mark.parametrize("held", [True, False])
def test_each_failed_refresh_is_reported_once_for_any_number_of_requests(held):
    asked = ChangingIssuer(None if held else DOWN)
    failures: list[tuple[bytes | Exception, str]] = [
        (DOWN, "issuer_timeout"),
        (b"[]", "issuer_jwks"),
        (b'{"keys":[]}', "issuer_no_keys"),
    ]
    for answer, reason in failures:
        asked.answers(answer, in_s=MIN_REFRESH_INTERVAL_S)
        for _ in range(10):
            with suppress(IssuerUnavailable):
                asked.knows("forged")
        assert [failure.reason for failure in asked.failures] == [reason]
        asked.failures.clear()


def test_a_failure_names_the_url_for_the_log():
    a_url = r"\S+//\S+"
    url, failures = "https://me:secret@id.test/keys?code=1", list[IssuerUnavailable]()
    answers: list[bytes | Exception] = [DOWN, b"a login page", b'{"keys":[]}']
    for answer in answers:
        documents = Documents({url: answer}, FakeClock())
        keys = IssuerKeys(ISSUER, url, documents.fetch, documents.clock, failures.append)
        with pytest.raises(IssuerUnavailable):
            keys.find("one", "ES256")
        assert re.findall(a_url, failures.pop().__notes__[-1]) == ["https://id.test/keys"]
    first, *_ = metadata_urls("https://id.test")
    with pytest.raises(IssuerUnavailable) as without_keys:
        discover("https://id.test", {first: document("https://id.test", "/keys")})
    assert re.findall(a_url, " ".join(without_keys.value.__notes__)) == [first]


@pytest.mark.parametrize("page", [b'{"keys":[]}', jwks(ONE.jwk(private=True))])
def test_no_key_is_usable_after_the_issuer_withdrew_all_keys(page):
    asked = ChangingIssuer()
    asked.answers(page, in_s=REFRESH_AFTER_S)
    with pytest.raises(IssuerUnavailable) as failed:
        asked.knows("one")
    assert failed.value.reason == "issuer_no_keys"
    asked.answers(jwks(ONE), in_s=RETRY_INTERVAL_S)
    assert asked.knows("one")


def test_finding_and_fetching_the_keys_take_three_seconds_together():
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


def test_concurrent_threads_cause_one_request():
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


ISSUERS = ["https://id.test", "https://id.test/", "https://id.test/tenant", "https://id.test:8443/a/b"]


def document(issuer: str, jwks_uri: object = "https://keys.test/jwks") -> bytes:
    return json.dumps({"issuer": issuer, "jwks_uri": jwks_uri}).encode()


def discover(issuer: str, documents: Mapping[str, bytes]) -> str:
    """Return the location of the keys that an issuer with these documents gives."""

    def fetch(url: str) -> bytes:
        if url not in documents:
            raise IssuerUnavailable("issuer_status_404", is_answer=True)
        return documents[url]

    return discover_jwks_uri(issuer, fetch)


def failure_to_discover(issuer: str, documents: Mapping[str, bytes]) -> str:
    with pytest.raises(IssuerUnavailable) as failed:
        discover(issuer, documents)
    return failed.value.reason


@pytest.mark.parametrize("issuer", ISSUERS)
def test_the_first_valid_metadata_gives_the_location_of_the_keys(issuer):
    client_urls = build_oauth_authorization_server_metadata_discovery_urls(issuer, "https://mcp.test")
    assert list(metadata_urls(issuer)) == client_urls
    for url in client_urls:
        assert discover(issuer, {url: document(issuer)}) == "https://keys.test/jwks"


@pytest.mark.parametrize("page", [b"<!doctype html>", b"[]", b"{}", document("https://evil.test")])
def test_documents_that_are_not_metadata_of_the_issuer_are_skipped(page):
    first, second, *_ = metadata_urls("https://id.test")
    documents = {first: page, second: document("https://id.test")}
    assert discover("https://id.test", documents) == "https://keys.test/jwks"
    assert failure_to_discover("https://id.test", {first: page, second: page})


@pytest.mark.parametrize(
    "other", ["https://id.test/", "https://ID.test", "https://id.test/tenant", "http://id.test"]
)
def test_issuers_are_compared_as_exact_text(other):
    documents = {url: document(other) for url in metadata_urls("https://id.test")}
    assert failure_to_discover("https://id.test", documents) == "issuer_metadata_of_another"


def test_a_document_of_another_issuer_is_reported_before_missing_documents():
    issuer = "https://id.test/tenant"
    for url in metadata_urls(issuer):
        reason = failure_to_discover(issuer, {url: document("https://id.test")})
        assert reason == "issuer_metadata_of_another"


@pytest.mark.parametrize(
    "jwks_uri",
    ["http://localhost/keys", "http://keys.test/jwks", "file:///etc/passwd", "/keys", "", None, 7],
)
def test_only_https_urls_of_an_issuer_are_requested(jwks_uri):
    documents = {url: document("https://id.test", jwks_uri) for url in metadata_urls("https://id.test")}
    assert failure_to_discover("https://id.test", documents) == "issuer_jwks_uri"
    local = "http://127.0.0.1:8000"
    documents = {url: document(local, f"{local}/keys") for url in metadata_urls(local)}
    assert discover(local, documents) == f"{local}/keys"


def test_an_issuer_that_does_not_respond_is_requested_once():
    requested: list[str] = []

    def fetch(url: str) -> bytes:
        requested.append(url)
        raise IssuerUnavailable("issuer_timeout")

    with pytest.raises(IssuerUnavailable):
        discover_jwks_uri("https://id.test/tenant", fetch)
    assert len(requested) == 1


ED = Key("ed", "EdDSA")


def without(key: Key, *names: str) -> dict[str, Any]:
    return {name: member for name, member in key.jwk().items() if name not in names}


def test_keys_are_found_by_kid_and_algorithm_which_is_never_symmetric():
    keys = parse_key_set(jwks(ONE, ONE, RSA, {**RSA.jwk(), "kid": "one"}, Key("p384", "ES384"), ED))
    assert keys.keys() == {
        *(("one", "ES256"), ("one", "RS256"), ("rsa", "RS256"), ("p384", "ES384"), ("ed", "EdDSA"))
    }
    assert keys["one", "ES256"] == ONE.private.public_key()
    assert not {name for name in SIGNATURE_ALGORITHMS if name.startswith("HS") or name.lower() == "none"}


def test_a_key_without_alg_verifies_the_algorithms_of_its_type():
    keys = parse_key_set(jwks(without(RSA, "alg", "use"), without(ONE, "alg")))
    rsa = {("rsa", name) for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")}
    assert keys.keys() == {("one", "ES256"), *rsa}


UNUSABLE: dict[str, Any] = {
    "private EC": TWO.jwk(private=True),
    "symmetric": {"kty": "oct", "kid": "x", "k": "c2VjcmV0", "alg": "HS256"},
    "an RSA key with a secret": {**RSA.jwk(), "kid": "x", "k": "c2VjcmV0"},
    "an RSA key for HMAC": {**RSA.jwk(), "kid": "x", "alg": "HS256"},
    "an EC key for RS256": {**TWO.jwk(), "alg": "RS256"},
    "an EC key with the name of another curve": {**TWO.jwk(), "crv": "P-384", "alg": "ES384"},
    "for encryption": {**TWO.jwk(), "use": "enc"},
    "for signing only": {**TWO.jwk(), "key_ops": ["sign"]},
    "key_ops of another kind": {**TWO.jwk(), "key_ops": "verify"},
    "no kid": without(TWO, "kid"),
    "kid is a number": {**TWO.jwk(), "kid": 7},
    "no kty": without(TWO, "kty"),
    "kty is a list": {**TWO.jwk(), "kty": ["EC"]},
    "crv is a list": {**TWO.jwk(), "crv": ["P-256"]},
    "an unknown curve": {**TWO.jwk(), "crv": "secp256k1", "alg": "ES256K"},
    "a point that is not on the curve": {**TWO.jwk(), "x": TWO.jwk()["y"]},
    "coordinates that are numbers": {**TWO.jwk(), "x": 7},
    "1,024 bits": Key("short", "RS256").jwk(),
    "an even exponent": {**RSA.jwk(), "kid": "x", "e": "Ag"},
    "16,384 bits": {**RSA.jwk(), "kid": "x", "n": "_" + "_" * 2_730},
    "not an object": "a key",
    "nothing": None,
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_key_is_skipped_and_the_others_are_used(name):
    assert parse_key_set(jwks(UNUSABLE[name], ONE)).keys() == {("one", "ES256")}
    assert parse_key_set(jwks(UNUSABLE[name])) == {}


def test_different_keys_with_one_kid_are_all_unusable():
    keys = parse_key_set(jwks(ONE, {**TWO.jwk(), "kid": "one"}, RSA))
    assert keys.keys() == {("rsa", "RS256")}


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[],"keys":[]}', b"[" * 10_000, b"\xff\xfe"],
)
def test_a_malformed_key_set_is_refused(document):
    with pytest.raises(ValueError):  # noqa: PT011 - the text is not used
        parse_key_set(document)
