"""Where an issuer's keys are, by its metadata."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls

from mcp_roundtrip.auth.callers import IssuerUnavailable
from mcp_roundtrip.auth.issuer_metadata import discover_jwks_uri, metadata_urls

ISSUERS = ["https://id.test", "https://id.test/", "https://id.test/tenant", "https://id.test:8443/a/b"]


def document(issuer: str, jwks_uri: object = "https://keys.test/jwks") -> bytes:
    return json.dumps({"issuer": issuer, "jwks_uri": jwks_uri}).encode()


def found_at(documents: dict[str, bytes]) -> Callable[[str], bytes]:
    def fetch(url: str) -> bytes:
        if url not in documents:
            raise IssuerUnavailable("issuer_status_404", is_answer=True)
        return documents[url]

    return fetch


@pytest.mark.parametrize("issuer", ISSUERS)
def test_metadata_is_looked_for_where_clients_look_for_it(issuer: str) -> None:
    theirs = build_oauth_authorization_server_metadata_discovery_urls(issuer, "https://mcp.test")
    assert list(metadata_urls(issuer)) == theirs


@pytest.mark.parametrize("issuer", ISSUERS)
def test_the_keys_are_where_the_first_metadata_says(issuer: str) -> None:
    for url in metadata_urls(issuer):
        assert discover_jwks_uri(issuer, found_at({url: document(issuer)})) == "https://keys.test/jwks"


@pytest.mark.parametrize("page", [b"<!doctype html>", b"[]", b"{}", document("https://evil.test")])
def test_what_is_no_metadata_of_this_issuer_is_passed_over(page: bytes) -> None:
    first, second, *_ = metadata_urls("https://id.test")
    documents = {first: page, second: document("https://id.test")}
    assert discover_jwks_uri("https://id.test", found_at(documents)) == "https://keys.test/jwks"
    with pytest.raises(IssuerUnavailable):
        discover_jwks_uri("https://id.test", found_at({first: page, second: page}))


@pytest.mark.parametrize(
    "other", ["https://id.test/", "https://ID.test", "https://id.test/tenant", "http://id.test"]
)
def test_an_issuer_is_equal_as_text_or_another(other: str) -> None:
    documents = {url: document(other) for url in metadata_urls("https://id.test")}
    with pytest.raises(IssuerUnavailable) as failed:
        discover_jwks_uri("https://id.test", found_at(documents))
    assert failed.value.reason == "issuer_metadata_of_another"


def test_a_document_of_another_issuer_is_the_reason_though_there_is_none_elsewhere() -> None:
    issuer = "https://id.test/tenant"
    for url in metadata_urls(issuer):
        with pytest.raises(IssuerUnavailable) as failed:
            discover_jwks_uri(issuer, found_at({url: document("https://id.test")}))
        assert failed.value.reason == "issuer_metadata_of_another"


@pytest.mark.parametrize(
    "jwks_uri",
    [
        "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
        "http://localhost/keys",
        "http://169.254.169.254/latest/meta-data/",
        "http://keys.test/jwks",
        "file:///etc/passwd",
        "/keys",
        "",
        None,
        7,
    ],
)
def test_an_issuer_cannot_have_anything_but_https_asked(jwks_uri: object) -> None:
    documents = {url: document("https://id.test", jwks_uri) for url in metadata_urls("https://id.test")}
    with pytest.raises(IssuerUnavailable) as failed:
        discover_jwks_uri("https://id.test", found_at(documents))
    assert failed.value.reason == "issuer_jwks_uri"


def test_a_developers_own_issuer_may_have_its_keys_beside_it() -> None:
    issuer = "http://127.0.0.1:8000"
    documents = {url: document(issuer, f"{issuer}/keys") for url in metadata_urls(issuer)}
    assert discover_jwks_uri(issuer, found_at(documents)) == f"{issuer}/keys"


def test_an_issuer_that_does_not_answer_is_asked_once() -> None:
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        raise IssuerUnavailable("issuer_timeout")

    with pytest.raises(IssuerUnavailable):
        discover_jwks_uri("https://id.test/tenant", fetch)
    assert len(asked) == 1
