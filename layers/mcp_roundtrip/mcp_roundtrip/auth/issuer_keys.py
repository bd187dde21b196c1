"""Cache an issuer's keys, and refresh them.

The keys are fetched for the first token, after an hour, and for a token with an unknown key; since anyone can
write such a token, that happens once a minute at most. If the issuer does not answer, one request waits
three seconds, and the requests of the next seconds do not wait. While there are usable keys, a token with an
unknown key is refused like any other invalid token, so that a caller cannot turn an outage of the issuer into
an outage of this server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from mcp_roundtrip.auth.callers import IssuerUnavailable
from mcp_roundtrip.auth.issuer_metadata import discover_jwks_uri
from mcp_roundtrip.auth.jwks import KeySet, parse_key_set

REFRESH_AFTER_S: Final = 3_600
"""Age at which keys are refreshed."""

EXPIRE_AFTER_S: Final = 24 * 3_600
"""Age at which keys are no longer used if the issuer does not answer."""

MIN_REFRESH_INTERVAL_S: Final = 60
"""Minimum time between two refreshes while there are keys."""

RETRY_INTERVAL_S: Final = 10
"""Minimum time between two refreshes while there are no keys."""

TIMEOUT_S: Final = 3.0
"""Limit of one refresh, including all its requests."""

Fetch = Callable[[str, float], bytes]
"""Takes a URL and a timeout in seconds, returns the document. Raises IssuerUnavailable."""


class _Fetched(Struct, frozen=True):
    keys: KeySet
    at: float


class IssuerKeys:
    """The keys of `issuer`, from `jwks_uri` or from the URL in its metadata.

    `clock` returns epoch seconds. `on_failure` is called for each refresh that fails, not for the requests
    after it. Threads may share an instance.
    """

    def __init__(
        self,
        issuer: str,
        jwks_uri: str | None,
        fetch: Fetch,
        clock: Callable[[], float],
        on_failure: Callable[[IssuerUnavailable], None] = lambda failure: None,
    ) -> None:
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._fetch = fetch
        self._clock = clock
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._fetched: _Fetched | None = None
        self._refreshed_at: float | None = None
        self._failure = "issuer_no_keys"

    def find(self, kid: str, algorithm: str) -> Any:
        """Return the public key; None if there is none. Raises IssuerUnavailable without usable keys."""
        fetched, name = self._fetched, (kid, algorithm)
        if fetched is not None and name in fetched.keys and self._clock() - fetched.at < REFRESH_AFTER_S:
            return fetched.keys[name]
        with self._lock:
            return self._find(name)

    def _find(self, name: tuple[str, str]) -> Any:
        if self._is_due(name):
            self._refresh()
        usable = self._usable()
        # Without any keys a 401 would be wrong: no token can be verified.
        if not usable:
            raise IssuerUnavailable(self._failure)
        return usable.get(name)

    def _usable(self) -> KeySet:
        """Return the keys that have not expired."""
        fetched = self._fetched
        return {} if fetched is None or self._clock() - fetched.at >= EXPIRE_AFTER_S else fetched.keys

    def _is_due(self, name: tuple[str, str]) -> bool:
        fetched, usable, now = self._fetched, self._usable(), self._clock()
        if name in usable and fetched is not None and now - fetched.at < REFRESH_AFTER_S:
            return False  # another thread has just refreshed
        return self._refreshed_at is None or now - self._refreshed_at >= (
            MIN_REFRESH_INTERVAL_S if usable else RETRY_INTERVAL_S
        )

    def _refresh(self) -> None:
        """Fetch the keys, or report why that failed."""
        try:
            self._fetched = _Fetched(self._fetch_keys(), self._clock())
            if not self._fetched.keys:  # the issuer has withdrawn all
                raise IssuerUnavailable("issuer_no_keys")
        except IssuerUnavailable as failure:
            self._failure = failure.reason
            self._on_failure(failure)
        self._refreshed_at = self._clock()

    def _fetch_keys(self) -> KeySet:
        deadline = self._clock() + TIMEOUT_S

        def fetch(url: str) -> bytes:
            if (remaining := deadline - self._clock()) <= 0:
                raise IssuerUnavailable("issuer_timeout")
            return self._fetch(url, remaining)

        try:
            return parse_key_set(fetch(self._jwks_uri or discover_jwks_uri(self._issuer, fetch)))
        except ValueError:
            raise IssuerUnavailable("issuer_jwks") from None
