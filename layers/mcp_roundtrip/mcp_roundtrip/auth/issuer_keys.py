"""An issuer's keys: how long they are good for, and when they are asked for again.

An issuer is asked for its keys at the first token, an hour later, and when a token names an unknown key,
which anyone can write: that counts once a minute. An issuer that does not answer costs one request three
seconds, and the next ones nothing for a while. While usable keys are held, a token with an unknown key is
refused like any other bad token: a caller must not be able to turn an outage of the issuer into one of this
server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.auth.callers import IssuerUnavailable
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

    `clock` gives epoch seconds. `on_failure` is called once for each refresh that fails, and not for the
    requests after it. Threads may share an instance.
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
        self._asked_at: float | None = None
        self._failure = "issuer_no_keys"

    def find(self, kid: str, algorithm: str) -> Any:
        """The public key; None for an unknown one. Raises IssuerUnavailable without usable keys."""
        fetched, name = self._fetched, (kid, algorithm)
        if fetched is not None and name in fetched.keys and self._clock() - fetched.at < FRESH_S:
            return fetched.keys[name]
        with self._lock:
            return self._find(name)

    def _find(self, name: tuple[str, str]) -> Any:
        if self._is_due(name):
            self._refresh()
        usable = self._usable()
        # Without any key a 401 would be wrong: no other token would be accepted either.
        if not usable:
            raise IssuerUnavailable(self._failure)
        return usable.get(name)

    def _usable(self) -> KeySet:
        """The keys that may be used, fresh or not."""
        fetched = self._fetched
        return {} if fetched is None or self._clock() - fetched.at >= USABLE_S else fetched.keys

    def _is_due(self, name: tuple[str, str]) -> bool:
        fetched, usable, now = self._fetched, self._usable(), self._clock()
        if name in usable and fetched is not None and now - fetched.at < FRESH_S:
            return False  # another thread has just asked
        return self._asked_at is None or now - self._asked_at >= (REFRESH_S if usable else RETRY_S)

    def _refresh(self) -> None:
        """Ask for the keys, and report a failure: requests until the next refresh only refer to it."""
        try:
            self._fetched = _Fetched(self._ask(), self._clock())
            if not self._fetched.keys:  # the issuer has withdrawn all of them
                raise IssuerUnavailable("issuer_no_keys")
        except IssuerUnavailable as failure:
            self._failure = failure.reason
            self._on_failure(failure)
        self._asked_at = self._clock()

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
