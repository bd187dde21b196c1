"""Find an issuer's keys (RFC 8414, OpenID Connect Discovery, RFC 7517), cache and refresh them.

The keys are fetched for the first token, after an hour, and at most once a minute for a token with an unknown
key, which anyone can write. If the issuer does not answer, one request waits three seconds, and the requests
of the next seconds do not wait. While there are usable keys, a token with an unknown key is refused like any
other invalid token, so that an outage of the issuer is no outage of this server.

Keys are found by `kid` and algorithm, so that a key is used only with the algorithms of its type, and a
public key never as the secret of an HMAC (RFC 8725 §2.1, §3.1).
"""

from __future__ import annotations

import math
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from jwt import PyJWK, PyJWTError, api_jws
from msgspec import Struct, field

from mcp_roundtrip.auth.callers import IssuerUnavailable
from mcp_roundtrip.protocol.strict_json import parse_object

REFRESH_AFTER_S: Final = 3_600
EXPIRE_AFTER_S: Final = 24 * 3_600
"""Ages at which keys are refreshed, and at which they are no longer used if that fails."""

MIN_REFRESH_INTERVAL_S: Final = 60
RETRY_INTERVAL_S: Final = 10
"""Minimum times between two refreshes, with and without usable keys."""

TIMEOUT_S: Final = 3.0
"""Limit of one refresh, including all its requests."""

Fetch = Callable[[str, float], bytes]
"""Takes a URL and a timeout in seconds, returns the document. Raises IssuerUnavailable."""

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""Key type and curve -> the algorithms of its signatures."""

RSA_BITS: Final = range(2048, 8193)
"""Accepted sizes. RFC 7518 §3.3 requires 2,048; larger keys slow down every token."""

_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

MAX_DOCUMENT: Final = 65_536
"""Limit in bytes of a document. The largest key sets of public issuers have about 10,000."""

KeySet = Mapping[tuple[str, str], Any]
"""(kid, algorithm) -> public key."""


class IssuerKeys(Struct, eq=False):
    """The keys of `issuer`, from `jwks_uri` or from the URL in its metadata. Thread-safe.

    `clock` returns epoch seconds. `on_failure` is called for each refresh that fails.
    """

    issuer: str
    jwks_uri: str | None
    fetch: Fetch
    clock: Callable[[], float]
    on_failure: Callable[[IssuerUnavailable], None] = lambda failure: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _keys: KeySet = {}
    _fetched_at: float = -math.inf
    _refreshed_at: float = -math.inf
    _failure: str = "issuer_no_keys"

    def verify(self, token: str, kid: str, algorithm: str) -> bytes | None:
        """Return the payload of a signed token, or None for an unknown key.

        Raises ValueError for another signature, and IssuerUnavailable without usable keys.
        """
        key = self.find(kid, algorithm)
        try:
            return None if key is None else api_jws.decode(token, key, algorithms=[algorithm])
        except (PyJWTError, TypeError) as error:
            raise ValueError("not the signature of this key") from error

    def find(self, kid: str, algorithm: str) -> Any:
        """Return the public key; None if there is none. Raises IssuerUnavailable without usable keys."""
        name = (kid, algorithm)
        if not self._is_fresh(name):
            with self._lock:
                if not self._is_fresh(name) and self._may_refresh():  # no other thread has just refreshed
                    self._refresh()
        usable = self._usable()
        if not usable:  # a 401 would be wrong, because no token can be verified
            raise IssuerUnavailable(self._failure)
        return usable.get(name)

    def _is_fresh(self, name: tuple[str, str]) -> bool:
        return name in self._keys and 0 <= self.clock() - self._fetched_at < REFRESH_AFTER_S

    def _usable(self) -> KeySet:
        return self._keys if self.clock() - self._fetched_at < EXPIRE_AFTER_S else {}

    def _may_refresh(self) -> bool:
        interval_s = MIN_REFRESH_INTERVAL_S if self._usable() else RETRY_INTERVAL_S
        return not 0 <= self.clock() - self._refreshed_at < interval_s  # or it was set back

    def _refresh(self) -> None:
        try:
            self._fetch_keys()
        except IssuerUnavailable as failure:
            self._failure = failure.reason
            self.on_failure(failure)
        self._refreshed_at = self.clock()

    def _fetch_keys(self) -> None:
        deadline = self.clock() + TIMEOUT_S

        def fetch_in_time(url: str) -> bytes:
            if (remaining := deadline - self.clock()) <= 0:
                raise IssuerUnavailable("issuer_timeout")
            return self.fetch(url, remaining)

        try:
            uri = self.jwks_uri or discover_jwks_uri(self.issuer, fetch_in_time)
        except ValueError:  # of `urlsplit`, for some issuers with a bracket
            raise IssuerUnavailable("issuer_url") from None
        with _naming(uri):
            document = fetch_in_time(uri)
            try:
                self._keys = parse_key_set(document)
            except ValueError:
                raise IssuerUnavailable("issuer_jwks") from None
            self._fetched_at = self.clock()
            if not self._keys:  # the issuer has withdrawn all
                raise IssuerUnavailable("issuer_no_keys")


@contextmanager
def _naming(url: str) -> Iterator[None]:
    """Add the URL to the log's traceback of a failure, without its password and its query."""
    try:
        yield
    except IssuerUnavailable as failure:
        shown = re.sub("//[^/]*@", "//", url.partition("?")[0])
        failure.add_note(f"The URL is {shown}")
        raise


