"""Finding an issuer's keys through its metadata."""

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
def test_metadata_is_requested_at_the_urls_that_clients_use(issuer: str) -> None:
    client_urls = build_oauth_authorization_server_metadata_discovery_urls(issuer, "https://mcp.test")
    assert list(metadata_urls(issuer)) == client_urls


@pytest.mark.parametrize("issuer", ISSUERS)
def test_the_first_valid_metadata_gives_the_location_of_the_keys(issuer: str) -> None:
    for url in metadata_urls(issuer):
        assert discover_jwks_uri(issuer, found_at({url: document(issuer)})) == "https://keys.test/jwks"


@pytest.mark.parametrize("page", [b"<!doctype html>", b"[]", b"{}", document("https://evil.test")])
def test_documents_that_are_not_metadata_of_the_issuer_are_skipped(page: bytes) -> None:
    first, second, *_ = metadata_urls("https://id.test")
    documents = {first: page, second: document("https://id.test")}
    assert discover_jwks_uri("https://id.test", found_at(documents)) == "https://keys.test/jwks"
    with pytest.raises(IssuerUnavailable):
        discover_jwks_uri("https://id.test", found_at({first: page, second: page}))


@pytest.mark.parametrize(
    "other", ["https://id.test/", "https://ID.test", "https://id.test/tenant", "http://id.test"]
)
def test_issuers_are_compared_as_exact_text(other: str) -> None:
    documents = {url: document(other) for url in metadata_urls("https://id.test")}
    with pytest.raises(IssuerUnavailable) as failed:
        discover_jwks_uri("https://id.test", found_at(documents))
    assert failed.value.reason == "issuer_metadata_of_another"


def test_a_document_of_another_issuer_is_reported_before_missing_documents() -> None:
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
def test_only_https_urls_of_an_issuer_are_requested(jwks_uri: object) -> None:
    documents = {url: document("https://id.test", jwks_uri) for url in metadata_urls("https://id.test")}
    with pytest.raises(IssuerUnavailable) as failed:
        discover_jwks_uri("https://id.test", found_at(documents))
    assert failed.value.reason == "issuer_jwks_uri"


def test_a_local_issuer_may_use_http_for_its_keys() -> None:
    issuer = "http://127.0.0.1:8000"
    documents = {url: document(issuer, f"{issuer}/keys") for url in metadata_urls(issuer)}
    assert discover_jwks_uri(issuer, found_at(documents)) == f"{issuer}/keys"


def test_an_issuer_that_does_not_respond_is_requested_once() -> None:
    requested: list[str] = []

    def fetch(url: str) -> bytes:
        requested.append(url)
        raise IssuerUnavailable("issuer_timeout")

    with pytest.raises(IssuerUnavailable):
        discover_jwks_uri("https://id.test/tenant", fetch)
    assert len(requested) == 1
