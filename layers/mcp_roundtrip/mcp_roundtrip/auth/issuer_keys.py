"""An issuer's keys: how long they are good for, and when they are asked for again.

An issuer is asked for its keys at the first token, an hour later, and when a token names a key that nobody
has seen, which anyone can write: that counts once a minute. One that does not answer costs a request three
seconds, and then nothing for a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.auth import IssuerUnavailable
from mcp_roundtrip.auth.issuer import discovered_jwks_uri
from mcp_roundtrip.auth.jwks import KeySet, key_set

FRESH_S: Final = 3_600
"""How long keys are used without a question."""

USABLE_S: Final = 24 * 3_600
"""How long they are used while their issuer does not answer."""

REFRESH_S: Final = 60
"""Between two questions, while there are keys."""

RETRY_S: Final = 10
"""Between two questions, while there are none."""

TIMEOUT_S: Final = 3.0
"""For one question, with all the requests it takes."""

Fetch = Callable[[str, float], bytes]
"""Takes a URL and seconds; gives the document. Raises IssuerUnavailable."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    keys: KeySet
    at: float


class IssuerKeys:
    """The keys of `issuer`, from `jwks_uri` or, without one, from where its metadata says they are.

    `clock` gives epoch seconds. Threads may share it.
    """

    def __init__(self, issuer: str, jwks_uri: str | None, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._fetched: _Fetched | None = None
        self._asked_at: float | None = None
        self._failure: IssuerUnavailable | None = None

    def find(self, kid: str, algorithm: str) -> Any:
        """The public key; None if the issuer has no such key. Raises IssuerUnavailable."""
        fetched, name = self._fetched, (kid, algorithm)
        if fetched is not None and name in fetched.keys and self._clock() - fetched.at < FRESH_S:
            return fetched.keys[name]
        with self._lock:
            return self._find(name)

    def _find(self, name: tuple[str, str]) -> Any:
        key, failure = self._known(name), self._failure
        if self._is_due(key is not None):
            failure = self._refresh()
            key = self._known(name)
        # An unknown key says nothing about the token while nobody can ask for the newest ones.
        if key is None and failure is not None:
            raise IssuerUnavailable(failure.reason)
        # All keys are withdrawn: no other token would be better.
        if self._fetched is not None and not self._fetched.keys:
            raise IssuerUnavailable("issuer_no_keys")
        return key

    def _known(self, name: tuple[str, str]) -> Any:
        fetched = self._fetched
        if fetched is None or self._clock() - fetched.at >= USABLE_S:
            return None
        return fetched.keys.get(name)

    def _is_due(self, is_known: bool) -> bool:
        fetched, now = self._fetched, self._clock()
        if is_known and fetched is not None and now - fetched.at < FRESH_S:
            return False  # another thread has just asked
        has_keys = fetched is not None and fetched.keys and now - fetched.at < USABLE_S
        return self._asked_at is None or now - self._asked_at >= (REFRESH_S if has_keys else RETRY_S)

    def _refresh(self) -> IssuerUnavailable | None:
        """Ask for the keys; what went wrong is remembered until the next time."""
        try:
            self._fetched, self._failure = _Fetched(self._ask(), self._clock()), None
        except IssuerUnavailable as failure:
            self._failure = failure
        self._asked_at = self._clock()
        return self._failure

    def _ask(self) -> KeySet:
        deadline = self._clock() + TIMEOUT_S

        def fetch(url: str) -> bytes:
            if (left := deadline - self._clock()) <= 0:
                raise IssuerUnavailable("issuer_timeout")
            return self._fetch(url, left)

        try:
            return key_set(fetch(self._jwks_uri or discovered_jwks_uri(self._issuer, fetch)))
        except ValueError:
            raise IssuerUnavailable("issuer_jwks") from None
