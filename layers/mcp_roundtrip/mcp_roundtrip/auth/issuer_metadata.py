"""Find the URL of an issuer's keys in its metadata (RFC 8414, OpenID Connect Discovery)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from mcp_roundtrip.auth.callers import IssuerUnavailable
from mcp_roundtrip.protocol.canonical import parse_json


def is_loopback(url: str) -> bool:
    """Return whether a URL is plain HTTP to this computer, as of a development issuer."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")


def metadata_urls(issuer: str) -> Iterator[str]:
    """Yield the possible URLs of an issuer's metadata, in the order to try (RFC 8414 §3.1, §5)."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}/.well-known/openid-configuration{path}"
    if path:
        yield f"{origin}{path}/.well-known/openid-configuration"


def discover_jwks_uri(issuer: str, fetch: Callable[[str], bytes]) -> str:
    """Return the `jwks_uri` in the issuer's metadata. Raises IssuerUnavailable."""
    failures: list[IssuerUnavailable] = []
    for url in metadata_urls(issuer):
        try:
            return _jwks_uri(issuer, fetch(url))
        except IssuerUnavailable as error:
            if not error.is_answer:
                raise
            failures.append(error)
    # A problem in a document says more than the status of a missing one.
    raise min(failures, key=lambda failure: failure.reason.startswith("issuer_status_"))


def _jwks_uri(issuer: str, document: bytes) -> str:
    try:
        metadata = parse_json(document)
    except ValueError:
        raise IssuerUnavailable("issuer_metadata", is_answer=True) from None
    # The issuer must be identical, so that no other issuer's metadata is used (RFC 8414 §3.3).
    if not isinstance(metadata, dict) or metadata.get("issuer") != issuer:
        raise IssuerUnavailable("issuer_metadata_of_another", is_answer=True)
    uri = metadata.get("jwks_uri")
    # Lambda's runtime API is plain HTTP on 127.0.0.1, and a remote issuer must not direct requests to it.
    if not isinstance(uri, str) or not (
        uri.startswith("https://") or (is_loopback(uri) and is_loopback(issuer))
    ):
        raise IssuerUnavailable("issuer_jwks_uri")
    return uri