def is_loopback(url: str) -> bool:
    """Return whether a URL is plain HTTP to this computer, as that of a development issuer."""
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
            with _naming(url):
                return _jwks_uri(issuer, fetch(url))
        except IssuerUnavailable as error:
            if not error.is_answer:
                raise
            failures.append(error)
    # A problem in a document says more than the status of a missing one.
    raise min(failures, key=lambda failure: failure.reason.startswith("issuer_status_"))


def _jwks_uri(issuer: str, document: bytes) -> str:
    try:
        metadata = parse_object(document)
    except ValueError:
        raise IssuerUnavailable("issuer_metadata", is_answer=True) from None
    # The issuer must be identical, so that no other issuer's metadata is used (RFC 8414 §3.3).
    if metadata.get("issuer") != issuer:
        raise IssuerUnavailable("issuer_metadata_of_another", is_answer=True)
    uri = metadata.get("jwks_uri")
    # Lambda's runtime API is plain HTTP on 127.0.0.1, and a remote issuer must not direct requests to it.
    if not isinstance(uri, str) or not (
        uri.startswith("https://") or (is_loopback(uri) and is_loopback(issuer))
    ):
        raise IssuerUnavailable("issuer_jwks_uri")
    return uri


def parse_key_set(document: bytes) -> KeySet:
    """Return the usable keys of a JWK Set. Raises ValueError for any other document.

    Ignored are private and symmetric keys, which are compromised once published, keys for encryption, keys of
    unknown types or sizes, and different keys with the same `kid` and algorithm.
    """
    keys = parse_object(document).get("keys")
    if not isinstance(keys, list):
        raise ValueError("not a JWK Set")
    found: dict[tuple[str, str], list[Any]] = {}
    for jwk in keys:
        for name, key in _entries(jwk):
            found.setdefault(name, []).append(key)
    return {name: same[0] for name, same in found.items() if all(key == same[0] for key in same)}


def _entries(jwk: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    if not isinstance(jwk, dict) or not isinstance(kid := jwk.get("kid"), str):
        return
    algorithms = [name for name in _algorithms(jwk) if jwk.get("alg", name) == name]
    key = _public_key(jwk, algorithms[0]) if algorithms and _verifies(jwk) else None
    if key is not None:
        yield from (((kid, algorithm), key) for algorithm in algorithms)


def _algorithms(jwk: Mapping[str, Any]) -> tuple[str, ...]:
    kty, crv = jwk.get("kty"), jwk.get("crv")
    if not isinstance(kty, str) or not isinstance(crv, str | None):
        return ()
    return ALGORITHMS.get((kty, crv), ())


def _verifies(jwk: Mapping[str, Any]) -> bool:
    operations = jwk.get("key_ops", ["verify"])
    return (
        jwk.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and _PRIVATE.isdisjoint(jwk)
    )


def _public_key(jwk: dict[str, Any], algorithm: str) -> Any:
    try:
        key = PyJWK(jwk, algorithm).key
    except Exception:  # of PyJWT, of cryptography and of Python
        return None
    bits = getattr(key, "key_size", 0)
    return None if jwk["kty"] == "RSA" and bits not in RSA_BITS else key


def fetch(url: str, timeout_s: float) -> bytes:
    """Return the body of a 200 response to a GET. Redirects are not followed.

    Raises IssuerUnavailable for any other response, for none within `timeout_s`, and for a larger body than
    MAX_DOCUMENT.
    """

    def get() -> bytes | IssuerUnavailable:
        try:
            connection.request("GET", target, headers={"accept": "application/json", "connection": "close"})
            response = connection.getresponse()
            if response.status != 200:
                return IssuerUnavailable(f"issuer_status_{response.status}", is_answer=response.status < 500)
            document = response.read(MAX_DOCUMENT + 1)
        except (OSError, HTTPException, ValueError) as error:
            return IssuerUnavailable(f"issuer_{type(error).__name__}")
        finally:
            connection.close()
        return document if len(document) <= MAX_DOCUMENT else IssuerUnavailable("issuer_document_too_large")

    try:
        parts = urlsplit(url)
        is_https = parts.scheme == "https"
        if not parts.hostname or parts.username is not None or not (is_https or is_loopback(url)):
            raise ValueError("no HTTPS or loopback, no host, or userinfo")
        connect = HTTPSConnection if is_https else HTTPConnection
        connection = connect(parts.hostname, parts.port, timeout=timeout_s)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    except (ValueError, HTTPException):
        raise IssuerUnavailable("issuer_url") from None
    outcome: list[bytes | IssuerUnavailable] = []
    # In a thread that can be abandoned: a socket timeout limits each read, and nothing limits the DNS lookup.
    thread = threading.Thread(target=lambda: outcome.append(get()), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not outcome:
        with suppress(OSError, AttributeError):  # there may be no socket yet, or it is closed
            connection.sock.shutdown(socket.SHUT_RDWR)
        raise IssuerUnavailable("issuer_timeout")
    if isinstance(outcome[0], IssuerUnavailable):
        raise outcome[0]
    return outcome[0]
